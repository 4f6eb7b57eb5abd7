//! Single messages to a node, as the protocol allows them and as old or unusual peers send them: a request of a client
//! or a child server, or an answer of a parent.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::claims::{BandDemand, DemandCurve, ServerDemand};
use doorward_engine::division::ParentTerms as Says;
use doorward_engine::id::{Caller, HolderName, Incarnation, MastershipId, ResourceId};
use doorward_engine::messages::{
    GetCapacity, GetServerCapacity, GetServerCapacityReply, Has, LimitedBy, Refusal, RefusalReason,
    ReleaseCapacity, Released, ServerAsk, ServerLease, Via,
};
use doorward_engine::node::mastership::Outcome;
use doorward_engine::templates::{Algorithm, AlgorithmKind};

use super::player::Player;
use super::script::{Command, CommandResult};
use super::wording::{self, roughly};
use crate::asking::{self, ask, release_request, server_ask, server_request};

fn holder(command: &Command, name: &str) -> CommandResult<HolderName> {
    HolderName::new(command.need(name)?).map_err(|it| format!("{name}= {it}"))
}

fn resource(command: &Command) -> CommandResult<ResourceId> {
    let text = command.text("resource").unwrap_or("r");
    ResourceId::new(text).map_err(|it| format!("resource= {it}"))
}

fn process(command: &Command) -> CommandResult<Option<Incarnation>> {
    Ok(command.count("process")?.and_then(Incarnation::new))
}

fn caller(command: &Command) -> CommandResult<Option<Caller>> {
    let from = command.count("from")?;
    Ok(from.map(|from| Caller::new(u128::from(from))))
}

impl Player {
    pub fn get_capacity(&mut self, command: &Command) -> CommandResult<String> {
        let home = self.at(command.text("at"))?;
        let has = command.amount("has")?;
        let lasts = command.span("lasts")?;
        let granted_by = command.count("granted-by")?.map(MastershipId::new);
        let wants = command
            .amount("wants")?
            .ok_or("get-capacity needs wants=…")?;
        let request = GetCapacity {
            caller: caller(command)?,
            incarnation: process(command)?,
            sequence: command.count("sequence")?,
            ..asking::request(
                holder(command, "client")?,
                vec![ask(
                    resource(command)?,
                    command.whole("priority")?.unwrap_or(0),
                    wants,
                    has.map(|capacity| Has {
                        capacity,
                        expires_in: lasts,
                        granted_by,
                    }),
                )],
            )
        };
        let reply = match self.world.asked(home, &request) {
            Outcome::Served(reply) => reply,
            Outcome::NotMaster(mastership) => {
                return Ok(format!("not the master: {mastership:?}\n"));
            }
        };
        let mut output = String::new();
        for lease in reply.leases {
            let (expires, refresh) = (lease.expires_in, roughly(lease.refresh_in));
            write!(
                output,
                "gets {} for {expires:?}, refresh in {refresh}",
                lease.capacity
            )
            .unwrap();
            if lease.limited_by != LimitedBy::Wants {
                write!(output, ", limited by {:?}", lease.limited_by).unwrap();
            }
            if let Some(remaining) = lease.learning_for {
                write!(output, ", learning for {}", wording::span(remaining)).unwrap();
            }
            if !lease.decided {
                write!(output, ", not decided").unwrap();
            }
            writeln!(output).unwrap();
        }
        for refusal in reply.refused {
            writeln!(output, "refused: {refusal}").unwrap();
            if let Some(retry_in) = refusal.retry_in {
                writeln!(output, "asks again in {}", roughly(retry_in)).unwrap();
            }
        }
        Ok(output)
    }

    pub fn release_capacity(&mut self, command: &Command) -> CommandResult<String> {
        let home = self.at(command.text("at"))?;
        let request = ReleaseCapacity {
            caller: caller(command)?,
            incarnation: process(command)?,
            sequence: command.count("sequence")?,
            ..release_request(holder(command, "client")?, vec![resource(command)?])
        };
        let now = self.world.shown(home);
        let node = &mut self.world.servers[home].node;
        match node.handle_release_capacity(&request, now) {
            Outcome::Served(results) => Ok(match results.as_slice() {
                [Released::OutOfOrder] => "out of order\n".to_owned(),
                [Released::NotThere] => "it holds nothing\n".to_owned(),
                [Released::UnlessHeard(after)] => {
                    format!("free in {}, unless it is heard before\n", roughly(*after))
                }
                _ => String::new(),
            }),
            Outcome::NotMaster(mastership) => Ok(format!("not the master: {mastership:?}\n")),
        }
    }

    /// Sends a request of a child server outside the story. By default its clients have equal wants, it has granted
    /// nothing yet, and it does not learn. An `old` child sends neither a sequence nor an outstanding amount.
    pub fn child_asks(&mut self, command: &Command) -> CommandResult<String> {
        let child = command.the(0, "child")?;
        let server = HolderName::new(child).map_err(|it| format!("{child:?} {it}"))?;
        let home = self.at(command.text("at"))?;
        let wants = command.amount("wants")?.ok_or("child-asks needs wants=…")?;
        let clients = command.number("clients")?.unwrap_or(1.0);
        let lasts = command.span("lasts")?;
        let granted_by = command.count("granted-by")?.map(MastershipId::new);
        let has = |capacity| Has {
            capacity,
            expires_in: lasts,
            granted_by,
        };
        let is_old = command.says("old");
        let outstanding = command.amount("outstanding")?.unwrap_or(Amount::ZERO);
        let band = BandDemand {
            priority: 0,
            clients,
            wants,
            curve: DemandCurve::of_equals(wants, clients),
        };
        let incarnation = process(command)?;
        let height = command.count("height")?.unwrap_or(1);
        let request = GetServerCapacity {
            epoch: command.count("epoch")?,
            incarnation,
            mastership: incarnation.map(|it| MastershipId::new(it.get())),
            sequence: command.count("sequence")?.filter(|_| !is_old),
            height: u32::try_from(height).map_err(|_| format!("height={height}"))?,
            address: None,
            ..server_request(
                server,
                vec![ServerAsk {
                    has: command.amount("has")?.map(has),
                    outstanding: (!is_old).then(|| has(outstanding)),
                    learning: command.says("learning"),
                    ..server_ask(resource(command)?, Arc::new(ServerDemand::new(vec![band])))
                }],
            )
        };
        let via = if command.text("via") == Some("calls") {
            Via::Poll
        } else {
            Via::Stream
        };
        let now = self.world.shown(home);
        let node = &mut self.world.servers[home].node;
        let reply = match node.handle_get_server_capacity(&request, via, now) {
            Ok(Outcome::Served(reply)) => reply,
            Ok(Outcome::NotMaster(mastership)) => {
                return Ok(format!("not the master: {mastership:?}\n"));
            }
            Err(cycle) => return Ok(format!("refused: {cycle}\n")),
        };
        let leases = reply.leases.iter().map(wording::server_lease);
        let refused = reply.refused.iter();
        let refused = refused.map(|it| format!("is refused: {}", wording::refusal(it.reason)));
        Ok(leases
            .chain(refused)
            .map(|line| format!("{child}: {line}\n"))
            .collect())
    }

    /// Sends an answer of a parent outside the story, to the node's request if there is one. Else it is a push.
    pub fn parent_answers(&mut self, command: &Command) -> CommandResult<String> {
        let number = self.server(command.the(0, "node")?)?;
        let now = self.world.shown(number);
        let micros = self.world.now.as_nanos() / 1_000;
        let node = &mut self.world.servers[number].node;
        let asked = node.poll_upstream_request(micros, now);
        let mut output = String::new();
        for line in asked.iter().flat_map(wording::asked) {
            writeln!(output, "it asks: {line}").unwrap();
        }
        let mut reply = GetServerCapacityReply::default();
        if let Some(ancestors) = command.text("ancestors") {
            reply.ancestors = ancestors.split(',').map(str::to_owned).collect();
        }
        match command.text("refused") {
            Some(reason) => {
                let refused = Refusal::new(resource(command)?, refusal(reason)?);
                reply.refused.push(refused);
            }
            None => {
                let sequence = asked.and_then(|asked| asked.sequence);
                reply.leases.push(lease(command, sequence)?);
            }
        }
        node.handle_upstream_reply(&reply, now);
        Ok(output)
    }
}

fn refusal(reason: &str) -> CommandResult<RefusalReason> {
    match reason.split_once(':') {
        None if reason == "no-template" => Ok(RefusalReason::UnknownResource),
        None if reason == "not-ready" => Ok(RefusalReason::NotReady),
        Some(("another-process", wait)) => {
            let wait = super::script::span(wait)?;
            Ok(RefusalReason::AnotherProcess(wait))
        }
        _ => Err(format!(
            "refused={reason}; say no-template, not-ready or another-process:8s"
        )),
    }
}

/// Returns the parent's lease of a command. Fields without a word are absent.
fn lease(command: &Command, sequence: Option<u64>) -> CommandResult<ServerLease> {
    let capacity = command
        .amount("capacity")?
        .ok_or("parent-answers needs capacity=…")?;
    let minute = Duration::from_secs(60);
    let learning_for = command.span("learning")?;
    let lease_length = command.span("leases-last")?.unwrap_or(minute);
    let refresh = command.span("refresh")?.unwrap_or(Duration::from_secs(5));
    Ok(ServerLease {
        budget: None,
        resource: resource(command)?,
        capacity,
        expires_in: command.span("lease")?.unwrap_or(minute),
        refresh_in: refresh,
        algorithm: Some(Algorithm {
            kind: AlgorithmKind::FairShare,
            lease_length,
            learning_mode_duration: lease_length,
            ..Algorithm::default()
        }),
        terms: Says {
            share: capacity,
            learning: learning_for.is_some(),
            learning_for,
            reserved: command.amount("reserved")?,
            inherited_for: command.span("inherited-for")?,
            inherited: command.amount("inherited")?,
            predecessor_for: command.span("predecessor-for")?,
            ..Says::default()
        },
        granted_by: command.count("granted-by")?.map(MastershipId::new),
        sequence,
        decided: None,
    })
}
