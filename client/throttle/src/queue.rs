//! Waiting requests: in the order of rank and arrival, with their predicted cost, and the time at which each gives up.

use std::collections::{BTreeMap, BTreeSet};

use doorward_limits::Moment;

use crate::criticality::{Criticality, RANKS, Rank, TIERS};

/// Place of a waiting request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    rank: Rank,
    /// Number of the arrival.
    arrival: u64,
}

/// A waiting request. `waiter`: the thing to wake.
#[derive(Debug)]
pub struct Waiting<W> {
    /// The thing to wake.
    pub waiter: W,
    /// Hash of the name of the operation.
    pub operation: u64,
    /// Predicted cost, in millionths of a unit.
    pub cost: u64,
    /// Time at which it gives up.
    pub leaves_at: Moment,
}

/// The queue.
#[derive(Debug)]
pub struct Queue<W> {
    waiting: BTreeMap<Key, Waiting<W>>,
    by_leaving: BTreeSet<(Moment, Key)>,
    /// Sum of costs of each rank.
    costs: [u64; RANKS],
    /// Sum of all costs.
    cost: u64,
    lens: [usize; TIERS],
    /// When each tier began to have a waiting request without a pause.
    busy_since: [Option<Moment>; TIERS],
}

impl Key {
    /// Creates the place of an arrival.
    pub const fn new(rank: Rank, arrival: u64) -> Self {
        Self { rank, arrival }
    }

    /// Returns the tier.
    pub fn tier(self) -> Criticality {
        self.rank.tier()
    }
}

impl<W> Queue<W> {
    /// Creates an empty queue.
    pub const fn new() -> Self {
        Self {
            waiting: BTreeMap::new(),
            by_leaving: BTreeSet::new(),
            costs: [0; RANKS],
            cost: 0,
            lens: [0; TIERS],
            busy_since: [None; TIERS],
        }
    }

    /// Returns the number of waiting requests.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Returns whether no request waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the number of waiting requests of a tier.
    pub fn len_of(&self, tier: Criticality) -> usize {
        self.lens.get(tier as usize).copied().unwrap_or_default()
    }

    /// Returns the predicted cost of all waiting requests, in millionths of a unit.
    pub const fn cost(&self) -> u64 {
        self.cost
    }

    /// Returns the predicted cost of those that a new request of a rank waits for.
    pub fn cost_before(&self, rank: Rank) -> u64 {
        self.costs.iter().take(rank.place() + 1).sum()
    }

    /// Returns since when requests of a tier wait without a pause.
    pub fn busy_since(&self, tier: Criticality) -> Option<Moment> {
        self.busy_since.get(tier as usize).copied().flatten()
    }

    /// Adds a request.
    pub fn push(&mut self, key: Key, waiting: Waiting<W>, now: Moment) {
        self.count(key, waiting.cost, true, now);
        self.by_leaving.insert((waiting.leaves_at, key));
        self.waiting.insert(key, waiting);
    }

    /// Removes a request, if it waits.
    pub fn remove(&mut self, key: Key, now: Moment) -> Option<Waiting<W>> {
        let waiting = self.waiting.remove(&key)?;
        self.by_leaving.remove(&(waiting.leaves_at, key));
        self.count(key, waiting.cost, false, now);
        Some(waiting)
    }

    /// Returns the request that is served next.
    pub fn first(&self) -> Option<Key> {
        self.waiting.first_key_value().map(|(key, _)| *key)
    }

    /// Returns the newest request of the last rank, if that is after a rank.
    pub fn last_after(&self, rank: Rank) -> Option<Key> {
        let (key, _) = self.waiting.last_key_value()?;
        (key.rank > rank).then_some(*key)
    }

    /// Returns the request that gives up next, and when.
    pub fn next_leaving(&self) -> Option<(Moment, Key)> {
        self.by_leaving.first().copied()
    }

    fn count(&mut self, key: Key, cost: u64, comes: bool, now: Moment) {
        let place = key.rank.place();
        let tier = key.tier() as usize;
        if let (Some(costs), Some(len), Some(busy_since)) = (
            self.costs.get_mut(place),
            self.lens.get_mut(tier),
            self.busy_since.get_mut(tier),
        ) {
            if comes {
                (*costs, self.cost) = (*costs + cost, self.cost + cost);
                *len += 1;
                busy_since.get_or_insert(now);
            } else {
                (*costs, self.cost) = (*costs - cost, self.cost - cost);
                *len -= 1;
                *busy_since = busy_since.filter(|_| *len > 0);
            }
        }
        debug_assert_eq!(self.costs.iter().sum::<u64>(), self.cost, "sum of costs");
    }
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Self::new()
    }
}
