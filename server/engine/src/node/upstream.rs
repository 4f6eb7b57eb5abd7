//! A node and its parent: which resources to ask for and when, the answers, and the clock tolerance of durations in
//! messages.

use std::collections::BTreeSet;
use std::task::Poll;

use crate::division::ParentTerms;
use crate::id::{HolderName, MastershipId, ResourceId};
use crate::messages::{
    ClientLease, GetServerCapacity, GetServerCapacityReply, Has, NodeEvent, RefusalReason,
    ServerAsk, ServerLease,
};
use crate::node::mastership::Mastership;
use crate::node::{Entry, Node, to_end};
use crate::resource::parent::ParentPace;
use crate::resource::{Resource, pace};
use crate::time::Time;
use crate::time::tolerance::Tolerance;

/// Time by which the clock of another server of the node may be ahead of ours, from which it numbers its
/// requests: a day, in microseconds.
const AHEAD_MICROS: u64 = 86_400_000_000;

/// Resources in one request, at most.
const RESOURCES_PER_REQUEST_MAX: usize = 500;

/// Points of demand curves in one request, at most, but for the last resource in it: 16 bytes each,
/// so that a message stays well within what servers take (4 MiB).
const POINTS_PER_REQUEST_MAX: usize = 64 * 1024;

/// A node's view of its parent.
#[derive(Debug, Default)]
pub(crate) struct NodeUpstream {
    pace: ParentPace,
    /// When to ask for which resource.
    due: BTreeSet<(Time, ResourceId)>,
    sequence: u64,
    /// The wall clock, when the parent was last asked.
    wall_micros: u64,
    /// The nodes from the parent up to the root.
    ancestors: Vec<String>,
    in_cycle: bool,
}

/// A request to the parent, and the resources that are still to be put in.
#[derive(Debug)]
pub struct UpstreamRequest {
    request: GetServerCapacity,
    mastership: MastershipId,
    sequence: u64,
    due: std::vec::IntoIter<ResourceId>,
    points: usize,
}

/// Progress of an answer of the parent that is brought into force.
#[derive(Debug, Default)]
pub struct UpstreamAnswered {
    /// None: nothing of it is in force yet.
    mastership: Option<MastershipId>,
    /// Whether this node is its own ancestor: then the leases do not count.
    in_cycle: bool,
    leases: usize,
    refused: usize,
}

impl NodeUpstream {
    /// How soon what changed goes up.
    pub(super) fn pace(&self) -> ParentPace {
        self.pace
    }

    /// The parent was to be asked for a resource at `before`, and is to be asked at `after`.
    pub(super) fn reschedule(
        &mut self,
        id: &ResourceId,
        before: Option<Time>,
        after: Option<Time>,
    ) {
        if before != after {
            if let Some(before) = before {
                self.due.remove(&(before, id.clone()));
            }
            if let Some(after) = after {
                self.due.insert((after, id.clone()));
            }
        }
    }

    /// Returns up to `max` resources that are due now or soon: the latter go along with the former.
    pub(super) fn due_by(&self, now: Time, max: usize) -> Vec<ResourceId> {
        let soon = now + self.pace.round / 4;
        let due = self.due.iter().take_while(|(time, _)| *time <= soon);
        due.take(max).map(|(_, id)| id.clone()).collect()
    }

    /// Returns the number of the next request, by the wall clock.
    pub(super) fn next_sequence(&mut self, wall_micros: u64) -> u64 {
        self.wall_micros = wall_micros;
        self.sequence = wall_micros.max(self.sequence.saturating_add(1));
        self.sequence
    }

    /// Mastership changed: nothing is asked for any more. The sequence goes on. Returns what was due.
    pub(super) fn forget(&mut self) -> BTreeSet<(Time, ResourceId)> {
        std::mem::take(&mut self.due)
    }
}

impl Node {
    /// When [`Node::poll_upstream_request`] has something to ask. None: not as long as nothing
    /// changes.
    pub fn poll_upstream_timeout(&self) -> Option<Time> {
        self.upstream.due.first().map(|(time, _)| *time)
    }

    /// Returns the request to the parent that is due now, if any. There may be more: ask again. Sequences start from
    /// the wall clock, `wall_micros`: they grow over restarts, and over the servers of a node.
    pub fn poll_upstream_request(
        &mut self,
        wall_micros: u64,
        now: Time,
    ) -> Option<GetServerCapacity> {
        let mut request = self.begin_upstream_request(wall_micros, now)?;
        to_end(|| self.upstream_request_next(&mut request, now))
    }

    /// Begins a request to the parent with nothing in it. None: nothing is due.
    pub fn begin_upstream_request(
        &mut self,
        wall_micros: u64,
        now: Time,
    ) -> Option<UpstreamRequest> {
        self.check_master(now).ok()?;
        self.poll_upstream_timeout().filter(|first| *first <= now)?;
        let mut request = self.upstream_greeting(now)?;
        if self.budgets.len() > 0 {
            request.height = 1 + self.children.servers.levels(now);
        }
        let due = self.upstream.due_by(now, RESOURCES_PER_REQUEST_MAX);
        let sequence = self.upstream.next_sequence(wall_micros);
        request.sequence = Some(sequence);
        Some(UpstreamRequest {
            request,
            mastership: self.mastership_id,
            sequence,
            due: due.into_iter(),
            points: 0,
        })
    }

    /// Puts in the next resource. None: nothing is to be asked, or another mastership has begun.
    pub fn upstream_request_next(
        &mut self,
        begun: &mut UpstreamRequest,
        now: Time,
    ) -> Poll<Option<GetServerCapacity>> {
        if self.check_master(now).is_err() || self.mastership_id != begun.mastership {
            return Poll::Ready(None);
        }
        // Beyond that many points, the others are due still.
        let next = begun.due.next();
        let Some(id) = next.filter(|_| begun.points <= POINTS_PER_REQUEST_MAX) else {
            let asks = std::mem::take(&mut begun.request.asks);
            return Poll::Ready((!asks.is_empty()).then(|| GetServerCapacity {
                asks,
                ..begun.request.clone()
            }));
        };
        if self.budgets.contains(&id) {
            let ask = self.ask_upstream_for_budget(&id, begun.sequence, now);
            begun.request.asks.extend(ask);
            return Poll::Pending;
        }
        let (tolerance, few_points) = (self.config.clock_tolerance, self.config.few_points);
        self.change_resource(&id, now, |resource| {
            begun.request.height = begun.request.height.max(resource.height());
            if let Some(ask) = resource.ask_upstream(begun.sequence, few_points, now) {
                begun.points += ask.demand.points();
                begun.request.asks.push(ServerAsk {
                    has: ask.has.map(|has| longer_report(tolerance, has)),
                    outstanding: ask.outstanding.map(|has| longer_report(tolerance, has)),
                    ..ask
                });
            }
        });
        Poll::Pending
    }

    /// The first message of a stream to the parent if there is nothing to ask: it names this node.
    pub fn upstream_greeting(&self, now: Time) -> Option<GetServerCapacity> {
        let mastership = self.mastership(now);
        let own_epoch = match mastership {
            Mastership::Master { epoch } => epoch.or(self.config.starts),
            Mastership::Elsewhere { .. } | Mastership::Unknown => None,
        };
        Some(GetServerCapacity {
            server: HolderName::new(&self.config.name).ok()?,
            epoch: own_epoch,
            incarnation: Some(self.config.incarnation),
            caller: None,
            mastership: Some(self.mastership_id),
            sequence: None,
            height: 1,
            // The driver knows it.
            address: None,
            asks: Vec::new(),
        })
    }

    /// Handles an answer or a push of the parent, one resource at a time: an invalid answer for a resource changes
    /// nothing and becomes a [`NodeEvent`].
    pub fn handle_upstream_reply(&mut self, reply: &GetServerCapacityReply, now: Time) {
        let mut answered = UpstreamAnswered::default();
        to_end(|| self.upstream_reply_next(reply, &mut answered, now));
    }

    /// Brings the next lease or refusal into force. Returns whether all of them are; not if another mastership has
    /// begun meanwhile, which has asked for none of it.
    pub fn upstream_reply_next(
        &mut self,
        reply: &GetServerCapacityReply,
        answered: &mut UpstreamAnswered,
        now: Time,
    ) -> Poll<bool> {
        match answered.mastership {
            None => {
                answered.mastership = Some(self.mastership_id);
                answered.in_cycle = self.note_ancestors(reply);
            }
            Some(begun) if begun != self.mastership_id => return Poll::Ready(false),
            Some(_) => {}
        }
        if let Some(lease) = reply.leases.get(answered.leases) {
            answered.leases += 1;
            if answered.in_cycle {
                let reason = RefusalReason::RefusedByParent;
                self.handle_upstream_refusal(&lease.resource, reason, now);
            } else {
                self.handle_upstream_lease(lease, now);
            }
        } else if let Some(refusal) = reply.refused.get(answered.refused) {
            answered.refused += 1;
            self.handle_upstream_refusal(&refusal.resource, refusal.reason, now);
        } else {
            return Poll::Ready(true);
        }
        Poll::Pending
    }

    /// Notes the ancestors that the parent names. Returns whether this node is among them.
    fn note_ancestors(&mut self, reply: &GetServerCapacityReply) -> bool {
        let is_in_cycle = reply.ancestors.contains(&self.config.name);
        let was_in_cycle = std::mem::replace(&mut self.upstream.in_cycle, is_in_cycle);
        match (was_in_cycle, is_in_cycle) {
            (false, true) => self.push_event(NodeEvent::Cycle {
                ancestors: reply.ancestors.clone(),
            }),
            (true, false) => self.push_event(NodeEvent::CycleEnded),
            (true, true) | (false, false) => {}
        }
        if !is_in_cycle {
            self.upstream.ancestors.clone_from(&reply.ancestors);
        }
        is_in_cycle
    }

    fn handle_upstream_lease(&mut self, lease: &ServerLease, now: Time) {
        if self.budgets.contains(&lease.resource) {
            self.handle_upstream_budget(lease, now);
            return;
        }
        self.bring_up_to_date(&lease.resource, now);
        let Some(Entry { resource, .. }) = self.resources.get_mut(&lease.resource) else {
            return;
        };
        let received = shorter_server_lease(self.config.clock_tolerance, lease.clone());
        let learned_before = resource.learning_remaining(now).is_some();
        let result = resource.handle_upstream_lease(received, now);
        if let Some(left) = resource.learning_remaining(now).filter(|_| !learned_before) {
            self.push_event(NodeEvent::LearningBegan {
                resource: lease.resource.clone(),
                left,
            });
        }
        match result {
            Ok(Some(sequence))
                if sequence > self.upstream.wall_micros.saturating_add(AHEAD_MICROS) =>
            {
                let problem = format!(
                    "it answers a request of number {sequence}, which this node cannot have sent; somebody \
                     else asked in its name"
                );
                self.handle_invalid_upstream_answer(&lease.resource, problem, now);
            }
            Ok(Some(sequence)) => {
                self.upstream.sequence = self.upstream.sequence.max(sequence);
            }
            Ok(None) => {}
            Err(problem) => self.handle_invalid_upstream_answer(&lease.resource, problem, now),
        }
        self.settle(&lease.resource, now);
    }

    /// The parent's answer for a resource is invalid; `problem` is for the log.
    pub fn handle_invalid_upstream_answer(&mut self, id: &ResourceId, problem: String, now: Time) {
        let handle = |resource: &mut Resource| resource.handle_invalid_upstream_answer(now);
        if self.change_resource(id, now, handle) == Some(true) {
            let resource = id.clone();
            self.push_event(NodeEvent::InvalidParentAnswer { resource, problem });
        }
    }

    /// The connection to the parent broke, or another server answers now: messages in flight may be lost, and
    /// everything is asked again. O(budgets): [`Node::handle_timeout`] does the rest, which is due at once.
    pub fn handle_upstream_lost(&mut self, now: Time) {
        self.begin_sweep_of_lost_parent(now);
        self.sweep_some(now);
        self.ask_again_for_budgets(now);
    }

    /// The parent knows a newer start of this node. Of a node without an election, that is another live process, which has
    /// the node's name: this one grants nothing more from its leases. Masters that were elected hear of each other in etcd.
    /// O(1), as above.
    pub fn handle_newer_start(&mut self, now: Time) {
        if self.mastership(now).epoch().is_none() {
            self.begin_sweep_of_newer_start(now);
            self.sweep_some(now);
        }
    }

    /// How soon what changes goes up from now on. O(1), as above.
    pub fn handle_upstream_pace(&mut self, pace: ParentPace, now: Time) {
        if self.upstream.pace != pace {
            self.upstream.pace = pace;
            self.begin_sweep(now);
            self.sweep_some(now);
        }
    }

    /// When the last lease ends that this node has of its parent, of up to `max` resources after that one in the order
    /// of their ids, and where to go on if there may be more: for when the parent seems to have gone back to an older
    /// mastership. None: it has none, or is the root.
    pub fn upstream_leases_end_after(
        &self,
        after: Option<&ResourceId>,
        max: usize,
        now: Time,
    ) -> (Option<Time>, Option<ResourceId>) {
        let (mut end, mut seen, mut last) = (None, 0, None);
        for (id, entry) in self.resources.after(after).take(max) {
            let ends = entry.resource.own_lease_ends();
            end = end.max(ends.filter(|ends| *ends > now));
            (seen, last) = (seen + 1, Some(id));
        }
        (end, last.filter(|_| seen == max).cloned())
    }

    /// The nodes from the parent up to the root, as far as the parent has sent them.
    pub fn ancestors(&self) -> &[String] {
        &self.upstream.ancestors
    }

    /// Whether this node is among its parent's ancestors.
    pub fn is_in_cycle(&self) -> bool {
        self.upstream.in_cycle
    }

    fn handle_upstream_refusal(&mut self, id: &ResourceId, reason: RefusalReason, now: Time) {
        let is_elected = self.mastership(now).epoch().is_some();
        let reason = match reason {
            // It will hear of a newer master in etcd.
            RefusalReason::AnotherProcess(_) if is_elected => RefusalReason::NotReady,
            reason => reason,
        };
        if self.budgets.contains(id) {
            self.handle_budget_refusal(id, reason, now);
            return;
        }
        let handle = |resource: &mut Resource| resource.handle_upstream_refusal(reason, now);
        if self.change_resource(id, now, handle) == Some(true) {
            let resource = id.clone();
            self.push_event(NodeEvent::RefusedByParent { resource, reason });
        }
    }
}

// Durations in messages between this node and others, by the tolerance of this node's clock. In both directions,
// promises become shorter and reports longer.

/// Returns a report of `has` or `outstanding` that lasts longer.
pub(super) fn longer_report(tolerance: Tolerance, has: Has) -> Has {
    Has {
        expires_in: has.expires_in.map(|lasts| tolerance.report(lasts)),
        ..has
    }
}

/// Returns the lease of a client, which ends sooner.
pub(super) fn shorter_lease(tolerance: Tolerance, lease: ClientLease) -> ClientLease {
    let expires_in = tolerance.promise(lease.expires_in);
    ClientLease {
        expires_in,
        refresh_in: pace::within_lease(lease.refresh_in, expires_in),
        ..lease
    }
}

/// Returns the lease of a child server, or of this one, which ends sooner. Reports in it last longer.
pub(super) fn shorter_server_lease(tolerance: Tolerance, lease: ServerLease) -> ServerLease {
    let expires_in = tolerance.promise(lease.expires_in);
    ServerLease {
        expires_in,
        refresh_in: pace::within_lease(lease.refresh_in, expires_in),
        terms: ParentTerms {
            reserved_for: lease.terms.reserved_for.map(|it| tolerance.report(it)),
            inherited_for: lease.terms.inherited_for.map(|it| tolerance.report(it)),
            ..lease.terms
        },
        ..lease
    }
}
