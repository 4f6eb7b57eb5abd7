//! A node's child servers: their requests, and pushes to them.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::id::{HolderId, HolderName, Incarnation, ResourceId};
use crate::node::ancestry::Cycle;
use crate::node::event::NodeEvent;
use crate::node::mastership::Outcome;
use crate::node::spans::Spans;
use crate::node::{Entry, Node};
use crate::planted::{self, Bug};
use crate::request::server::{GetServerCapacity, GetServerCapacityReply, ServerLease, Via};
use crate::resource::Resource;
use crate::snapshot::LeaseSnapshot;
use crate::time::Time;

/// What is to be pushed to child servers.
#[derive(Debug, Default)]
pub struct Children {
    /// Those that have a stream open.
    subscribed: BTreeSet<HolderName>,
    /// Resources of which they may get something else now.
    unsettled: BTreeSet<ResourceId>,
    /// Whether any has asked for anything, of this master.
    known: bool,
    /// Those that were refused as ancestors: each is logged once.
    refused: BTreeSet<HolderName>,
}

/// Refused ancestors that are remembered.
const REFUSED_MAX: usize = 1_000;

/// How long a process is refused a stream after it was seen that it came later than another one that
/// lives. The other one's stream, if it has one, must be there still.
const REFUSED_LENGTH: Duration = Duration::from_secs(60);

/// Leases of child servers that are looked at by one call, at most, but for those of the last
/// resource: a few milliseconds.
const LEASES_PER_POLL: usize = 2_000;

impl Children {
    pub(super) fn note_unsettled(&mut self, id: &ResourceId, resource: &Resource) {
        let is_forgotten = planted::is(Bug::PushesForgotten);
        if !is_forgotten && !self.subscribed.is_empty() && resource.children().next().is_some() {
            self.unsettled.insert(id.clone());
        }
    }

    /// Mastership changed. Returns what was to be pushed.
    pub(super) fn forget(&mut self) -> BTreeSet<ResourceId> {
        self.known = false;
        std::mem::take(&mut self.unsettled)
    }
}

impl Node {
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
        if let Err(cycle) = self.check_cycle(&request.server) {
            if self.children.refused.len() < REFUSED_MAX
                && self.children.refused.insert(request.server.clone())
            {
                self.push_event(NodeEvent::CycleRefused(cycle.clone()));
            }
            return Err(cycle);
        }
        self.children.refused.remove(&request.server);
        if let Err(mastership) = self.check_master(now) {
            self.counters.redirected += 1;
            return Ok(Outcome::NotMaster(mastership));
        }
        self.children.known = true;
        let holder = HolderId::server(request.server.clone());
        let (leases, refused) = self.answer_each(
            &request.asks,
            |ask| &ask.resource,
            |node, asked| node.handle_server_ask(&holder, request, asked, via, now),
        );
        Ok(Outcome::Served(GetServerCapacityReply {
            leases,
            refused,
            ..self.empty_reply()
        }))
    }

    /// Whether a process that asks as a child server was refused lately, since another live process of
    /// that name was there first.
    pub fn is_refused(&self, server: &HolderName, process: Option<Incarnation>, now: Time) -> bool {
        let holder = HolderId::server(server.clone());
        let ago = self.conflicts.refused_ago(&holder, process, now);
        ago.is_some_and(|ago| ago < REFUSED_LENGTH)
    }

    /// A child server has a stream open, or has it no more.
    pub fn handle_subscription(&mut self, server: &HolderName, open: bool) {
        if open {
            self.children.subscribed.insert(server.clone());
        } else {
            self.children.subscribed.remove(server);
        }
    }

    /// Whether child servers have asked for anything since this node became master.
    pub fn has_child_servers(&self) -> bool {
        self.children.known
    }

    /// Whether [`Node::poll_pushes`] may have a push.
    pub fn has_pushes(&self) -> bool {
        !self.children.unsettled.is_empty()
    }

    /// What child servers with a stream get from now on, where that differs from their last answer.
    /// Does a bounded amount of work; there may be more.
    pub fn poll_pushes(&mut self, now: Time) -> Vec<(HolderName, GetServerCapacityReply)> {
        if self.check_master(now).is_err() {
            return Vec::new();
        }
        let tolerance = self.config.clock_tolerance;
        let mut leases: Vec<(HolderName, ServerLease)> = Vec::new();
        let mut looked_at = 0;
        while looked_at < LEASES_PER_POLL {
            let Some(id) = self.children.unsettled.pop_first() else {
                break;
            };
            self.bring_up_to_date(&id, now);
            let Some(Entry { resource, .. }) = self.resources.get_mut(&id) else {
                continue;
            };
            let children: Vec<_> = resource
                .children()
                .filter(|(name, _)| self.children.subscribed.contains(*name))
                .map(|(name, slot)| (name.clone(), slot))
                .collect();
            looked_at += children.len().max(1);
            for (name, slot) in children {
                let lease = resource
                    .regrant(slot, now)
                    .and_then(|answer| resource.pushed_lease(&name, &answer, now));
                leases.extend(lease.map(|lease| (name, tolerance.server_lease(lease))));
            }
            self.settle(&id);
            // What was granted just now is no reason to look again.
            self.children.unsettled.remove(&id);
        }
        leases.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut replies: Vec<(HolderName, GetServerCapacityReply)> = Vec::new();
        for (name, lease) in leases {
            if replies.last().is_none_or(|(last, _)| *last != name) {
                replies.push((name, self.empty_reply()));
            }
            if let Some((_, reply)) = replies.last_mut() {
                reply.leases.push(lease);
            }
        }
        replies
    }

    /// The child servers that hold something of a resource.
    pub fn child_snapshots(&self, resource: &ResourceId, now: Time) -> Vec<LeaseSnapshot> {
        self.resources
            .get(resource)
            .map_or_else(Vec::new, |entry| entry.resource.child_snapshots(now))
    }

    fn empty_reply(&self) -> GetServerCapacityReply {
        let own = std::iter::once(self.config.name.clone());
        GetServerCapacityReply {
            ancestors: own.chain(self.ancestors().iter().cloned()).collect(),
            ..GetServerCapacityReply::default()
        }
    }
}
