//! All connections, and the choice of the one to evict at a limit.
//!
//! At a limit, the oldest silent connection is evicted. The first choice is the connection that came first, of those on
//! which no call was ever answered. The second choice is the connection that has been idle for longest, of those
//! without a call in progress. Only some of these are examined, so a flood of connections costs no more for each. If
//! all are busy, the newcomer is refused. So silent connections never keep others out.
//!
//! An evicted connection had no call in progress. Its client connects again when it needs to.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use crate::door::caller_address::CallerAddress;
use crate::door::connection::{AddressState, Connection};

/// Idle connections that are examined to find one to evict.
const LOOKED_AT: usize = 64;

/// Time for which an address without connections is remembered: until its calls of the last second are paid for.
const REMEMBERED: Duration = Duration::from_secs(2);

/// Addresses without connections that are remembered.
const REMEMBERED_MAX: usize = 65_536;

/// Limits on connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// In all.
    pub connections: usize,
    /// From one address.
    pub per_address: usize,
}

/// The limit at which a connection was evicted, or a newcomer refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooManyConnections {
    /// The limit on all connections.
    InAll,
    /// The limit on connections from one address.
    OfAddress,
}

/// Result of a new connection.
#[derive(Debug)]
pub struct NewcomerOutcome {
    /// The newcomer. None: it is refused.
    pub admitted: Option<Arc<Connection>>,
    /// The connection that is evicted in its stead.
    pub evicted: Option<Arc<Connection>>,
    /// The limit that is reached, if any.
    pub full: Option<TooManyConnections>,
}

/// The connections of a door.
#[derive(Debug)]
pub struct Registry {
    bounds: Bounds,
    settings: AddressSettings,
    last_id: u64,
    connections: HashMap<u64, Arc<Connection>>,
    all: Queue,
    addresses: HashMap<CallerAddress, AddressEntry>,
    /// Number of addresses for each number of connections.
    sizes: BTreeMap<usize, usize>,
    /// Addresses whose last connection closed, and the time of that.
    left: VecDeque<(Duration, CallerAddress)>,
}

/// Settings that are the same for all addresses.
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
    /// Time when its last connection closed.
    left_at: Duration,
    queue: Queue,
}

/// Connections in the order of eviction. A closed connection stays in it until it is found.
#[derive(Debug, Default)]
struct Queue {
    /// Connections on which no call was answered, as of the last look.
    unproven: VecDeque<u64>,
    proven: VecDeque<u64>,
}

impl Registry {
    /// Makes an empty registry.
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

    /// Returns the number of connections.
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Returns whether there is no connection.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Returns the largest number of connections from one address.
    pub fn largest(&self) -> usize {
        self.sizes
            .last_key_value()
            .map_or(0, |(connections, _)| *connections)
    }

    /// Adds a new connection. `now` is the time since the start.
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

    /// Removes the connection to evict when the system has no room for another one. Returns it, if there is one.
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

    /// Removes a closed connection. Has no effect if it is already removed.
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

    /// Returns the connection with the most unread bytes, from one address or in all, that was not asked to close.
    /// O(connections): it runs only when there is no room, and that connection is then closed.
    pub fn most_unread(&self, of: Option<CallerAddress>) -> Option<Arc<Connection>> {
        self.connections
            .values()
            .filter(|connection| of.is_none_or(|address| connection.address() == address))
            .filter(|connection| !connection.goes())
            .max_by_key(|connection| (connection.unread(), connection.id()))
            .map(Arc::clone)
    }

    /// Forgets addresses without connections that are at rest.
    fn forget_left(&mut self, now: Duration) {
        // The loop examines each address once.
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
        // A sweep removes closed connections: as many as came since the last sweep.
        if self.unproven.len() + self.proven.len() > 2 * live + LOOKED_AT {
            self.unproven.retain(|id| connections.contains_key(id));
            self.proven.retain(|id| connections.contains_key(id));
        }
    }

    /// Returns the connection to evict. None: all are busy.
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
