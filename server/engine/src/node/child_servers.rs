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

/// A child server at a moment.
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
}

/// How a child asks.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Link {
    Stream { since: Time },
    Calls { since: Time, until: Time },
    Closed { since: Time },
}

#[derive(Clone, Debug)]
struct Noted {
    address: Option<SmolStr>,
    link: Link,
    heard_at: Time,
    height: u32,
    learning: bool,
    leases_until: Time,
    /// The resource with most clients.
    most: Option<(ResourceId, f64)>,
}

impl Noted {
    fn new(now: Time) -> Self {
        Self {
            address: None,
            link: Link::Closed { since: now },
            heard_at: now,
            height: 1,
            learning: false,
            leases_until: now,
            most: None,
        }
    }

    fn state(&self, now: Time) -> (ChildState, Time) {
        match self.link {
            Link::Stream { since } => (ChildState::Streaming, since),
            Link::Calls { since, until } if now < until => (ChildState::Polling, since),
            Link::Calls { .. } => (ChildState::Gone, self.heard_at),
            Link::Closed { since } => (ChildState::Gone, since),
        }
    }

    /// Returns the time since when it is gone.
    fn gone_since(&self, now: Time) -> Option<Time> {
        let (state, since) = self.state(now);
        Some(since).filter(|_| state == ChildState::Gone)
    }

    fn note_call(&mut self, patience: Duration, now: Time) {
        let until = now + patience;
        self.link = match self.link {
            stream @ Link::Stream { .. } => stream,
            Link::Calls { since, until: last } if now < last => Link::Calls {
                since,
                until: until.max(last),
            },
            Link::Calls { .. } | Link::Closed { .. } => Link::Calls { since: now, until },
        };
    }

    fn is_forgotten(&self, now: Time) -> bool {
        let since = self.gone_since(now);
        since.is_some_and(|since| since.max(self.leases_until) + GONE_KEPT <= now)
    }
}

/// The child servers of a node. See the [module](self).
#[derive(Debug, Default)]
pub(super) struct ChildServers(BTreeMap<HolderName, Noted>);

impl ChildServers {
    /// Returns the entry of a child. None: the record is full.
    fn noted(&mut self, name: &HolderName, now: Time) -> Option<&mut Noted> {
        if !self.0.contains_key(name) {
            if self.0.len() >= CHILD_SERVERS_MAX {
                let gone = self
                    .0
                    .iter()
                    .filter_map(|(name, it)| Some((it.gone_since(now)?, name)));
                let (_, first) = gone.min()?;
                let first = first.clone();
                self.0.remove(&first);
            }
            self.0.insert(name.clone(), Noted::new(now));
        }
        self.0.get_mut(name)
    }

    pub(super) fn note_stream(&mut self, name: &HolderName, is_open: bool, now: Time) {
        if is_open {
            if let Some(noted) = self.noted(name, now) {
                noted.link = Link::Stream { since: now };
            }
        } else if let Some(noted) = self.0.get_mut(name) {
            noted.link = Link::Closed { since: now };
        }
    }

    /// Notes a request, before any of its resources.
    pub(super) fn note_request(&mut self, request: &GetServerCapacity, via: Via, now: Time) {
        if let Some(noted) = self.noted(&request.server, now) {
            noted.heard_at = now;
            noted.address.clone_from(&request.address);
            if !request.asks.is_empty() {
                noted.height = noted.height.max(request.height);
            }
            if via == Via::Poll {
                noted.note_call(POLL_PATIENCE, now);
            }
        }
    }

    /// Notes a request for one resource.
    pub(super) fn note_ask(&mut self, name: &HolderName, ask: &ServerAsk) {
        if let Some(noted) = self.0.get_mut(name) {
            noted.learning = ask.learning;
            let clients = ask.demand.clients();
            let is_most = |(id, most): &(ResourceId, f64)| *id == ask.resource || *most < clients;
            if noted.most.as_ref().is_none_or(is_most) {
                noted.most = Some((ask.resource.clone(), clients));
            }
        }
    }

    pub(super) fn note_lease(&mut self, name: &HolderName, lease: &ServerLease, now: Time) {
        if let Some(noted) = self.0.get_mut(name) {
            noted.leases_until = noted.leases_until.max(now + lease.expires_in);
            if let Link::Calls { .. } = noted.link {
                noted.note_call(2 * lease.refresh_in + POLL_PATIENCE, now);
            }
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
        let servers = &self.children.servers.0;
        let known = servers.range::<HolderName, _>((from, Bound::Unbounded));
        let view = |(name, noted): (&HolderName, &Noted)| {
            let (state, since) = noted.state(now);
            ChildServer {
                name: name.clone(),
                address: noted.address.clone(),
                state,
                since,
                heard_at: noted.heard_at,
                height: noted.height,
                learning: noted.learning,
                leases_until: noted.leases_until,
                clients: noted.most.as_ref().map_or(0.0, |(_, clients)| *clients),
            }
        };
        let shown = known.filter(|(_, noted)| !noted.is_forgotten(now));
        shown.take(max).map(view).collect()
    }
}
