//! A node and its parent: which resources to ask for and when, and the answers.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::id::{HolderName, ResourceId};
use crate::node::event::NodeEvent;
use crate::node::spans::Spans;
use crate::node::{Entry, Node};
use crate::request::server::{GetServerCapacity, GetServerCapacityReply};
use crate::request::{Refusal, RefusalReason};
use crate::resource::parent_answer::Applied;
use crate::resource::parent_request::Pace;
use crate::time::Time;

/// Resources in one request, at most.
const RESOURCES_PER_REQUEST_MAX: usize = 500;

/// Points of demand curves in one request, at most, but for the last resource in it: 16 bytes each,
/// so that a message stays well within what servers take (4 MiB).
const POINTS_PER_REQUEST_MAX: usize = 64 * 1024;

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

    pub(super) fn reschedule(
        &mut self,
        id: &ResourceId,
        before: Option<Time>,
        after: Option<Time>,
    ) {
        if before != after {
            if let Some(time) = before {
                self.due.remove(&(time, id.clone()));
            }
            if let Some(time) = after {
                self.due.insert((time, id.clone()));
            }
        }
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

    /// What to ask the parent now, if anything is due. There may be more: ask again.
    ///
    /// `wall_micros` is the wall clock in microseconds, from which sequences start: they grow over
    /// restarts, and over the servers of a node.
    pub fn poll_upstream_request(
        &mut self,
        wall_micros: u64,
        now: Time,
    ) -> Option<GetServerCapacity> {
        let first = self.upstream.due.first().map(|(time, _)| *time)?;
        if first > now || self.check_master(now).is_err() {
            return None;
        }
        let mut request = self.upstream_greeting(now)?;
        // What is due soon goes with what is due now.
        let soon = now + self.upstream.pace.round / 4;
        let ids: Vec<ResourceId> = self
            .upstream
            .due
            .iter()
            .take_while(|(time, _)| *time <= soon)
            .take(RESOURCES_PER_REQUEST_MAX)
            .map(|(_, id)| id.clone())
            .collect();
        self.upstream.wall_micros = wall_micros;
        let sequence = wall_micros.max(self.upstream.sequence.saturating_add(1));
        self.upstream.sequence = sequence;
        request.sequence = Some(sequence);
        let tolerance = self.config.clock_tolerance;
        let mut points = 0;
        for id in ids {
            if points > POINTS_PER_REQUEST_MAX {
                // The others are due still.
                break;
            }
            self.bring_up_to_date(&id, now);
            let Some(slot) = self.resources.find(&id) else {
                continue;
            };
            if let Some(Entry { resource, .. }) = self.resources.at_mut(slot) {
                request.height = request.height.max(resource.height());
                let ask = resource.ask_upstream(sequence, now);
                points += ask.as_ref().map_or(0, |ask| ask.demand.points());
                request
                    .asks
                    .extend(ask.map(|ask| tolerance.server_ask(ask)));
            }
            self.settle_at(slot);
        }
        (!request.asks.is_empty()).then_some(request)
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

    /// The parent answered, or pushed a change. Every resource is handled by itself: an invalid answer changes nothing and
    /// becomes a [`NodeEvent`].
    pub fn handle_upstream_reply(&mut self, reply: &GetServerCapacityReply, now: Time) {
        if reply.ancestors.contains(&self.config.name) {
            if !std::mem::replace(&mut self.upstream.in_cycle, true) {
                self.push_event(NodeEvent::Cycle {
                    ancestors: reply.ancestors.clone(),
                });
            }
            for lease in &reply.leases {
                self.handle_upstream_refusal(&lease.resource, RefusalReason::RefusedByParent, now);
            }
            for Refusal { resource, reason } in &reply.refused {
                self.handle_upstream_refusal(resource, *reason, now);
            }
            return;
        }
        if std::mem::replace(&mut self.upstream.in_cycle, false) {
            self.push_event(NodeEvent::CycleEnded);
        }
        self.upstream.ancestors.clone_from(&reply.ancestors);
        for lease in &reply.leases {
            self.bring_up_to_date(&lease.resource, now);
            let Some(Entry { resource, .. }) = self.resources.get_mut(&lease.resource) else {
                continue;
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
        for Refusal { resource, reason } in &reply.refused {
            self.handle_upstream_refusal(resource, *reason, now);
        }
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
    /// O(resources): for when the parent seems to have gone back to an older mastership.
    pub fn upstream_leases_end(&self, now: Time) -> Option<Time> {
        let entries = self.resources.values();
        let ends = entries.filter_map(|entry| entry.resource.own_lease_ends());
        ends.filter(|end| *end > now).max()
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
