//! Requests of a node to its parent, and the answers. Both may name hundreds of resources, and are done in
//! [parts](super::parts).

use std::time::Duration;

use crate::id::ResourceId;
use crate::node::parts::{DoneIn, InParts, STEPS_PER_RESOURCE};
use crate::node::spans::Spans;
use crate::node::{Entry, Node};
use crate::request::RefusalReason;
use crate::request::server::{GetServerCapacity, GetServerCapacityReply, ServerLease};
use crate::time::Time;

/// Resources in one request, at most.
const RESOURCES_PER_REQUEST_MAX: usize = 500;

/// Points of demand curves in one request, at most, but for the last resource in it: 16 bytes each,
/// so that a message stays well within what servers take (4 MiB).
const POINTS_PER_REQUEST_MAX: usize = 64 * 1024;

/// What a point takes of a curve that is made.
const STEPS_PER_CURVE_POINT: usize = 2;

/// Resources that are only found to be due, in a step.
const FOUND_PER_STEP: usize = 4;

/// Asks what to ask the parent now, if anything is due. There may be more: ask again.
#[derive(Debug)]
pub struct UpstreamRequestCall {
    /// The wall clock in microseconds, from which sequences start: they grow over restarts, and over the servers
    /// of a node.
    wall_micros: u64,
    begun: Option<BegunRequest>,
    done_in: DoneIn,
}

/// A request, and what is still to be put in.
#[derive(Debug)]
struct BegunRequest {
    request: GetServerCapacity,
    sequence: u64,
    due: std::vec::IntoIter<ResourceId>,
    points: usize,
}

impl UpstreamRequestCall {
    /// Nothing is in the request yet.
    pub fn new(wall_micros: u64) -> Self {
        Self {
            wall_micros,
            begun: None,
            done_in: DoneIn::default(),
        }
    }
}

impl InParts for UpstreamRequestCall {
    type Answer = Option<GetServerCapacity>;

    fn next_part(&mut self, node: &mut Node, now: Time) -> Option<Self::Answer> {
        node.begin_part();
        if node.check_master(now).is_err() || self.done_in.is_another(node) {
            return Some(None);
        }
        if self.begun.is_none() {
            self.begun = node.begin_upstream_request(self.wall_micros, now);
        }
        let Some(begun) = &mut self.begun else {
            return Some(None);
        };
        while node.has_steps_left() {
            // Beyond that many points, the others are due still.
            let next = begun.due.next();
            let Some(id) = next.filter(|_| begun.points <= POINTS_PER_REQUEST_MAX) else {
                let request = self.begun.take().map(|begun| begun.request);
                return Some(request.filter(|request| !request.asks.is_empty()));
            };
            begun.put_in(node, &id, now);
        }
        None
    }
}

impl BegunRequest {
    /// Puts in what is asked of a resource.
    fn put_in(&mut self, node: &mut Node, id: &ResourceId, now: Time) {
        node.bring_up_to_date(id, now);
        node.note_steps(STEPS_PER_RESOURCE);
        let Some(slot) = node.resources.find(id) else {
            return;
        };
        let Some(Entry { resource, .. }) = node.resources.at_mut(slot) else {
            return;
        };
        self.request.height = self.request.height.max(resource.height());
        let ask = resource.ask_upstream(self.sequence, now);
        let ask = ask.map(|ask| node.config.clock_tolerance.server_ask(ask));
        let points = ask.as_ref().map_or(0, |ask| ask.demand.points());
        self.points += points;
        self.request.asks.extend(ask);
        node.note_steps(points * STEPS_PER_CURVE_POINT);
        node.settle_at(slot);
    }
}

impl Node {
    /// A request to the parent, with nothing in it yet, and for what. None: nothing is due.
    fn begin_upstream_request(&mut self, wall_micros: u64, now: Time) -> Option<BegunRequest> {
        self.poll_upstream_timeout().filter(|first| *first <= now)?;
        let mut request = self.upstream_greeting(now)?;
        let due = self.upstream.due_by(now, RESOURCES_PER_REQUEST_MAX);
        self.note_steps(due.len() / FOUND_PER_STEP);
        let sequence = self.upstream.next_sequence(wall_micros);
        request.sequence = Some(sequence);
        Some(BegunRequest {
            request,
            sequence,
            due: due.into_iter(),
            points: 0,
        })
    }
}

/// The parent answered, or pushed a change. Every resource is handled by itself: an invalid answer changes nothing and
/// becomes a [`NodeEvent`](crate::node::event::NodeEvent). Returns which resources begin to learn by it, for the parent's
/// first answer says for how long; nothing if another mastership has begun meanwhile, which has asked for none of it.
#[derive(Debug)]
pub struct UpstreamReplyCall<'a> {
    reply: &'a GetServerCapacityReply,
    /// Whether this node is its own ancestor: then nothing counts of what the parent says. None: nobody has looked yet.
    in_cycle: Option<bool>,
    leases: usize,
    refused: usize,
    begun: Vec<BeganToLearn>,
    done_in: DoneIn,
}

/// A resource that has begun to learn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeganToLearn {
    /// Which one.
    pub resource: ResourceId,
    /// For how long from then on.
    pub left: Duration,
}

impl<'a> UpstreamReplyCall<'a> {
    /// Nothing of it is in force yet.
    pub fn new(reply: &'a GetServerCapacityReply) -> Self {
        Self {
            reply,
            in_cycle: None,
            leases: 0,
            refused: 0,
            begun: Vec::new(),
            done_in: DoneIn::default(),
        }
    }

    /// Brings a lease into force.
    fn put_in_force(&mut self, lease: &ServerLease, node: &mut Node, now: Time) {
        let resource = &lease.resource;
        let learned_before = node.learning_left(resource, now).is_some();
        node.handle_upstream_lease(lease, now);
        if let Some(left) = node.learning_left(resource, now)
            && !learned_before
        {
            let resource = resource.clone();
            self.begun.push(BeganToLearn { resource, left });
        }
    }
}

impl InParts for UpstreamReplyCall<'_> {
    type Answer = Option<Vec<BeganToLearn>>;

    fn next_part(&mut self, node: &mut Node, now: Time) -> Option<Self::Answer> {
        node.begin_part();
        if self.done_in.is_another(node) {
            return Some(None);
        }
        let reply = self.reply;
        let in_cycle = *self
            .in_cycle
            .get_or_insert_with(|| node.note_ancestors(reply));
        while node.has_steps_left() {
            node.note_steps(STEPS_PER_RESOURCE);
            if let Some(lease) = reply.leases.get(self.leases) {
                self.leases += 1;
                if in_cycle {
                    let reason = RefusalReason::RefusedByParent;
                    node.handle_upstream_refusal(&lease.resource, reason, now);
                } else {
                    self.put_in_force(lease, node, now);
                }
            } else if let Some(refusal) = reply.refused.get(self.refused) {
                self.refused += 1;
                node.handle_upstream_refusal(&refusal.resource, refusal.reason, now);
            } else {
                return Some(Some(std::mem::take(&mut self.begun)));
            }
        }
        None
    }
}
