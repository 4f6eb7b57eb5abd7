//! Streams of child servers and clients: pushes to them, and the check that no child server is an ancestor.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::task::Poll;
use std::time::Duration;

use crate::id::{HolderId, HolderKind, HolderName, Incarnation, MastershipId, ResourceId};
use crate::messages::{
    Cycle, GetCapacityReply, GetServerCapacityReply, LeaseSnapshot, LeasesFrom, NodeEvent,
};
use crate::node::child_servers::ChildServers;
use crate::node::resources::ResourceSlot;
use crate::node::upstream::shorter_server_lease;
use crate::node::{Node, to_end};
use crate::resource::Resource;
use crate::time::Time;

/// Child servers, clients with a stream, and the resources that are to be pushed to them.
#[derive(Debug, Default)]
pub struct Children {
    /// Child servers with an open stream.
    pub(super) subscribed: BTreeSet<HolderName>,
    /// Clients with an open stream.
    pub(super) clients: BTreeSet<HolderId>,
    /// Resources of which they may get something else now.
    unsettled: BTreeSet<ResourceId>,
    /// Resources that are looked at now, in this order. All of them come before one that changes again.
    round: BTreeSet<ResourceId>,
    /// The last child that was looked at, of the first resource of the round.
    after: Option<HolderName>,
    /// Clients that were looked at, of that resource.
    clients_looked_at: usize,
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

/// Clients that are looked at for a resource in a round, at most. The rest is for later rounds, so that resources take
/// turns.
const CLIENTS_PER_ROUND: usize = 512;

impl Children {
    pub(super) fn note_unsettled(&mut self, id: &ResourceId, resource: &Resource) {
        let has_children = || resource.children_after(None).next().is_some();
        if resource.has_streams() || !self.subscribed.is_empty() && has_children() {
            self.unsettled.insert(id.clone());
        }
    }

    /// Mastership changed. Returns what was to be pushed, and the record of child servers.
    pub(super) fn forget(&mut self) -> ([BTreeSet<ResourceId>; 2], ChildServers) {
        self.known = false;
        (self.after, self.clients_looked_at) = (None, 0);
        let unsettled = [&mut self.unsettled, &mut self.round].map(std::mem::take);
        (unsettled, std::mem::take(&mut self.servers))
    }
}

/// Leases to be pushed: child servers and clients with a stream get them from now on, and they differ from the last
/// answers. Their number is bounded; there may be more to push.
#[derive(Debug, Default)]
pub struct Pushes {
    to: Pushed,
    looked_at: usize,
    /// None: nothing is looked at yet.
    mastership: Option<MastershipId>,
}

/// Pushes of a round.
#[derive(Debug, Default)]
pub struct Pushed {
    /// To child servers.
    pub children: BTreeMap<HolderName, GetServerCapacityReply>,
    /// To clients.
    pub clients: BTreeMap<HolderId, GetCapacityReply>,
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

    /// Notes that a client has opened or closed a stream.
    pub fn handle_client_stream(&mut self, client: &HolderId, open: bool) {
        if open {
            self.children.clients.insert(client.clone());
        } else {
            self.children.clients.remove(client);
        }
    }

    /// Returns the number of clients with an open stream.
    pub fn client_streams(&self) -> usize {
        self.children.clients.len()
    }

    /// Whether child servers have asked for anything since this node became master.
    pub fn has_child_servers(&self) -> bool {
        self.children.known
    }

    /// Whether [`Node::poll_pushes`] may have a push.
    pub fn has_pushes(&self) -> bool {
        let has_news = !self.children.unsettled.is_empty() || self.is_in_round();
        has_news || self.budgets.has_rounds()
    }

    /// Whether the last pushes stopped within a round.
    pub fn is_in_round(&self) -> bool {
        !self.children.round.is_empty()
    }

    /// Returns the leases that holders with a stream get from now on: see [`Pushes`].
    pub fn poll_pushes(&mut self, now: Time) -> Pushed {
        let mut pushes = Pushes::default();
        to_end(|| self.push_next(&mut pushes, now))
    }

    /// Looks at the next child server or client of the next resource. Resources that change meanwhile are for the next
    /// pushes. Another mastership pushes nothing that this one granted.
    pub fn push_next(&mut self, pushes: &mut Pushes, now: Time) -> Poll<Pushed> {
        let is_master = self.check_master(now).is_ok();
        let begun = pushes.mastership.replace(self.mastership_id);
        if !is_master || begun.is_some_and(|begun| begun != self.mastership_id) {
            return Poll::Ready(Pushed::default());
        }
        let children = &mut self.children;
        if begun.is_none() && children.round.is_empty() {
            children.round = std::mem::take(&mut children.unsettled);
        }
        let next = children.round.first().cloned();
        if next.is_none() && self.budgets.has_rounds() && pushes.looked_at < LEASES_PER_POLL {
            pushes.looked_at += 1;
            self.push_budget(&mut pushes.to, now);
            return Poll::Pending;
        }
        let Some(id) = next.filter(|_| pushes.looked_at < LEASES_PER_POLL) else {
            return Poll::Ready(std::mem::take(&mut pushes.to));
        };
        pushes.looked_at += 1;
        if self.push_to_child(&id, &mut pushes.to, now).is_none() {
            self.push_to_client(&id, &mut pushes.to, now);
        }
        Poll::Pending
    }

    /// Looks at the next child of the first resource of the round. None: no child is left.
    fn push_to_child(&mut self, id: &ResourceId, to: &mut Pushed, now: Time) -> Option<()> {
        self.bring_up_to_date(id, now);
        let slot = self.resources.find(id)?;
        let resource = &mut self.resources.at_mut(slot)?.resource;
        let next = resource.children_after(self.children.after.as_ref()).next();
        let (child, holding) = next.map(|(child, slot)| (child.clone(), slot))?;
        self.children.after = Some(child.clone());
        if !self.children.subscribed.contains(&child) {
            return Some(());
        }
        let lease = resource
            .regrant(holding, now)
            .and_then(|answer| resource.pushed_lease(&child, &answer, now));
        self.settle_push(id, slot, now);
        if let Some(lease) = lease {
            let lease = shorter_server_lease(self.config.clock_tolerance, lease);
            self.children.servers.note_lease(&child, &lease, now);
            let reply = to.children.entry(child);
            reply
                .or_insert_with(|| self.empty_reply())
                .leases
                .push(lease);
        }
        Some(())
    }

    /// Looks at the next client of the first resource of the round, or ends the resource's turn.
    fn push_to_client(&mut self, id: &ResourceId, to: &mut Pushed, now: Time) {
        let is_over = self.children.clients_looked_at == CLIENTS_PER_ROUND;
        let found = self.resources.find(id);
        let looked_at = found.filter(|_| !is_over).and_then(|slot| {
            let clients = &self.children.clients;
            let resource = &mut self.resources.at_mut(slot)?.resource;
            match resource.push_next(|client| clients.contains(client), now) {
                ControlFlow::Break(()) => None,
                ControlFlow::Continue(push) => Some((slot, push)),
            }
        });
        let Some((slot, push)) = looked_at else {
            (self.children.after, self.children.clients_looked_at) = (None, 0);
            self.children.round.remove(id);
            if is_over {
                self.children.unsettled.insert(id.clone());
            }
            return;
        };
        self.children.clients_looked_at += 1;
        self.settle_push(id, slot, now);
        if let Some(push) = push {
            self.counters.pushed += 1;
            let lease = self.client_lease(id, Some(push.sequence), &push.answer, now);
            let reply = to.clients.entry(push.client).or_default();
            reply.leases.push(lease);
        }
    }

    /// Settles a resource after a push.
    fn settle_push(&mut self, id: &ResourceId, slot: ResourceSlot, now: Time) {
        // A change since the round began is a reason to look again, and this grant is none.
        let is_unsettled = self.children.unsettled.contains(id);
        self.settle_at(slot, now);
        if !is_unsettled {
            self.children.unsettled.remove(id);
        }
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
