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
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    const SETTINGS: AddressSettings = AddressSettings {
        calls_per_second: 10,
        vital_calls_per_second: 10,
        look_time_per_second: Duration::from_millis(100),
        incoming_bytes: 10,
        outgoing_bytes: 10,
    };

    fn registry(connections: usize, per_address: usize) -> Registry {
        let bounds = Bounds {
            connections,
            per_address,
        };
        Registry::new(bounds, SETTINGS)
    }

    fn address(number: u8) -> CallerAddress {
        CallerAddress::of(IpAddr::V4(Ipv4Addr::new(10, 0, 0, number)))
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Somebody who finished a call, so long after the start.
    fn proven(registry: &mut Registry, of: u8, seconds: u64) -> Arc<Connection> {
        let admission = registry.admit(address(of), at(seconds));
        let connection = admission.admitted.expect("there is room");
        connection.begin_call(at(seconds));
        connection.end_call(at(seconds));
        connection.prove();
        connection
    }

    #[test]
    fn at_the_limit_the_oldest_that_said_nothing_goes() {
        let mut registry = registry(3, 3);
        let speaks = proven(&mut registry, 1, 0);
        let silent = registry.admit(address(1), at(1)).admitted.unwrap();
        let later = registry.admit(address(2), at(2)).admitted.unwrap();
        for (newcomer, goes) in [(3, &silent), (4, &later)] {
            let admission = registry.admit(address(newcomer), at(3));
            let connection = admission.admitted.expect("accepting never stops");
            assert_eq!(admission.full, Some(TooManyConnections::InAll));
            assert_eq!(admission.evicted.unwrap().id(), goes.id());
            connection.begin_call(at(3));
            connection.end_call(at(3));
            connection.prove();
        }
        // Only those are left that speak: who has been idle for longest goes.
        let admission = registry.admit(address(5), at(4));
        assert_eq!(admission.evicted.unwrap().id(), speaks.id());
        assert_eq!(registry.len(), 3);
    }

    #[test]
    fn who_has_a_call_in_progress_stays() {
        let mut registry = registry(2, 2);
        let busy = [proven(&mut registry, 1, 0), proven(&mut registry, 2, 1)];
        for connection in &busy {
            connection.begin_call(at(2));
        }
        let admission = registry.admit(address(3), at(3));
        assert!(admission.admitted.is_none() && admission.evicted.is_none());
        busy[1].end_call(at(4));
        let admission = registry.admit(address(3), at(5));
        assert_eq!(admission.evicted.unwrap().id(), busy[1].id());
    }

    #[test]
    fn an_address_takes_only_from_itself() {
        let mut registry = registry(100, 2);
        let other = registry.admit(address(1), at(0)).admitted.unwrap();
        let first = registry.admit(address(2), at(1)).admitted.unwrap();
        registry.admit(address(2), at(2)).admitted.unwrap();
        let admission = registry.admit(address(2), at(3));
        assert_eq!(admission.full, Some(TooManyConnections::OfAddress));
        assert_eq!(admission.evicted.unwrap().id(), first.id());
        assert_eq!(registry.largest(), 2);
        registry.remove(&other, at(4));
        assert_eq!(registry.len(), 2);
    }

    #[test]
    fn an_address_that_left_is_remembered_for_a_while_and_then_forgotten() {
        let mut registry = registry(10, 10);
        for round in 0..2 {
            let connection = registry.admit(address(1), at(round)).admitted.unwrap();
            for _ in 0..5 {
                assert!(connection.of_address().calls.take(at(0)).is_ok(), "{round}");
            }
            registry.remove(&connection, at(round));
        }
        let connection = registry.admit(address(1), at(2)).admitted.unwrap();
        assert!(connection.of_address().calls.take(at(0)).is_err());
        registry.remove(&connection, at(3));
        registry.admit(address(2), at(60));
        assert_eq!(registry.addresses.len(), 1);
    }

    #[test]
    fn connections_that_come_and_go_leave_nothing_behind() {
        let mut registry = registry(1_000, 1_000);
        let stays = proven(&mut registry, 1, 0);
        for second in 0..100_000 {
            let connection = registry.admit(address(2), at(second)).admitted.unwrap();
            registry.remove(&connection, at(second));
            registry.remove(&connection, at(second));
        }
        assert_eq!(registry.len(), 1);
        assert!(registry.all.unproven.len() + registry.all.proven.len() < 200);
        assert_eq!(registry.sizes, BTreeMap::from([(1, 1)]));
        assert!(registry.left.len() < 10);
        drop(stays);
    }

    #[test]
    fn ten_thousand_clients_behind_one_address_all_stay() {
        let mut registry = registry(18_000, 13_500);
        for _ in 0..10_000 {
            let admission = registry.admit(address(1), at(0));
            assert!(admission.full.is_none());
        }
        assert_eq!((registry.len(), registry.largest()), (10_000, 10_000));
    }
}
