//! The cost and the latency of each operation, in bounded memory.
//!
//! The table has two generations. A request brings its operation into the young one. When that is full, it becomes the
//! old one, and the operations of the former old one are forgotten.

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::estimate::Estimate;

/// Number of operations in a generation.
const GENERATION: usize = 10_000;

/// Estimates of one operation.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    /// Cost of a request, in units of the service.
    pub cost: Estimate,
    /// Time from admission to the end, in seconds.
    pub latency: Estimate,
    /// Latency to which others are compared, in seconds, and the round of the limit in which it counts.
    reference: (u32, f32),
}

/// Estimates of all operations.
#[derive(Debug)]
pub struct Operations {
    young: HashMap<u64, Operation, FixedState>,
    old: HashMap<u64, Operation, FixedState>,
    /// Estimates over all requests, which are the prior of a new operation.
    all: Operation,
}

impl Operation {
    const fn new(cost: f64, latency: f64) -> Self {
        Self {
            cost: Estimate::new(cost),
            latency: Estimate::new(latency),
            reference: (0, 0.0),
        }
    }

    fn record(&mut self, cost: f64, latency: f64) {
        self.cost.record(cost);
        self.latency.record(latency);
    }

    /// Returns the latency that counts as usual in a round of the limit. It stays the same during a round, so that two
    /// windows of a round are comparable.
    pub fn reference(&mut self, round: u32) -> f64 {
        if self.reference.0 != round {
            self.reference = (round, self.latency.mean() as f32);
        }
        f64::from(self.reference.1)
    }
}

impl Operations {
    /// Creates an empty table. Requests cost `cost` and take `latency` seconds until some have ended.
    pub fn new(cost: f64, latency: f64) -> Self {
        Self {
            young: HashMap::default(),
            old: HashMap::default(),
            all: Operation::new(cost, latency),
        }
    }

    /// Returns the estimates of an operation, which is a hash of its name.
    pub fn of(&mut self, operation: u64) -> &mut Operation {
        if self.young.len() >= GENERATION && !self.young.contains_key(&operation) {
            self.old = std::mem::take(&mut self.young);
        }
        let prior = || Operation::new(self.all.cost.mean(), self.all.latency.mean());
        match self.young.entry(operation) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(self.old.remove(&operation).unwrap_or_else(prior)),
        }
    }

    /// Returns the predicted cost of an operation, which may be unknown.
    pub fn cost(&self, operation: u64) -> f64 {
        let known = self.young.get(&operation).or(self.old.get(&operation));
        known.unwrap_or(&self.all).cost.mean()
    }

    /// Takes a request that has not ended into account: it would have taken longer than `latency` seconds.
    pub fn record_cut(&mut self, operation: u64, latency: f64) {
        self.all.latency.record(latency);
        self.of(operation).latency.record(latency);
    }

    /// Takes a request that has ended into account.
    pub fn record(&mut self, operation: u64, cost: f64, latency: f64) {
        self.all.record(cost, latency);
        self.of(operation).record(cost, latency);
    }

    /// Returns the estimates over all requests.
    pub const fn all(&self) -> &Operation {
        &self.all
    }

    /// Returns the number of known operations.
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Returns whether no operation is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
