//! The cost and the latency of each operation, in bounded memory.
//!
//! The table has two generations. A request brings its operation into the young one. When that is full, it becomes the
//! old one, and the operations of the former old one are forgotten.

use doorward_limits::Moment;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::overload::estimate::Estimate;

/// Number of requests that tell the shortest usual latency of an operation: a short one, and one that takes longer than
/// [`LONG`] seconds. Of long ones that began together, the shortest end first.
const FIRST: u8 = 4;
const MEMORY: u8 = 32;
const LONG: f32 = 0.1;

/// Seconds in which the shortest usual latency doubles.
const FORGET: f32 = 30.0;

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
    best: Best,
}

/// The shortest usual latency of an operation in the last time, as logarithms of seconds: the mean of the first ones, and
/// then the least moving mean, which doubles in [`FORGET`]. Of times with heavy tails, logarithms
/// have a mean that is near the median.
#[derive(Clone, Copy, Debug, Default)]
struct Best {
    usual: f32,
    least: f32,
    /// Number of requests so far, at most [`MEMORY`].
    count: u8,
    /// Level of latencies at which it counts: a sum of logarithms.
    level: f32,
    at: Moment,
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
    fn new(cost: f64, latency: f64) -> Self {
        Self {
            cost: Estimate::new(cost),
            latency: Estimate::new(latency),
            reference: (0, 0.0),
            best: Best::default(),
        }
    }

    /// Returns the logarithm of the shortest usual latency, if enough requests have ended to know it.
    pub fn best(&self) -> Option<f64> {
        (self.best.count >= FIRST).then_some(f64::from(self.best.least))
    }

    /// Takes a latency into account for the shortest usual one.
    fn record_best(&mut self, latency: f64, level: f64, now: Moment) {
        let (best, level) = (&mut self.best, level as f32);
        best.count = (best.count + 1).min(MEMORY);
        best.usual += (latency.max(1e-9).ln() as f32 - best.usual) / f32::from(best.count);
        let is_first = best.count <= FIRST || best.usual > LONG.ln() && best.count < MEMORY;
        let seconds = now.nanos_since(best.at) as f32 / 1e9;
        let doublings = seconds / FORGET;
        let grown = best.least + level - best.level + doublings * std::f32::consts::LN_2;
        best.least = if is_first {
            best.usual
        } else {
            best.usual.min(grown)
        };
        (best.level, best.at) = (level, now);
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

    /// Takes the latency of a request that has ended into account for the shortest usual one. `level`: that of
    /// latencies, with which it moves.
    pub fn record_best(&mut self, operation: u64, latency: f64, level: f64, now: Moment) {
        self.of(operation).record_best(latency, level, now);
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
