//! The state of a node, as a story prints it: for each resource the supply, the lease from the parent, and the holders.

use std::fmt::Write;

use doorward_engine::id::HolderKind;
use doorward_engine::messages::{LeaseSnapshot, ResourceSnapshot, UpstreamSnapshot};
use doorward_engine::node::mastership::Learning;

use super::player::Player;
use super::script::{Command, CommandResult};
use super::wording;
use crate::whole::Whole as _;

impl Player {
    /// `inspect eu us`: prints these nodes, or all of them without a name.
    pub fn inspect(&mut self, command: &Command) -> CommandResult<String> {
        self.at(None)?;
        let names = command.all_words();
        let mut numbers = Vec::new();
        for name in &names {
            numbers.push(self.server(name)?);
        }
        if names.is_empty() {
            numbers = (0..self.world.servers.len()).collect();
        }
        Ok(numbers.into_iter().map(|it| self.node_now(it)).collect())
    }

    fn node_now(&self, number: usize) -> String {
        let mut output = String::new();
        let server = &self.world.servers[number];
        let now = self.world.shown(number);
        if self.has_names {
            let mastership = server.node.mastership(now);
            write!(
                output,
                "{}: {}",
                server.name,
                wording::mastership(mastership)
            )
            .unwrap();
            let until = server.node.valid_until();
            if let Some(until) = until.filter(|_| mastership.is_master()) {
                write!(output, " until {until}").unwrap();
            }
            if let Some(end) = server
                .node
                .upstream_leases_end_after(None, usize::MAX, now)
                .0
            {
                write!(output, ", has leases of its parent until {end}").unwrap();
            }
            if let Some(at) = server.node.poll_upstream_timeout() {
                write!(output, ", asks its parent at {at}").unwrap();
            }
            writeln!(output).unwrap();
        }
        for resource in server.node.snapshot(now).resources {
            output += &of_resource(&resource);
            if let Some(upstream) = &resource.upstream {
                output += &of_parent(upstream);
            }
            for lease in server.node.lease_snapshots(&resource.resource, 100, now) {
                output += &of_holder(&lease);
            }
        }
        if server.node.snapshot(now).resources.is_empty() {
            output += "nobody holds anything\n";
        }
        output
    }

    /// `learning eu`: whether a node learns, and why.
    pub fn learning(&mut self, command: &Command) -> CommandResult<String> {
        let number = self.server(command.the(0, "node")?)?;
        let now = self.world.shown(number);
        let node = &self.world.servers[number].node;
        let left = node.learning_remaining(now);
        let why = match node.learning(&node.totals(now), now) {
            Learning::Standby => "not the master",
            Learning::Over => "does not learn",
            Learning::Started => "learns: it was started",
            Learning::Elected => "learns: it was elected",
            Learning::Above => "a server above learns",
        };
        let left = left.filter(|_| node.mastership(now).is_master());
        let left = left.map_or(String::new(), |left| {
            format!(", for {} of what nobody holds yet", wording::span(left))
        });
        Ok(format!("{why}{left}\n"))
    }
}

fn of_resource(resource: &ResourceSnapshot) -> String {
    let mut output = format!(
        "{}: capacity {} wants {} granted {} reserved {}",
        resource.resource, resource.capacity, resource.wants, resource.granted, resource.reserved
    );
    if let Some(remaining) = resource.learning_remaining {
        write!(output, ", learning for {}", wording::span(remaining)).unwrap();
    }
    if let Some(remaining) = resource.unreported_for {
        let (amount, lasts) = (resource.unreported, wording::span(remaining));
        write!(output, ", {amount} not reported for {lasts}").unwrap();
    }
    output + "\n"
}

fn of_parent(upstream: &UpstreamSnapshot) -> String {
    let mut output = match upstream.expires_in {
        None => "  no lease from the parent".to_owned(),
        Some(lasts) => format!(
            "  lease from the parent for {}, share {}",
            wording::span(lasts),
            wording::number(upstream.share)
        ),
    };
    if let Some(reason) = upstream.refused {
        write!(output, ", refused: {}", wording::refusal(reason)).unwrap();
    }
    if upstream.in_flight {
        output += ", asked again";
    }
    if let Some(remaining) = upstream.learning_remaining {
        write!(output, ", learning above for {}", wording::span(remaining)).unwrap();
    }
    output + "\n"
}

fn of_holder(lease: &LeaseSnapshot) -> String {
    let kind = match lease.holder.kind {
        HolderKind::Client => "",
        HolderKind::Server => "server ",
    };
    let mut output = format!(
        "  {kind}{}: wants {} share {} granted {} reserved {} until {}",
        lease.holder.name,
        lease.wants(),
        lease.share,
        lease.granted,
        lease.reserved,
        lease.expires_at,
    );
    if lease.reserved_until > lease.expires_at {
        write!(output, " and {}", lease.reserved_until).unwrap();
    }
    if let Some(child) = &lease.child {
        let or_nothing = |it: Option<f64>| it.map_or("nothing".to_owned(), wording::number);
        write!(
            output,
            "; says it has {}, outstanding {}",
            or_nothing(child.has),
            or_nothing(child.outstanding)
        )
        .unwrap();
        if child.learning {
            output += ", learning";
        }
    }
    write!(output, "\n    {}\n", lease.why).unwrap();
    output
}
