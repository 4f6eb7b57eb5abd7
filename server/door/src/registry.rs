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

use doorward_tls::server::Certificate;

use crate::caller_id::CallerId;
use crate::connection::{CallerState, Connection};
use crate::door_limits::DoorLimits;
use crate::limit::Limit;

/// Idle connections that are examined to find one to evict.
const LOOKED_AT: usize = 64;

/// Time for which a caller without connections is remembered: until its calls of the last second are paid for.
const REMEMBERED: Duration = Duration::from_secs(2);

/// Callers without connections that are remembered.
const REMEMBERED_MAX: usize = 65_536;

/// Result of a new connection.
#[derive(Debug)]
pub(crate) struct NewcomerOutcome {
    /// The newcomer. None: it is refused.
    pub(crate) admitted: Option<Arc<Connection>>,
    /// The connection that is evicted in its stead.
    pub(crate) evicted: Option<Arc<Connection>>,
    /// The limit that is reached, if any.
    pub(crate) full: Option<Arc<Limit>>,
}

/// The connections of a door.
#[derive(Debug, Default)]
pub(crate) struct Registry {
    limits: Arc<DoorLimits>,
    last_id: u64,
    connections: HashMap<u64, Arc<Connection>>,
    all: Queue,
    callers: HashMap<CallerId, CallerEntry>,
    /// Number of callers for each number of connections.
    sizes: BTreeMap<usize, usize>,
    /// Callers whose last connection closed, and the time of that.
    left: VecDeque<(Duration, CallerId)>,
}

#[derive(Debug)]
struct CallerEntry {
    state: Arc<CallerState>,
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
    pub(crate) fn new(limits: Arc<DoorLimits>) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// Returns the number of connections.
    pub(crate) fn len(&self) -> usize {
        self.connections.len()
    }

    /// Returns the largest number of connections of one caller.
    pub(crate) fn largest(&self) -> usize {
        let largest = self.sizes.last_key_value();
        largest.map_or(0, |(connections, _)| *connections)
    }

    /// Adds a new connection. `now` is the time since the start.
    pub(crate) fn admit(
        &mut self,
        caller: CallerId,
        certificate: Option<Certificate>,
        now: Duration,
    ) -> NewcomerOutcome {
        self.forget_left(now);
        let limits = &self.limits;
        let of_caller = self.callers.get_mut(&caller);
        let of_caller =
            of_caller.filter(|it| it.connections >= limits.connections_per_caller.count());
        let (queue, limit) = match of_caller {
            Some(of_caller) => (&mut of_caller.queue, &limits.connections_per_caller),
            None if self.connections.len() >= limits.connections.count() => {
                (&mut self.all, &limits.connections)
            }
            None => {
                return NewcomerOutcome {
                    admitted: Some(self.insert(caller, certificate, now)),
                    evicted: None,
                    full: None,
                };
            }
        };
        let full = Some(Arc::clone(limit));
        let evicted = queue.longest_silent(&self.connections);
        let admitted = evicted.as_ref().map(|silent| {
            self.remove(silent, now);
            self.insert(caller, certificate, now)
        });
        NewcomerOutcome {
            admitted,
            evicted,
            full,
        }
    }

    /// Removes the connection to evict when the system has no room for another one. Returns it, if there is one.
    pub(crate) fn make_room(&mut self, now: Duration) -> Option<Arc<Connection>> {
        let silent = self.all.longest_silent(&self.connections)?;
        self.remove(&silent, now);
        Some(silent)
    }

    fn insert(
        &mut self,
        caller: CallerId,
        certificate: Option<Certificate>,
        now: Duration,
    ) -> Arc<Connection> {
        self.last_id += 1;
        let id = self.last_id;
        let entry = self.callers.entry(caller).or_insert_with(|| CallerEntry {
            state: Arc::new(CallerState::new(&self.limits)),
            connections: 0,
            left_at: now,
            queue: Queue::default(),
        });
        resize(&mut self.sizes, entry.connections, entry.connections + 1);
        entry.connections += 1;
        let state = Arc::clone(&entry.state);
        let connection = Arc::new(Connection::new(id, caller, certificate, state, now));
        self.connections.insert(id, Arc::clone(&connection));
        entry.queue.push(id, entry.connections, &self.connections);
        self.all.push(id, self.connections.len(), &self.connections);
        connection
    }

    /// Removes a closed connection. Has no effect if it is already removed.
    pub(crate) fn remove(&mut self, connection: &Connection, now: Duration) {
        if self.connections.remove(&connection.id).is_none() {
            return;
        }
        let caller = connection.caller;
        let Some(entry) = self.callers.get_mut(&caller) else {
            return;
        };
        resize(&mut self.sizes, entry.connections, entry.connections - 1);
        entry.connections -= 1;
        if entry.connections == 0 {
            entry.left_at = now;
            self.left.push_back((now, caller));
        }
    }

    /// Returns the connection with the most unread bytes, of one caller or in all, that was not asked to close, and the
    /// unread bytes of those that were. O(connections): it runs only when there is no room.
    pub(crate) fn most_unread(&self, of: Option<CallerId>) -> (Option<Arc<Connection>>, u64) {
        let all = self.connections.values();
        let all = all.filter(|connection| of.is_none_or(|caller| connection.caller == caller));
        let leaving = all.clone().filter(|connection| connection.goes());
        let leaving = leaving.map(|connection| connection.unread()).sum();
        let staying = all.filter(|connection| !connection.goes());
        let most = staying.max_by_key(|connection| (connection.unread(), connection.id));
        (most.cloned(), leaving)
    }

    /// Forgets callers without connections that are at rest.
    fn forget_left(&mut self, now: Duration) {
        // The loop examines each caller once.
        for _ in 0..self.left.len() {
            let Some((since, caller)) = self.left.front().copied() else {
                return;
            };
            let is_over = now.saturating_sub(since) >= REMEMBERED;
            let too_many = self.left.len() > REMEMBERED_MAX;
            if !is_over && !too_many {
                return;
            }
            self.left.pop_front();
            let Some(entry) = self.callers.get_mut(&caller) else {
                continue;
            };
            if entry.connections > 0 || entry.left_at != since {
                continue;
            }
            if too_many || entry.state.is_at_rest(now) {
                self.callers.remove(&caller);
            } else {
                entry.left_at = now;
                self.left.push_back((now, caller));
            }
        }
    }
}

fn resize(sizes: &mut BTreeMap<usize, usize>, before: usize, after: usize) {
    if let Some(callers) = sizes.get_mut(&before) {
        *callers -= 1;
        if *callers == 0 {
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
