//! A node's child servers: their streams, pushes to them, and the check that none of them is an ancestor.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Poll;
use std::time::Duration;

use crate::id::{HolderId, HolderKind, HolderName, Incarnation, MastershipId, ResourceId};
use crate::messages::{
    Cycle, GetServerCapacityReply, LeaseSnapshot, LeasesFrom, NodeEvent, ServerLease,
};
use crate::node::child_servers::ChildServers;
use crate::node::upstream::shorter_server_lease;
use crate::node::{Node, to_end};
use crate::resource::Resource;
use crate::time::Time;

/// Child servers, and the resources that are to be pushed to them.
#[derive(Debug, Default)]
pub struct Children {
    /// Child servers with an open stream.
    pub(super) subscribed: BTreeSet<HolderName>,
    /// Resources of which they may get something else now.
    unsettled: BTreeSet<ResourceId>,
    /// Resources that are looked at now, in this order. All of them come before one that changes again.
    round: BTreeSet<ResourceId>,
    /// The last child that was looked at, of the first resource of the round.
    after: Option<HolderName>,
    /// Whether any has asked for anything, of this master.
    pub(super) known: bool,
    /// Child servers that were refused as ancestors: each is logged once.
    refused: BTreeSet<HolderName>,
    pub(super) servers: ChildServers,
}

/// Number of refused ancestors kept.
const REFUSED_MAX: usize = 1_000;

/// Time for which a process is refused a stream after another live process of its name was found to be earlier. The
/// other one's stream, if it has one, must be there still.
const REFUSED_LENGTH: Duration = Duration::from_secs(60);

/// Leases of child servers that are looked at for one push, at most.
const LEASES_PER_POLL: usize = 2_000;

impl Children {
    pub(super) fn note_unsettled(&mut self, id: &ResourceId, resource: &Resource) {
        if !self.subscribed.is_empty() && resource.children_after(None).next().is_some() {
            self.unsettled.insert(id.clone());
        }
    }

    /// Mastership changed. Returns what was to be pushed, and the record of child servers.
    pub(super) fn forget(&mut self) -> ([BTreeSet<ResourceId>; 2], ChildServers) {
        self.known = false;
        self.after = None;
        let unsettled = [&mut self.unsettled, &mut self.round].map(std::mem::take);
        (unsettled, std::mem::take(&mut self.servers))
    }
}

/// Leases to be pushed: child servers with a stream get them from now on, and they differ from the last answers. Their
/// number is bounded; there may be more to push.
#[derive(Debug, Default)]
pub struct Pushes {
    replies: BTreeMap<HolderName, GetServerCapacityReply>,
    looked_at: usize,
    /// None: nothing is looked at yet.
    mastership: Option<MastershipId>,
}

impl Node {
    /// Refuses a child server that is an ancestor of this node.
    pub(super) fn check_child(&mut self, child: &HolderName) -> Result<(), Cycle> {
        let Err(cycle) = self.check_cycle(child) else {
            self.children.refused.remove(child);
            return Ok(());
        };
        let is_news = self.children.refused.len() < REFUSED_MAX;
        if is_news && self.children.refused.insert(child.clone()) {
            self.push_event(NodeEvent::CycleRefused(cycle.clone()));
        }
        Err(cycle)
    }

    /// Whether a process that asks as a child server was refused lately, since another live process of
    /// that name was there first.
    pub fn is_refused(&self, server: &HolderName, process: Option<Incarnation>, now: Time) -> bool {
        let process = HolderId {
            process,
            ..HolderId::server(server.clone())
        };
        let ago = self.conflicts.refused_ago(&process, now);
        ago.is_some_and(|ago| ago < REFUSED_LENGTH)
    }

    /// Notes that a child server has opened or closed a stream.
    pub fn handle_subscription(&mut self, server: &HolderName, open: bool, now: Time) {
        self.children.servers.note_stream(server, open, now);
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
        !self.children.unsettled.is_empty() || !self.children.round.is_empty()
    }

    /// Returns the leases that child servers with a stream get from now on: see [`Pushes`].
    pub fn poll_pushes(&mut self, now: Time) -> Vec<(HolderName, GetServerCapacityReply)> {
        let mut pushes = Pushes::default();
        to_end(|| self.push_next(&mut pushes, now))
    }

    /// Looks at the next child server of the next resource. Resources that change meanwhile are for the next pushes.
    /// Another mastership pushes nothing that this one granted.
    pub fn push_next(
        &mut self,
        pushes: &mut Pushes,
        now: Time,
    ) -> Poll<Vec<(HolderName, GetServerCapacityReply)>> {
        let is_master = self.check_master(now).is_ok();
        let begun = pushes.mastership.replace(self.mastership_id);
        if !is_master || begun.is_some_and(|begun| begun != self.mastership_id) {
            return Poll::Ready(Vec::new());
        }
        let children = &mut self.children;
        if begun.is_none() && children.round.is_empty() {
            children.round = std::mem::take(&mut children.unsettled);
        }
        let next = children.round.first().cloned();
        let Some(id) = next.filter(|_| pushes.looked_at < LEASES_PER_POLL) else {
            return Poll::Ready(std::mem::take(&mut pushes.replies).into_iter().collect());
        };
        pushes.looked_at += 1;
        if let Some((child, lease)) = self.push_of(&id, now) {
            let reply = pushes.replies.entry(child);
            let reply = reply.or_insert_with(|| self.empty_reply());
            reply.leases.push(lease);
        }
        Poll::Pending
    }

    /// Looks at the next child of the first resource of the round. Returns what it gets from now on, if that is news.
    fn push_of(&mut self, id: &ResourceId, now: Time) -> Option<(HolderName, ServerLease)> {
        self.bring_up_to_date(id, now);
        let after = self.children.after.take();
        let slot = self.resources.find(id);
        let found = slot.and_then(|slot| {
            let resource = &mut self.resources.at_mut(slot)?.resource;
            let (child, holding) = resource.children_after(after.as_ref()).next()?;
            Some((slot, child.clone(), holding, resource))
        });
        let Some((slot, child, holding, resource)) = found else {
            self.children.round.remove(id);
            return None;
        };
        self.children.after = Some(child.clone());
        if !self.children.subscribed.contains(&child) {
            return None;
        }
        let lease = resource
            .regrant(holding, now)
            .and_then(|answer| resource.pushed_lease(&child, &answer, now));
        // A change since the round began is a reason to look again, and this grant is none.
        let is_unsettled = self.children.unsettled.contains(id);
        self.settle_at(slot, now);
        if !is_unsettled {
            self.children.unsettled.remove(id);
        }
        let lease = shorter_server_lease(self.config.clock_tolerance, lease?);
        self.children.servers.note_lease(&child, &lease, now);
        Some((child, lease))
    }

    /// The child servers that hold something of a resource. O(leases).
    pub fn child_snapshots(&self, resource: &ResourceId, now: Time) -> Vec<LeaseSnapshot> {
        let (mut leases, _) = self.leases_from(resource, &LeasesFrom::Start, "", usize::MAX, now);
        leases.retain(|lease| lease.holder.kind == HolderKind::Server);
        leases
    }

    pub(super) fn empty_reply(&self) -> GetServerCapacityReply {
        let own = std::iter::once(self.config.name.clone());
        GetServerCapacityReply {
            ancestors: own.chain(self.ancestors().iter().cloned()).collect(),
            ..GetServerCapacityReply::default()
        }
    }
}

impl Node {
    /// Whether a node may be a child of this one.
    ///
    /// # Errors
    ///
    /// If it is one of those above, or this one.
    pub(super) fn check_cycle(&self, child: &HolderName) -> Result<(), Cycle> {
        let node = &self.config.name;
        let up = std::iter::once(node).chain(self.ancestors());
        match up.clone().position(|name| name == child.as_str()) {
            None => Ok(()),
            Some(position) => Err(Cycle {
                child: child.to_string(),
                node: node.clone(),
                path: up.take(position + 1).cloned().collect(),
            }),
        }
    }
}
