//! Waiting requests: in the order of rank and arrival, with their predicted cost, and the time at which each gives up.

use std::collections::{BTreeMap, BTreeSet};

use doorward_limits::Moment;

use crate::overload::criticality::{Criticality, RANKS, Rank, TIERS};

/// Place of a waiting request. No two have the same arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    rank: Rank,
    arrival: u64,
}

/// A waiting request. `waiter`: the thing to wake.
#[derive(Debug)]
pub struct Waiting<W> {
    /// The thing to wake.
    pub waiter: W,
    /// Hash of the name of the operation.
    pub operation: u64,
    /// Predicted cost, in thousandths of a unit.
    pub cost: u64,
    /// Time at which it gives up.
    pub leaves_at: Moment,
    /// Time after which the answer is useless.
    pub deadline: Option<Moment>,
}

/// The queue.
#[derive(Debug)]
pub struct Queue<W> {
    waiting: BTreeMap<Key, Waiting<W>>,
    leaving: BTreeSet<(Moment, u64, Rank)>,
    /// Sum of the costs of each rank.
    costs: [u64; RANKS],
    /// Number of requests of each tier, and when it began to have one without a pause.
    tiers: [(usize, Moment); TIERS],
}

impl Key {
    /// Returns the tier.
    pub fn tier(self) -> Criticality {
        self.rank.tier()
    }
}

impl<W> Queue<W> {
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
        self.tiers.get(tier as usize).map_or(0, |(len, _)| *len)
    }

    /// Returns the predicted cost of all waiting requests, in thousandths of a unit.
    pub fn cost(&self) -> u64 {
        self.costs.iter().sum()
    }

    /// Returns the predicted cost of those that a new request of a rank waits for.
    pub fn cost_before(&self, rank: Rank) -> u64 {
        self.costs.iter().take(rank.place() + 1).sum()
    }

    /// Returns since when requests of a tier wait without a pause.
    pub fn busy_since(&self, tier: Criticality) -> Option<Moment> {
        let (len, since) = self.tiers.get(tier as usize)?;
        (*len > 0).then_some(*since)
    }

    /// Adds a request, and returns its place. `arrival`: a number that grows.
    pub fn push(&mut self, rank: Rank, arrival: u64, waiting: Waiting<W>, now: Moment) -> Key {
        let key = Key { rank, arrival };
        if let Some(cost) = self.costs.get_mut(rank.place()) {
            *cost += waiting.cost;
        }
        if let Some((len, since)) = self.tiers.get_mut(rank.tier() as usize) {
            if *len == 0 {
                *since = now;
            }
            *len += 1;
        }
        self.leaving.insert((waiting.leaves_at, arrival, rank));
        self.waiting.insert(key, waiting);
        key
    }

    /// Removes a request, if it waits.
    pub fn remove(&mut self, key: Key) -> Option<Waiting<W>> {
        let waiting = self.waiting.remove(&key)?;
        let Key { rank, arrival } = key;
        self.leaving.remove(&(waiting.leaves_at, arrival, rank));
        if let Some(cost) = self.costs.get_mut(rank.place()) {
            *cost -= waiting.cost;
        }
        if let Some((len, _)) = self.tiers.get_mut(rank.tier() as usize) {
            *len -= 1;
        }
        Some(waiting)
    }

    /// Returns the request that is served next, and its operation.
    pub fn first(&self) -> Option<(Key, u64)> {
        let (key, waiting) = self.waiting.first_key_value()?;
        Some((*key, waiting.operation))
    }

    /// Returns the newest request of the last rank, if that is after a rank.
    pub fn last_after(&self, rank: Rank) -> Option<(Key, &Waiting<W>)> {
        let (key, waiting) = self.waiting.last_key_value()?;
        (key.rank > rank).then_some((*key, waiting))
    }

    /// Returns the request that gives up next, and when.
    pub fn next_leaving(&self) -> Option<(Moment, Key)> {
        let (at, arrival, rank) = *self.leaving.first()?;
        Some((at, Key { rank, arrival }))
    }
}

impl<W> Default for Queue<W> {
    fn default() -> Self {
        Self {
            waiting: BTreeMap::new(),
            leaving: BTreeSet::new(),
            costs: [0; RANKS],
            tiers: [(0, Moment::FIRST); TIERS],
        }
    }
}
