//! Requests of clients and child servers, and releases: one resource a call.
//!
//! [`Answers`] collects the answers to a request. A resource without holders is added when it is asked for. The
//! resource decides; clients and child servers differ only in their requests and answers.
//!
//! All answers to a request are of one mastership. If another one begins in between, it answers all of the request. A
//! request that is given up has done what it has done, as if its answer had been lost.

use std::task::Poll;
use std::time::Duration;

use crate::admission::{AdmissionGate, CallerSlot};
use crate::amount::Amount;
use crate::claims::{Claim, Demand};
use crate::holders::{Asker, HolderAsk, InUse, ServerReport};
use crate::id::{Caller, HolderId, HolderKind, MastershipId, ResourceId};
use crate::messages::{
    Ask, ClientLease, Cycle, GetCapacity, GetCapacityReply, GetServerCapacity,
    GetServerCapacityReply, NodeEvent, Refusal, RefusalReason, ReleaseCapacity, Released,
    ServerAsk, ServerLease, Via,
};
use crate::node::child_servers::ChildState;
use crate::node::mastership::{Mastership, Outcome};
use crate::node::upstream::{longer_report, shorter_lease, shorter_server_lease};
use crate::node::{Entry, Node, to_end};
use crate::resource::Resource;
use crate::resource::ask::{Answer, AnswerKind};
use crate::time::Time;

/// The answers to a request so far.
#[derive(Debug)]
pub struct Answers<L> {
    asker: Asker,
    /// None: nothing is answered yet.
    mastership: Option<MastershipId>,
    /// Position of the next ask.
    next: usize,
    leases: Vec<L>,
    refused: Vec<Refusal>,
}

impl Answers<ClientLease> {
    /// None yet, to a client.
    pub fn to_client(request: &GetCapacity) -> Self {
        let client = HolderId::client(request.client.clone(), request.incarnation);
        Self::none(client, request.asks.len())
    }
}

impl Answers<ServerLease> {
    /// None yet, to a child server.
    pub fn to_child(request: &GetServerCapacity) -> Self {
        Self::none(HolderId::server(request.server.clone()), request.asks.len())
    }
}

impl<L> Answers<L> {
    fn none(holder: HolderId, asks: usize) -> Self {
        Self {
            asker: Asker::new(holder),
            mastership: None,
            next: 0,
            leases: Vec::with_capacity(asks),
            refused: Vec::new(),
        }
    }

    /// Drops the answers of another mastership.
    fn keep_only_of(&mut self, mastership: MastershipId) {
        if self.mastership.replace(mastership) != Some(mastership) {
            self.next = 0;
            self.leases.clear();
            self.refused.clear();
        }
    }

    fn take(&mut self) -> (Vec<L>, Vec<Refusal>) {
        (
            std::mem::take(&mut self.leases),
            std::mem::take(&mut self.refused),
        )
    }
}

impl Node {
    /// A client asks for capacity. Every ask is answered by a lease or refused by name, each on its
    /// own; a refused ask changes nothing.
    pub fn handle_get_capacity(
        &mut self,
        request: &GetCapacity,
        now: Time,
    ) -> Outcome<GetCapacityReply> {
        let mut answers = Answers::to_client(request);
        to_end(|| self.answer_client_next(request, &mut answers, now))
    }

    /// Answers the next ask of a client.
    pub fn answer_client_next(
        &mut self,
        request: &GetCapacity,
        answers: &mut Answers<ClientLease>,
        now: Time,
    ) -> Poll<Outcome<GetCapacityReply>> {
        if let Err(mastership) = self.check_serves(now) {
            return Poll::Ready(Outcome::NotMaster(mastership));
        }
        let is_ready = self.answer_next(
            answers,
            &request.asks,
            |ask| &ask.resource,
            |node, asker, ask| node.handle_client_ask(asker, request, ask, now),
        );
        if !is_ready {
            return Poll::Pending;
        }
        let (leases, mut refused) = answers.take();
        self.retries.tell(&mut refused);
        Poll::Ready(Outcome::Served(GetCapacityReply { leases, refused }))
    }

    /// A child server asks for capacity, on behalf of its holders.
    ///
    /// # Errors
    ///
    /// If the child is an ancestor of this node; nothing is changed then.
    pub fn handle_get_server_capacity(
        &mut self,
        request: &GetServerCapacity,
        via: Via,
        now: Time,
    ) -> Result<Outcome<GetServerCapacityReply>, Cycle> {
        let mut answers = Answers::to_child(request);
        to_end(|| self.answer_child_next(request, via, &mut answers, now))
    }

    /// Answers the next ask of a child server. It is refused as a whole if it is an ancestor of this node: asks that
    /// were answered before that was known stay answered.
    pub fn answer_child_next(
        &mut self,
        request: &GetServerCapacity,
        via: Via,
        answers: &mut Answers<ServerLease>,
        now: Time,
    ) -> Poll<Result<Outcome<GetServerCapacityReply>, Cycle>> {
        if let Err(cycle) = self.check_child(&request.server) {
            return Poll::Ready(Err(cycle));
        }
        if let Err(mastership) = self.check_serves(now) {
            return Poll::Ready(Ok(Outcome::NotMaster(mastership)));
        }
        self.children.known = true;
        if answers.next == 0 {
            self.children.servers.note_request(request, via, now);
        }
        let is_ready = self.answer_next(
            answers,
            &request.asks,
            |ask| &ask.resource,
            |node, asker, ask| node.handle_server_ask(asker, request, ask, via, now),
        );
        if !is_ready {
            return Poll::Pending;
        }
        let (leases, refused) = answers.take();
        Poll::Ready(Ok(Outcome::Served(GetServerCapacityReply {
            leases,
            refused,
            ..self.empty_reply()
        })))
    }

    /// Releases a client's leases. The answer has a result for each resource, in the order of the request.
    pub fn handle_release_capacity(
        &mut self,
        request: &ReleaseCapacity,
        now: Time,
    ) -> Outcome<Vec<Released>> {
        let mut released = Vec::with_capacity(request.resources.len());
        to_end(|| self.release_next(request, &mut released, now))
    }

    /// Takes back the next resource that a client releases.
    pub fn release_next(
        &mut self,
        request: &ReleaseCapacity,
        released: &mut Vec<Released>,
        now: Time,
    ) -> Poll<Outcome<Vec<Released>>> {
        if let Err(mastership) = self.check_serves(now) {
            return Poll::Ready(Outcome::NotMaster(mastership));
        }
        if let Some(id) = request.resources.get(released.len()) {
            released.push(self.release(request, id, now));
        }
        if released.len() < request.resources.len() {
            return Poll::Pending;
        }
        Poll::Ready(Outcome::Served(std::mem::take(released)))
    }

    fn release(&mut self, request: &ReleaseCapacity, id: &ResourceId, now: Time) -> Released {
        if let Some(word) = request.words.get(id) {
            return self.close_account(request, id, *word, now);
        }
        let caller = self.admission.find_caller(request.caller);
        let holder = HolderId::client(request.client.clone(), request.incarnation);
        let result = self.change_resource(id, now, |resource| {
            resource.handle_release(&holder, request.sequence, caller, now)
        });
        let result = result.unwrap_or(Released::NotThere);
        match result {
            Released::Freed => self.counters.released += 1,
            Released::OutOfOrder => self.counters.out_of_order += 1,
            Released::UnlessHeard(_) | Released::NotThere => {}
        }
        result
    }

    /// Returns an error, with the master if it is known, if this node does not serve requests. Counts the request then.
    fn check_serves(&mut self, now: Time) -> Result<(), Mastership> {
        let checked = self.check_master(now);
        self.counters.redirected += u64::from(checked.is_err());
        checked
    }

    /// Answers the next ask of a request. Returns whether all are answered.
    fn answer_next<A, L>(
        &mut self,
        answers: &mut Answers<L>,
        asks: &[A],
        resource_of: impl Fn(&A) -> &ResourceId,
        answer: impl FnOnce(&mut Self, &Asker, &A) -> Result<L, RefusalReason>,
    ) -> bool {
        answers.keep_only_of(self.mastership_id);
        let Some(ask) = asks.get(answers.next) else {
            return true;
        };
        let resource = resource_of(ask);
        let result = answer(self, &answers.asker, ask);
        answers.next += 1;
        match result {
            Ok(lease) => answers.leases.push(lease),
            Err(reason) => {
                self.counters.refused += 1;
                answers.refused.push(Refusal::new(resource.clone(), reason));
            }
        }
        answers.next == asks.len()
    }

    /// A client asks for something.
    fn handle_client_ask(
        &mut self,
        asker: &Asker,
        request: &GetCapacity,
        ask: &Ask,
        now: Time,
    ) -> Result<ClientLease, RefusalReason> {
        if let Some(word) = ask.budget {
            return self.handle_client_word(request, ask, word, now);
        }
        let tolerance = self.config.clock_tolerance;
        let holder_ask = HolderAsk {
            asker,
            incarnation: request.incarnation,
            sequence: request.sequence,
            demand: Demand::Client {
                priority: ask.priority,
                claim: Claim {
                    wants: ask.wants,
                    subclients: ask.weight,
                },
            },
            wants_more: false,
            in_use: InUse {
                has: ask.has.map(|has| longer_report(tolerance, has)),
                outstanding: None,
            },
            believed: InUse::default(),
            reported: &[],
            unreported: Amount::ZERO,
            report: None,
            floor: self.config.refresh_floor,
            caller: CallerSlot::NOBODY,
            is_held: false,
            is_push: false,
            streams: self.children.clients.contains(asker.holder()),
        };
        let decide = |resource: &mut Resource, gate: &mut AdmissionGate<'_>| {
            let answer = resource.handle_ask(holder_ask, gate, now)?;
            Ok((answer.kind, answer))
        };
        let id = &ask.resource;
        let kind = HolderKind::Client;
        let answer = self.ask_resource(id, kind, request.caller, decide, now)?;
        Ok(self.client_lease(id, request.sequence, &answer, now))
    }

    /// Returns what a client is told of its lease.
    pub(super) fn client_lease(
        &self,
        id: &ResourceId,
        sequence: Option<u64>,
        answer: &Answer,
        now: Time,
    ) -> ClientLease {
        let lease = ClientLease {
            resource: id.clone(),
            capacity: answer.lease.capacity,
            expires_in: answer.lease.expires_at.since(now),
            refresh_in: answer.refresh_in,
            safe_capacity: Some(answer.safe_capacity),
            granted_by: Some(self.mastership_id),
            limited_by: answer.limited_by,
            learning_for: answer.learning_for,
            decided: answer.decided,
            sequence,
            budget: None,
        };
        shorter_lease(self.config.clock_tolerance, lease)
    }

    /// A child server asks for something, on behalf of its holders.
    fn handle_server_ask(
        &mut self,
        asker: &Asker,
        request: &GetServerCapacity,
        ask: &ServerAsk,
        via: Via,
        now: Time,
    ) -> Result<ServerLease, RefusalReason> {
        let lease = match ask.budget {
            Some(word) => self.handle_server_word(request, ask, word, via, now),
            None => self.handle_server_wants(asker, request, ask, via, now),
        }?;
        let state = match self.children.subscribed.contains(&request.server) {
            true => ChildState::Streaming,
            false => ChildState::Polling,
        };
        let servers = &mut self.children.servers;
        servers.note_granted(request, ask, &lease, state, now);
        Ok(lease)
    }

    fn handle_server_wants(
        &mut self,
        asker: &Asker,
        request: &GetServerCapacity,
        ask: &ServerAsk,
        via: Via,
        now: Time,
    ) -> Result<ServerLease, RefusalReason> {
        let tolerance = self.config.clock_tolerance;
        let holder_ask = HolderAsk {
            asker,
            incarnation: request.incarnation,
            sequence: request.sequence,
            demand: Demand::Server(ask.demand.clone()),
            wants_more: false,
            in_use: InUse {
                has: ask.has.map(|has| longer_report(tolerance, has)),
                outstanding: ask.outstanding.map(|has| longer_report(tolerance, has)),
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
            is_push: false,
            streams: false,
        };
        let decide = |resource: &mut Resource, gate: &mut AdmissionGate<'_>| {
            resource.handle_server_ask(holder_ask, gate, now)
        };
        let id = &ask.resource;
        let lease = self.ask_resource(id, HolderKind::Server, request.caller, decide, now)?;
        Ok(shorter_server_lease(tolerance, lease))
    }

    /// A holder asks for a resource, which is added if needed. `decide` returns how the answer came about,
    /// and the answer.
    fn ask_resource<T>(
        &mut self,
        id: &ResourceId,
        kind: HolderKind,
        caller: Option<Caller>,
        decide: impl FnOnce(
            &mut Resource,
            &mut AdmissionGate<'_>,
        ) -> Result<(AnswerKind, T), RefusalReason>,
        now: Time,
    ) -> Result<T, RefusalReason> {
        self.bring_up_to_date(id, now);
        let slot = match self.resources.find(id) {
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
        let learned = resource.learning_remaining(now).is_some();
        let decided = decide(resource, &mut gate);
        let learns = resource.learning_remaining(now).filter(|_| !learned);
        if matches!(decided, Ok((AnswerKind::Repeated, _))) {
            self.assert_settled(slot);
        } else {
            self.settle_at(slot, now);
        }
        if let Some(left) = learns {
            // Reports exceed the mark of the last master.
            let resource = id.clone();
            self.push_event(NodeEvent::LearningBegan { resource, left });
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
