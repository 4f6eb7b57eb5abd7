//! The record of a node's child servers: where each is reached, and since when one is gone.
//!
//! A child without a stream is *polling* as long as its calls come in time, and *gone* after that. It stays in the
//! record for a day after the last of its leases, unless the mastership ends, since that ends all knowledge of leases.
//! A request costs one search by name, whatever the number of resources. A record that is full drops the child that is
//! gone for the longest time; without one it notes no other child.

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
    /// Returns it at that time.
    fn at(&self, now: Time) -> Self {
        let mut child = self.clone();
        if child.state == ChildState::Polling && child.calls_by <= now {
            (child.state, child.since) = (ChildState::Gone, child.heard_at);
        }
        child
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
    /// Returns the entry of a child. None: the record is full.
    fn noted(&mut self, name: &HolderName, now: Time) -> Option<&mut ChildServer> {
        if self.0.len() >= CHILD_SERVERS_MAX && !self.0.contains_key(name) {
            let all = self.0.values().map(|child| child.at(now));
            let gone = all.filter(|child| child.state == ChildState::Gone);
            let first = gone.min_by_key(|child| child.since)?;
            self.0.remove(&first.name);
        }
        let new = || ChildServer {
            name: name.clone(),
            address: None,
            state: ChildState::Gone,
            since: now,
            heard_at: now,
            height: 1,
            learning: false,
            leases_until: now,
            clients: 0.0,
            most: None,
            calls_by: now,
        };
        Some(self.0.entry(name.clone()).or_insert_with(new))
    }

    pub(super) fn note_stream(&mut self, name: &HolderName, is_open: bool, now: Time) {
        let (child, state) = match is_open {
            true => (self.noted(name, now), ChildState::Streaming),
            false => (self.0.get_mut(name), ChildState::Gone),
        };
        if let Some(child) = child {
            (child.state, child.since) = (state, now);
        }
    }

    /// Notes a request, before any of its resources.
    pub(super) fn note_request(&mut self, request: &GetServerCapacity, via: Via, now: Time) {
        let Some(child) = self.noted(&request.server, now) else {
            return;
        };
        if via == Via::Poll && child.state != ChildState::Streaming {
            if child.at(now).state == ChildState::Gone {
                (child.state, child.since) = (ChildState::Polling, now);
            }
            child.calls_by = now + POLL_PATIENCE;
        }
        child.heard_at = now;
        child.address.clone_from(&request.address);
        if !request.asks.is_empty() {
            child.height = child.height.max(request.height);
        }
    }

    /// Notes a request for one resource.
    pub(super) fn note_ask(&mut self, name: &HolderName, ask: &ServerAsk) {
        if let Some(child) = self.0.get_mut(name) {
            child.learning = ask.learning;
            let clients = ask.demand.clients();
            if clients > child.clients || child.most.as_ref() == Some(&ask.resource) {
                (child.clients, child.most) = (clients, Some(ask.resource.clone()));
            }
        }
    }

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
