//! A node and its parent: which resources to ask for and when, and the answers.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::id::{HolderName, ResourceId};
use crate::node::event::NodeEvent;
use crate::node::spans::Spans;
use crate::node::upstream_calls::{UpstreamReplyCall, UpstreamRequestCall};
use crate::node::{Entry, Node};
use crate::request::RefusalReason;
use crate::request::server::{GetServerCapacity, GetServerCapacityReply, ServerLease};
use crate::resource::parent_answer::Applied;
use crate::resource::parent_request::Pace;
use crate::time::{Due, Time};

/// How far ahead of ours the clock of another server of the node may be, from which it numbers its
/// requests: a day, in microseconds.
const AHEAD_MICROS: u64 = 86_400_000_000;

/// What a node knows of its parent.
#[derive(Debug)]
pub(crate) struct NodeUpstream {
    pace: Pace,
    /// When to ask for which resource.
    due: BTreeSet<(Time, ResourceId)>,
    sequence: u64,
    /// The wall clock, when the parent was last asked.
    wall_micros: u64,
    /// The nodes from the parent up to the root.
    ancestors: Vec<String>,
    in_cycle: bool,
}

impl Default for NodeUpstream {
    fn default() -> Self {
        let second = Duration::from_secs(1);
        Self {
            pace: Pace {
                round: second,
                slow: second,
            },
            due: BTreeSet::new(),
            sequence: 0,
            wall_micros: 0,
            ancestors: Vec::new(),
            in_cycle: false,
        }
    }
}

impl NodeUpstream {
    /// How soon what changed goes up.
    pub(super) fn pace(&self) -> Pace {
        self.pace
    }

    /// The parent was to be asked for a resource at `before`, and is to be asked at `after`.
    pub(super) fn reschedule(&mut self, id: &ResourceId, before: Due, after: Due) {
        if before != after {
            if let Some(before) = before.time() {
                self.due.remove(&(before, id.clone()));
            }
            if let Some(after) = after.time() {
                self.due.insert((after, id.clone()));
            }
        }
    }

    /// Up to so many resources that are due, or soon: these go with what is due now.
    pub(super) fn due_by(&self, now: Time, max: usize) -> Vec<ResourceId> {
        let soon = now + self.pace.round / 4;
        let due = self.due.iter().take_while(|(time, _)| *time <= soon);
        due.take(max).map(|(_, id)| id.clone()).collect()
    }

    /// The number of the next request, by the wall clock.
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

    /// What to ask the parent now: an [`UpstreamRequestCall`], all at once.
    pub fn poll_upstream_request(
        &mut self,
        wall_micros: u64,
        now: Time,
    ) -> Option<GetServerCapacity> {
        self.do_all(UpstreamRequestCall::new(wall_micros), now)
    }

    /// The first message of a stream to the parent if there is nothing to ask: it names this node.
    pub fn upstream_greeting(&self, now: Time) -> Option<GetServerCapacity> {
        let mastership = self.mastership(now);
        Some(GetServerCapacity {
            server: HolderName::new(&self.config.name).ok()?,
            epoch: mastership.epoch().filter(|_| mastership.is_master()),
            incarnation: Some(self.config.incarnation),
            caller: None,
            mastership: Some(self.mastership_id),
            sequence: None,
            height: 1,
            asks: Vec::new(),
        })
    }

    /// The parent answered, or pushed a change: an [`UpstreamReplyCall`], all at once.
    pub fn handle_upstream_reply(&mut self, reply: &GetServerCapacityReply, now: Time) {
        self.do_all(UpstreamReplyCall::new(reply), now);
    }

    /// What the parent says of those above it. Returns whether this node is among them.
    pub(super) fn note_ancestors(&mut self, reply: &GetServerCapacityReply) -> bool {
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

    pub(super) fn handle_upstream_lease(&mut self, lease: &ServerLease, now: Time) {
        self.bring_up_to_date(&lease.resource, now);
        let Some(Entry { resource, .. }) = self.resources.get_mut(&lease.resource) else {
            return;
        };
        let received = self.config.clock_tolerance.received_server_lease(lease);
        match resource.handle_upstream_lease(&received, now) {
            Ok(Applied::Behind(sequence))
                if sequence > self.upstream.wall_micros.saturating_add(AHEAD_MICROS) =>
            {
                let problem = format!(
                    "it answers a request of number {sequence}, which this node cannot have sent; somebody \
                     else asked in its name"
                );
                self.handle_invalid_upstream_answer(&lease.resource, problem, now);
            }
            Ok(Applied::Behind(sequence)) => {
                self.upstream.sequence = self.upstream.sequence.max(sequence);
            }
            Ok(Applied::InForce | Applied::Stale) => {}
            Err(problem) => self.handle_invalid_upstream_answer(&lease.resource, problem, now),
        }
        self.settle(&lease.resource);
    }

    /// The parent's answer for a resource is invalid; `problem` is for the log.
    pub fn handle_invalid_upstream_answer(&mut self, id: &ResourceId, problem: String, now: Time) {
        self.bring_up_to_date(id, now);
        let Some(Entry { resource, .. }) = self.resources.get_mut(id) else {
            return;
        };
        if resource.handle_invalid_upstream_answer(now) {
            self.push_event(NodeEvent::InvalidParentAnswer {
                resource: id.clone(),
                problem,
            });
        }
        self.settle(id);
    }

    /// The connection to the parent broke, or another server answers now: messages in flight may be lost, and everything
    /// is asked again. O(1): [`Node::handle_timeout`] does the rest, which is due at once.
    pub fn handle_upstream_lost(&mut self, now: Time) {
        self.begin_sweep_of_lost_parent(now);
        self.sweep_some(now);
    }

    /// How soon what changes goes up from now on. O(1), as above.
    pub fn handle_upstream_pace(&mut self, pace: Pace, now: Time) {
        if self.upstream.pace != pace {
            self.upstream.pace = pace;
            self.begin_sweep(now);
            self.sweep_some(now);
        }
    }

    /// When the last lease ends that this node has of its parent. None: it has none, or is the root.
    /// O(resources): [`Node::upstream_leases_end_after`] is for who must not hold up requests.
    pub fn upstream_leases_end(&self, now: Time) -> Option<Time> {
        self.upstream_leases_end_after(None, usize::MAX, now).0
    }

    /// The same of up to `max` resources after that one in the order of their ids, and where to go on if there may be
    /// more: for when the parent seems to have gone back to an older mastership.
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

    pub(super) fn handle_upstream_refusal(
        &mut self,
        id: &ResourceId,
        reason: RefusalReason,
        now: Time,
    ) {
        self.bring_up_to_date(id, now);
        let Some(Entry { resource, .. }) = self.resources.get_mut(id) else {
            return;
        };
        if resource.handle_upstream_refusal(reason, now) {
            self.push_event(NodeEvent::RefusedByParent {
                resource: id.clone(),
                reason,
            });
        }
        self.settle(id);
    }
}
