//! The record of a node's child servers: where each is reached, and since when one is gone.
//!
//! A child without a stream is *polling* as long as its calls come in time, and *gone* after that. It stays in the
//! record for a day after the last of its leases, unless the mastership ends, since that ends all knowledge of leases.
//! A request costs one search by name, whatever the number of resources. A child is noted with its first lease. A record
//! that is full drops a child that is gone: one whose leases have ended before others, and the longest gone first. Without
//! one it notes no other child.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use doorward_time::named;
use smol_str::SmolStr;

use crate::id::{HolderName, ResourceId};
use crate::messages::{GetServerCapacity, ServerAsk, ServerLease, Via};
use crate::node::Node;
use crate::time::Time;

/// Largest number of child servers in the record.
pub const CHILD_SERVERS_MAX: usize = 1_000;

/// Time for which a child that is gone stays in the record after the end of its leases.
pub const GONE_KEPT: Duration = Duration::from_secs(86_400);

/// Time for which a polling child may be late, beside two refresh intervals.
const POLL_PATIENCE: Duration = Duration::from_secs(5);

named! {
    /// State of a child server.
    ChildState {
        /// It has a stream.
        Streaming = "streaming",
        /// It asks by calls.
        Polling = "polling",
        /// It has no stream, and no call came in time.
        Gone = "gone",
    }
}

/// A child server.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildServer {
    /// Name of its node.
    pub name: HolderName,
    /// Address of its master, `host:port`. Absent: it sends none.
    pub address: Option<SmolStr>,
    /// State.
    pub state: ChildState,
    /// Time since when it has that state.
    pub since: Time,
    /// Time of its last request.
    pub heard_at: Time,
    /// Levels of servers from it downwards. A leaf is 1.
    pub height: u32,
    /// Whether it was in learning mode at its last request for a resource.
    pub learning: bool,
    /// End of the last of its leases.
    pub leases_until: Time,
    /// Number of clients below it of the resource that has most of them there.
    pub clients: f64,
    most: Option<ResourceId>,
    /// Time of its next call at the latest, if it polls.
    calls_by: Time,
}

impl ChildServer {
    /// Returns its state at that time, and since when it has it.
    fn state_at(&self, now: Time) -> (ChildState, Time) {
        match self.state == ChildState::Polling && self.calls_by <= now {
            true => (ChildState::Gone, self.heard_at),
            false => (self.state, self.since),
        }
    }

    fn at(&self, now: Time) -> Self {
        let (state, since) = self.state_at(now);
        Self {
            state,
            since,
            ..self.clone()
        }
    }

    fn is_forgotten(&self, now: Time) -> bool {
        let is_gone = self.state == ChildState::Gone;
        is_gone && self.since.max(self.leases_until) + GONE_KEPT <= now
    }
}

/// The child servers of a node. See the [module](self).
#[derive(Debug, Default)]
pub(super) struct ChildServers(BTreeMap<HolderName, ChildServer>);

impl ChildServers {
    /// Makes room for a child. Returns whether there is some.
    fn has_room(&mut self, now: Time) -> bool {
        if self.0.len() < CHILD_SERVERS_MAX {
            return true;
        }
        let gone = self.0.values().filter_map(|child| {
            let (state, since) = child.state_at(now);
            let is_gone = state == ChildState::Gone;
            is_gone.then_some((child.leases_until > now, since, &child.name))
        });
        let first = gone.min().map(|(.., name)| name.clone());
        first.is_some_and(|name| self.0.remove(&name).is_some())
    }

    /// Levels of servers from a child downwards, by its last request.
    pub(super) fn height(&self, name: &HolderName) -> u32 {
        self.0.get(name).map_or(1, |child| child.height)
    }

    /// Levels of servers below this one, of children that are not gone.
    pub(super) fn levels(&self, now: Time) -> u32 {
        let is_there = |child: &&ChildServer| child.state_at(now).0 != ChildState::Gone;
        let heights = self.0.values().filter(is_there);
        heights.map(|child| child.height).max().unwrap_or(0)
    }

    /// Notes that a known child opened or closed its stream.
    pub(super) fn note_stream(&mut self, name: &HolderName, is_open: bool, now: Time) {
        if let Some(child) = self.0.get_mut(name) {
            let state = match is_open {
                true => ChildState::Streaming,
                false => ChildState::Gone,
            };
            (child.state, child.since) = (state, now);
        }
    }

    /// Notes a request of a known child.
    pub(super) fn note_request(&mut self, request: &GetServerCapacity, via: Via, now: Time) {
        let Some(child) = self.0.get_mut(&request.server) else {
            return;
        };
        if via == Via::Poll && child.state != ChildState::Streaming {
            if child.state_at(now).0 == ChildState::Gone {
                (child.state, child.since) = (ChildState::Polling, now);
            }
            child.calls_by = child.calls_by.max(now + POLL_PATIENCE);
        }
        child.heard_at = now;
        child.address.clone_from(&request.address);
        if !request.asks.is_empty() {
            child.height = request.height;
        }
    }

    /// Notes the lease of a child that asked. Its first one puts it into the record.
    pub(super) fn note_granted(
        &mut self,
        request: &GetServerCapacity,
        ask: &ServerAsk,
        lease: &ServerLease,
        state: ChildState,
        now: Time,
    ) {
        let name = &request.server;
        if !self.0.contains_key(name) {
            if !self.has_room(now) {
                return;
            }
            let child = ChildServer {
                name: name.clone(),
                address: request.address.clone(),
                state,
                since: now,
                heard_at: now,
                height: request.height,
                learning: false,
                leases_until: now,
                clients: 0.0,
                most: None,
                calls_by: now,
            };
            self.0.insert(name.clone(), child);
        }
        self.note_lease(name, lease, now);
        if let Some(child) = self.0.get_mut(name) {
            child.learning = ask.learning;
            let clients = ask.demand.clients();
            if clients > child.clients || child.most.as_ref() == Some(&ask.resource) {
                (child.clients, child.most) = (clients, Some(ask.resource.clone()));
            }
        }
    }

    /// Notes a lease of a known child.
    pub(super) fn note_lease(&mut self, name: &HolderName, lease: &ServerLease, now: Time) {
        if let Some(child) = self.0.get_mut(name) {
            child.leases_until = child.leases_until.max(now + lease.expires_in);
            let calls_by = now + 2 * lease.refresh_in + POLL_PATIENCE;
            child.calls_by = child.calls_by.max(calls_by);
        }
    }
}

impl Node {
    /// Returns up to `max` child servers after that one, in the order of their names. `after` absent: from the first
    /// one on.
    pub fn child_servers_after(
        &self,
        after: Option<&HolderName>,
        max: usize,
        now: Time,
    ) -> Vec<ChildServer> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let known = &self.children.servers.0;
        let known = known.range::<HolderName, _>((from, Bound::Unbounded));
        let known = known.map(|(_, child)| child.at(now));
        known.filter(|it| !it.is_forgotten(now)).take(max).collect()
    }
}
