//! Place of a node in the tree: its servers, and the connection of each to the parent. Each server
//! knows itself whether it is master.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::id::{HolderId, Incarnation};
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::Templates;
use doorward_engine::time::Time;
use doorward_replica::{CallNumber, ParentConfig, Replica, ReplicaConfig};
use doorward_session::address::Address;
use doorward_session::child_streams::StreamLimits;
use doorward_session::parent_session::ConnectionNumber;

use crate::checker::{Asked, Extreme};
use crate::local_clock::LocalClock;
use crate::numbered::Numbered;
use crate::scenario::{Links, Servers};
use crate::world::candidates::Candidacy;
use crate::world::etcd::EtcdConnection;
use crate::world::state_directory::StateDirectory;
use crate::world::{Action, CallId, Line, ServerId};

/// Place of a node in the tree.
#[derive(Default)]
pub(crate) struct Place {
    pub(crate) number: u32,
    pub(crate) name: String,
    pub(crate) parent: Option<u32>,
    pub(crate) children: Vec<u32>,
    pub(crate) level: usize,
    pub(crate) clients: usize,
    /// Addresses of its servers, by slot.
    pub(crate) addresses: Arc<[Address]>,
    /// Running servers: at most one for each slot, and second processes under the same name.
    pub(crate) servers: Vec<ServerProcess>,
    /// Slots for servers, one for each candidate.
    pub(crate) slots: Numbered<ServerSlot>,
    /// Number of servers started so far.
    pub(crate) starts: u64,
    /// Its state directory, if it has one.
    pub(super) state: Option<StateDirectory>,
    /// End of the time in which no candidate can become master.
    pub(crate) unable_until: Time,
    /// Addresses of the parent's servers, as far as the node knows them.
    pub(crate) parents: Arc<[Address]>,
    /// End of the time in which its servers redirect to one another instead of the master.
    pub(crate) redirect_loop_until: Time,
    /// End of the time in which the published addresses are stale.
    pub(crate) stale_until: Time,
    /// Published addresses: `addresses`, or stale ones.
    pub(crate) published: Arc<[Address]>,
    /// End of the partition between the node and its parent.
    pub(crate) cut_above_until: Time,
    /// End of the partition between the node and its clients and children.
    pub(crate) cut_below_until: Time,
    pub(crate) links: Links,
    pub(crate) clock: LocalClock,
    /// Time of its next wake-up.
    pub(crate) wake_at: Option<Time>,
    /// Start of its last master's term, or the time at which that master continued after a freeze.
    pub(crate) up_since: Time,
    /// Requests of clients and child servers in the present second, and the most in a second.
    pub(crate) asked: Asked,
    pub(crate) busiest: Extreme<u32>,
}

/// Slot for a server.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ServerSlot {
    /// End of the time in which a fault keeps it down.
    pub(crate) down_until: Time,
    pub(crate) way: EtcdConnection,
}

/// Server process.
pub(crate) struct ServerProcess {
    pub(crate) id: ServerId,
    /// Slot in which it runs.
    pub(crate) slot: u32,
    /// True for a second process of a node without an election.
    pub(crate) is_twin: bool,
    /// True while it is master, and until the world has handled the end of its term.
    pub(crate) leads: bool,
    /// Masterships of its node that the world has handled.
    pub(super) masterships: u64,
    /// Its part in the election; `None` without an election.
    pub(crate) candidacy: Option<Box<Candidacy>>,
    pub(crate) replica: Replica,
    pub(crate) parent_link: ParentLink,
    /// End of the time in which it is frozen.
    pub(crate) frozen_until: Option<Time>,
    pub(crate) backlog: Backlog,
    /// Child and connection of each stream of a child server.
    pub(super) streams: BTreeMap<u64, Line>,
    /// Clients with a stream.
    pub(super) clients: BTreeMap<HolderId, u32>,
    /// Client and sequence of each call that waits for the parent.
    pub(crate) waiting: BTreeMap<CallNumber, CallId>,
}

/// Messages and tasks that wait for a frozen server.
#[derive(Default)]
pub(crate) struct Backlog {
    /// Arrivals of messages from clients, children and the parent.
    pub(super) messages: Vec<Action>,
    /// Arrivals of messages from etcd, and of what an operator does.
    pub(crate) news: Vec<Action>,
}

/// Connection to the parent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ParentLink {
    /// Number of the present connection, or the last one.
    pub(crate) connection: ConnectionNumber,
    /// Server of the parent that it is connected to.
    pub(crate) to: Option<ServerId>,
    /// True if a partition lost a message on this connection. Later messages would have to wait for
    /// it, so none passes until the next connection.
    pub(crate) is_stalled: bool,
    /// Arrival of the last message in each direction; connections keep their order.
    pub(crate) last_up: Time,
    pub(crate) last_down: Time,
}

impl ServerProcess {
    pub(crate) fn new(
        place: &Place,
        slot: u32,
        seed: u64,
        settings: Servers,
        templates: Templates,
    ) -> Self {
        let floor = settings.refresh_floor.0;
        let node = Config {
            name: place.name.clone(),
            // The seed is random, so each server has its own incarnation.
            incarnation: Incarnation::new(seed).unwrap_or(Incarnation::FIRST),
            starts: place.state.as_ref().map(|state| state.starts),
            seed,
            refresh_floor: floor,
            ..Config::default()
        };
        let config = ReplicaConfig {
            node,
            parent: place.parent.map(|_| ParentConfig {
                addresses: Arc::clone(&place.parents),
                round: settings.push_round.0,
                // As the server computes it.
                slow_round: (floor + floor / 16).max(Duration::from_millis(100)),
            }),
            push_round: settings.push_round.0,
            stream_limits: StreamLimits::default(),
        };
        Self {
            id: ServerId {
                place: place.number,
                term: place.starts,
            },
            slot,
            is_twin: false,
            leads: false,
            candidacy: None,
            replica: Replica::new(config, templates),
            parent_link: ParentLink::default(),
            masterships: 0,
            frozen_until: None,
            backlog: Backlog::default(),
            streams: BTreeMap::new(),
            clients: BTreeMap::new(),
            waiting: BTreeMap::new(),
        }
    }

    pub(crate) const fn node(&self) -> &Node {
        self.replica.node()
    }

    pub(crate) fn is_frozen(&self, now: Time) -> bool {
        self.frozen_until.is_some_and(|until| now < until)
    }

    /// Returns the world time at which it next has something to do.
    pub(crate) fn due(&self, clock: &LocalClock) -> Option<Time> {
        let due = self.replica.poll_timeout().map(|at| clock.when(at));
        self.frozen_until.or(due)
    }
}

impl Place {
    /// Returns the server of that term, if it runs.
    pub(crate) fn server(&mut self, term: u64) -> Option<&mut ServerProcess> {
        let mut servers = self.servers.iter_mut();
        servers.find(|server| server.id.term == term)
    }

    /// Returns the server that believes to be master, even a frozen one.
    pub(crate) fn master(&self, now: Time) -> Option<&ServerProcess> {
        let local = self.clock.shows(now);
        let masters = self.servers.iter();
        let masters = masters.filter(|it| !it.is_twin && it.node().mastership(local).is_master());
        masters.max_by_key(|server| server.node().mastership(local).epoch())
    }

    /// Returns the slot of an address, if it is one of the node's.
    pub(crate) fn slot_of(&self, address: &Address) -> Option<u32> {
        let slot = self.addresses.iter().position(|known| known == address)?;
        u32::try_from(slot).ok()
    }
}
