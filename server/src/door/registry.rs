//! Which connections there are, and which goes when there are as many as there may be.
//!
//! At a limit the oldest silent one goes: first of those that never finished a call, the one that came
//! first; then of those that have no call in progress, the one that has been idle for longest (of
//! some that are looked at, so that a flood of connections costs no more than that for each). If
//! all are busy, the newcomer goes. So whoever holds connections and says nothing never keeps others out.
//!
//! A connection that goes had nothing in progress: its client connects anew when it has something to say.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::door::caller_address::CallerAddress;
use crate::door::connection::{AddressState, Connection};

/// Idle connections that are looked at to find one that may go.
const LOOKED_AT: usize = 64;

/// Addresses without connections are remembered for so long: until their calls of the last second are made
/// up for.
const REMEMBERED: Duration = Duration::from_secs(2);

/// Addresses without connections that are remembered.
const REMEMBERED_MAX: usize = 65_536;

/// How many connections there may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// In all.
    pub connections: usize,
    /// From one address.
    pub per_address: usize,
}

/// Why a newcomer, or somebody in its stead, had to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooManyConnections {
    /// There are as many connections as there may be.
    InAll,
    /// There are as many from one address as there may be.
    OfAddress,
}

/// What became of a newcomer.
#[derive(Debug)]
pub struct NewcomerOutcome {
    /// It is in; else it has to go.
    pub admitted: Option<Arc<Connection>>,
    /// Who has to go in its stead.
    pub evicted: Option<Arc<Connection>>,
    /// Why anybody has to.
    pub full: Option<TooManyConnections>,
}

/// The connections there are.
#[derive(Debug)]
pub struct Registry {
    bounds: Bounds,
    settings: AddressSettings,
    last_id: u64,
    connections: HashMap<u64, Arc<Connection>>,
    all: Queue,
    addresses: HashMap<CallerAddress, AddressEntry>,
    /// How many addresses have so many connections.
    sizes: BTreeMap<usize, usize>,
    /// Addresses that had their last connection closed, and when.
    left: VecDeque<(Duration, CallerAddress)>,
}

/// What is the same for all addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressSettings {
    /// See [`AddressState::calls`].
    pub calls_per_second: u64,
    /// See [`AddressState::vital_calls`].
    pub vital_calls_per_second: u64,
    /// See [`AddressState::looks`].
    pub look_time_per_second: Duration,
    /// See [`AddressState::incoming`].
    pub incoming_bytes: u64,
    /// See [`AddressState::outgoing`].
    pub outgoing_bytes: u64,
}

#[derive(Debug)]
struct AddressEntry {
    state: Arc<AddressState>,
    connections: usize,
    /// When the last of them was closed.
    left_at: Duration,
    queue: Queue,
}

/// Connections in the order in which they may have to go. Has those that are gone, too, until they are come
/// across.
#[derive(Debug, Default)]
struct Queue {
    /// Never finished a call, when they were looked at last.
    unproven: VecDeque<u64>,
    proven: VecDeque<u64>,
}

impl Registry {
    /// Nobody is connected.
    pub fn new(bounds: Bounds, settings: AddressSettings) -> Self {
        Self {
            bounds,
            settings,
            last_id: 0,
            connections: HashMap::new(),
            all: Queue::default(),
            addresses: HashMap::new(),
            sizes: BTreeMap::new(),
            left: VecDeque::new(),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// The most from one address.
    pub fn largest(&self) -> usize {
        self.sizes
            .last_key_value()
            .map_or(0, |(connections, _)| *connections)
    }

    /// Somebody connects, so long after the start.
    pub fn admit(&mut self, address: CallerAddress, now: Duration) -> NewcomerOutcome {
        self.forget_left(now);
        let of_address = self
            .addresses
            .get(&address)
            .map_or(0, |entry| entry.connections);
        let mut evicted = None;
        let full = if of_address >= self.bounds.per_address {
            Some(TooManyConnections::OfAddress)
        } else if self.connections.len() >= self.bounds.connections {
            Some(TooManyConnections::InAll)
        } else {
            None
        };
        if let Some(full) = full {
            let queue = match full {
                TooManyConnections::InAll => Some(&mut self.all),
                TooManyConnections::OfAddress => {
                    self.addresses.get_mut(&address).map(|it| &mut it.queue)
                }
            };
            evicted = queue.and_then(|queue| queue.longest_silent(&self.connections));
            let Some(silent) = &evicted else {
                return NewcomerOutcome {
                    admitted: None,
                    evicted: None,
                    full: Some(full),
                };
            };
            let silent = Arc::clone(silent);
            self.remove(&silent, now);
        }
        NewcomerOutcome {
            admitted: Some(self.insert(address, now)),
            evicted,
            full,
        }
    }

    /// Somebody has to go since the system has no room for another one.
    pub fn make_room(&mut self, now: Duration) -> Option<Arc<Connection>> {
        let silent = self.all.longest_silent(&self.connections)?;
        self.remove(&silent, now);
        Some(silent)
    }

    fn insert(&mut self, address: CallerAddress, now: Duration) -> Arc<Connection> {
        self.last_id += 1;
        let id = self.last_id;
        let state = match self.addresses.get(&address) {
            Some(entry) => Arc::clone(&entry.state),
            None => Arc::new(AddressState::new(&self.settings)),
        };
        let entry = self
            .addresses
            .entry(address)
            .or_insert_with(|| AddressEntry {
                state: Arc::clone(&state),
                connections: 0,
                left_at: now,
                queue: Queue::default(),
            });
        resize(&mut self.sizes, entry.connections, entry.connections + 1);
        entry.connections += 1;
        let connection = Arc::new(Connection::new(id, address, state, now));
        self.connections.insert(id, Arc::clone(&connection));
        entry.queue.push(id, entry.connections, &self.connections);
        self.all.push(id, self.connections.len(), &self.connections);
        connection
    }

    /// A connection is closed. Once more changes nothing.
    pub fn remove(&mut self, connection: &Connection, now: Duration) {
        if self.connections.remove(&connection.id()).is_none() {
            return;
        }
        let address = connection.address();
        let Some(entry) = self.addresses.get_mut(&address) else {
            return;
        };
        resize(&mut self.sizes, entry.connections, entry.connections - 1);
        entry.connections -= 1;
        if entry.connections == 0 {
            entry.left_at = now;
            self.left.push_back((now, address));
        }
    }

    /// Who has the most to read of what it was answered, from one address or in all, and was not asked to go.
    /// O(connections): it is asked for only when there is no room, and then that one goes.
    pub fn most_unread(&self, of: Option<CallerAddress>) -> Option<Arc<Connection>> {
        self.connections
            .values()
            .filter(|connection| of.is_none_or(|address| connection.address() == address))
            .filter(|connection| !connection.goes())
            .max_by_key(|connection| (connection.unread(), connection.id()))
            .map(Arc::clone)
    }

    /// Who left is forgotten when it is at rest.
    fn forget_left(&mut self, now: Duration) {
        // Each is looked at once.
        for _ in 0..self.left.len() {
            let Some((since, address)) = self.left.front().copied() else {
                return;
            };
            let is_over = now.saturating_sub(since) >= REMEMBERED;
            let too_many = self.left.len() > REMEMBERED_MAX;
            if !is_over && !too_many {
                return;
            }
            self.left.pop_front();
            let Some(entry) = self.addresses.get_mut(&address) else {
                continue;
            };
            if entry.connections > 0 || entry.left_at != since {
                continue;
            }
            if too_many || entry.state.is_at_rest(now) {
                self.addresses.remove(&address);
            } else {
                entry.left_at = now;
                self.left.push_back((now, address));
            }
        }
    }
}

fn resize(sizes: &mut BTreeMap<usize, usize>, before: usize, after: usize) {
    if let Some(addresses) = sizes.get_mut(&before) {
        *addresses -= 1;
        if *addresses == 0 {
            sizes.remove(&before);
        }
    }
    if after > 0 {
        *sizes.entry(after).or_default() += 1;
    }
}

impl Queue {
    fn push(&mut self, id: u64, live: usize, connections: &HashMap<u64, Arc<Connection>>) {
        self.unproven.push_back(id);
        // As many came since the last time as are swept out now.
        if self.unproven.len() + self.proven.len() > 2 * live + LOOKED_AT {
            self.unproven.retain(|id| connections.contains_key(id));
            self.proven.retain(|id| connections.contains_key(id));
        }
    }

    /// Who may go first. None: all are busy.
    fn longest_silent(
        &mut self,
        connections: &HashMap<u64, Arc<Connection>>,
    ) -> Option<Arc<Connection>> {
        while let Some(id) = self.unproven.pop_front() {
            match connections.get(&id) {
                Some(connection) if connection.is_proven() => self.proven.push_back(id),
                Some(connection) => return Some(Arc::clone(connection)),
                None => {}
            }
        }
        let mut silent: Option<&Arc<Connection>> = None;
        for _ in 0..self.proven.len().min(LOOKED_AT) {
            let Some(id) = self.proven.pop_front() else {
                break;
            };
            let Some(connection) = connections.get(&id) else {
                continue;
            };
            self.proven.push_back(id);
            let is_longer = silent.is_none_or(|silent| connection.active_at() < silent.active_at());
            if !connection.is_busy() && is_longer {
                silent = Some(connection);
            }
        }
        silent.map(Arc::clone)
    }
}

#[cfg(test)]
mod tests;
