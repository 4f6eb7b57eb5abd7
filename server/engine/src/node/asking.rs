//! One entry for the requests of all holders, clients and child servers, resource by resource.
//!
//! A resource without holders is added when it is asked for. The resource decides; clients and child servers differ only
//! in their requests and answers.

use std::time::Duration;

use crate::admission::{AdmissionGate, CallerSlot};
use crate::amount::Amount;
use crate::claim::Claim;
use crate::demand::Demand;
use crate::id::{Caller, HolderKind, ResourceId};
use crate::lease_table::{Asker, ServerReport};
use crate::node::mentions::Mentions;
use crate::node::parts::{STEPS_PER_POINT, STEPS_PER_RESOURCE};
use crate::node::resources::IdHash;
use crate::node::spans::Spans;
use crate::node::{Entry, Node};
use crate::request::server::{GetServerCapacity, ServerAsk, ServerLease, Via};
use crate::request::{Ask, ClientLease, GetCapacity, Refusal, RefusalReason};
use crate::resource::Resource;
use crate::resource::ask::{AnswerKind, HolderAsk, InUse};
use crate::time::Time;

/// What is answered to a request: leases, and what is refused.
pub(super) type LeasesAndRefusals<L> = (Vec<L>, Vec<Refusal>);

/// What is asked of a resource, and the hash that the resource is found by.
#[derive(Debug)]
pub(super) struct HashedAsk<'a, A> {
    ask: &'a A,
    hash: IdHash,
}

/// How far a request has come: what was answered so far.
#[derive(Debug)]
pub(super) struct Progress<L> {
    leases: Vec<L>,
    refused: Vec<Refusal>,
    mentions: Mentions,
    /// The position of the next ask.
    next: usize,
}

impl<L> Progress<L> {
    /// Nothing of so many asks is answered.
    pub(super) fn of_request(asks: usize) -> Self {
        Self {
            leases: Vec::with_capacity(asks),
            refused: Vec::new(),
            mentions: Mentions::of_request(asks),
            next: 0,
        }
    }

    /// What was answered.
    pub(super) fn take(&mut self) -> LeasesAndRefusals<L> {
        (
            std::mem::take(&mut self.leases),
            std::mem::take(&mut self.refused),
        )
    }
}

impl Node {
    /// Answers the next asks of a request, each separately, until the part is over; a resource that is named twice is
    /// answered once. Returns whether all are answered.
    pub(super) fn answer_some<A, L>(
        &mut self,
        progress: &mut Progress<L>,
        asks: &[A],
        resource_of: impl Fn(&A) -> &ResourceId,
        mut answer: impl FnMut(&mut Self, HashedAsk<'_, A>) -> Result<L, RefusalReason>,
    ) -> bool {
        while let Some(ask) = asks.get(progress.next) {
            if !self.has_steps_left() {
                return false;
            }
            let position = progress.next;
            let resource = resource_of(ask);
            let hash = self.resources.hash(resource);
            let is_same = |at: usize| asks.get(at).map(&resource_of) == Some(resource);
            let result = if progress.mentions.note(position, hash, is_same) {
                Err(RefusalReason::Duplicate)
            } else {
                answer(self, HashedAsk { ask, hash })
            };
            self.note_steps(STEPS_PER_RESOURCE);
            progress.next += 1;
            match result {
                Ok(lease) => progress.leases.push(lease),
                Err(reason) => {
                    self.counters.refused += 1;
                    let resource = resource.clone();
                    progress.refused.push(Refusal::new(resource, reason));
                }
            }
        }
        true
    }

    /// A client asks for something.
    pub(super) fn handle_client_ask(
        &mut self,
        asker: &Asker,
        request: &GetCapacity,
        HashedAsk { ask, hash }: HashedAsk<'_, Ask>,
        now: Time,
    ) -> Result<ClientLease, RefusalReason> {
        let tolerance = self.config.clock_tolerance;
        let holder_ask = HolderAsk {
            asker,
            incarnation: request.incarnation,
            sequence: request.sequence,
            demand: Demand::Client {
                priority: ask.priority,
                claim: Claim::of_client(ask.wants),
            },
            wants_more: false,
            in_use: InUse {
                has: ask.has.map(|has| tolerance.has(has)),
                outstanding: None,
            },
            believed: InUse::default(),
            reported: &[],
            unreported: Amount::ZERO,
            report: None,
            floor: self.config.refresh_floor,
            caller: CallerSlot::NOBODY,
            is_held: false,
        };
        let decide = |resource: &mut Resource, gate: &mut AdmissionGate<'_>| {
            let answer = resource.handle_ask(holder_ask, gate, now)?;
            Ok((answer.kind, answer))
        };
        let id = &ask.resource;
        let kind = HolderKind::Client;
        let answer = self.ask_resource(id, hash, kind, request.caller, decide, now)?;
        Ok(tolerance.lease(ClientLease {
            resource: id.clone(),
            capacity: answer.lease.capacity,
            expires_in: answer.lease.expires_at.since(now),
            refresh_in: answer.refresh_in,
            safe_capacity: Some(answer.safe_capacity),
            granted_by: Some(self.mastership_id),
            limited_by: answer.limited_by,
            learning_for: answer.learning_for,
            decided: answer.decided,
        }))
    }

    /// A child server asks for something, on behalf of its holders.
    pub(super) fn handle_server_ask(
        &mut self,
        asker: &Asker,
        request: &GetServerCapacity,
        asked: HashedAsk<'_, ServerAsk>,
        via: Via,
        now: Time,
    ) -> Result<ServerLease, RefusalReason> {
        let HashedAsk { ask, hash } = asked;
        let tolerance = self.config.clock_tolerance;
        self.note_steps(ask.demand.points() * STEPS_PER_POINT);
        let holder_ask = HolderAsk {
            asker,
            incarnation: request.incarnation,
            sequence: request.sequence,
            demand: Demand::Server(ask.demand.clone()),
            wants_more: false,
            in_use: InUse {
                has: ask.has.map(|has| tolerance.has(has)),
                outstanding: ask.outstanding.map(|has| tolerance.has(has)),
            },
            believed: InUse::default(),
            reported: &ask.reported,
            unreported: ask.unreported,
            report: Some(report_of(request, ask, via, now)),
            floor: match via {
                Via::Poll => self.config.refresh_floor,
                Via::Stream => Duration::ZERO,
            },
            caller: CallerSlot::NOBODY,
            is_held: false,
        };
        let decide = |resource: &mut Resource, gate: &mut AdmissionGate<'_>| {
            resource.handle_server_ask(holder_ask, gate, now)
        };
        let id = &ask.resource;
        let lease = self.ask_resource(id, hash, HolderKind::Server, request.caller, decide, now)?;
        Ok(tolerance.server_lease(lease))
    }

    /// A holder asks for a resource, which is added if needed. `decide` returns how the answer came about,
    /// and the answer.
    fn ask_resource<T>(
        &mut self,
        id: &ResourceId,
        hash: IdHash,
        kind: HolderKind,
        caller: Option<Caller>,
        decide: impl FnOnce(
            &mut Resource,
            &mut AdmissionGate<'_>,
        ) -> Result<(AnswerKind, T), RefusalReason>,
        now: Time,
    ) -> Result<T, RefusalReason> {
        self.bring_up_to_date(id, now);
        let slot = match self.resources.find_hashed(id, hash) {
            Some(slot) => slot,
            None => self.add_resource(id, kind, caller, now)?,
        };
        let Some(Entry {
            resource, template, ..
        }) = self.resources.at_mut(slot)
        else {
            return Err(RefusalReason::UnknownResource);
        };
        let mut gate = AdmissionGate {
            admission: &mut self.admission,
            limits: &self.config.limits,
            caller,
            template: *template,
        };
        let decided = decide(resource, &mut gate);
        if matches!(decided, Ok((AnswerKind::Repeated, _))) {
            self.assert_settled(slot);
        } else {
            self.settle_at(slot);
        }
        let (kind, answer) = decided?;
        self.count(kind);
        Ok(answer)
    }

    fn count(&mut self, kind: AnswerKind) {
        match kind {
            AnswerKind::Decided => self.counters.decisions += 1,
            AnswerKind::Repeated => {
                self.counters.decisions += 1;
                self.counters.repeats += 1;
            }
            AnswerKind::TooEarly => self.counters.too_early += 1,
            AnswerKind::OutOfOrder => self.counters.out_of_order += 1,
        }
    }
}

/// A child server's report about itself.
fn report_of(request: &GetServerCapacity, ask: &ServerAsk, via: Via, now: Time) -> ServerReport {
    ServerReport {
        epoch: request.epoch,
        mastership: request.mastership,
        height: request.height,
        learning: ask.learning,
        streams: via == Via::Stream,
        has: ask.has.map(|has| has.capacity),
        outstanding: ask.outstanding.map(|out| out.capacity),
        unreported: ask.unreported,
        last_safe_capacity: None,
        asked_at: now,
    }
}
