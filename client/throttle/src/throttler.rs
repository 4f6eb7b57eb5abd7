//! The decision about each request, and what its end teaches.
//!
//! Like a state machine of quinn, a throttler has getters, commands ([`Throttler::offer`], [`Throttler::cancel`],
//! [`Throttler::leave`]), inputs ([`Throttler::handle_end`], [`Throttler::handle_timeout`]) and outputs
//! ([`Throttler::poll_decided`], [`Throttler::poll_timeout`]). After each command and input, take the outputs until
//! there are none.
//!
//! The queue is full for a request if the predicted cost of those before it would take longer than it can wait. A
//! request can wait until its deadline, less the usual latency of its operation; at most the longest wait that is set,
//! or 10 times the usual latency. If requests of its tier have waited without a pause for an interval, it can wait only
//! for a fifth of that interval: a queue that never empties makes all requests late, and serves no more of them than a
//! short one. Source: CoDel (Nichols and Jacobson, "Controlling Queue Delay", 2012), and its use for requests (Maurer,
//! "Fail at Scale", 2015).

use std::collections::VecDeque;
use std::time::Duration;

use doorward_limits::Moment;

use crate::criticality::{Criticality, Rank, mix};
use crate::limit::{ConcurrencyLimit, Percentile};
use crate::operations::Operations;
use crate::queue::{Key, Queue, Waiting};

/// Shortest time for which requests of a tier wait without a pause before waits are cut.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// The same time as a multiple of the usual latency.
const INTERVAL: f64 = 10.0;

/// Divisor from that time to the longest wait then.
const WAIT: u64 = 5;

/// Latency of a request before one has ended.
const FIRST_LATENCY: Duration = Duration::from_millis(10);

/// Thousandths of a unit of cost, so that sums are exact.
const UNIT: f64 = 1e3;

/// Largest cost of a request, in units of the service. With it, the sum of all waiting requests fits into 64 bits.
const COST_MAX: f64 = 1e9;

/// Largest number of waiting requests that a service may set.
const WAITING_MAX: usize = 1 << 24;

/// Shortest time after which a refused caller comes back.
const RETRY_MIN: Duration = Duration::from_secs(1);

/// Longest time after which a refused caller comes back, before it is spread.
const RETRY_MAX: Duration = Duration::from_secs(10);

/// Time constant over which the speed of the service is averaged.
const SPEED_SECONDS: f64 = 2.0;

/// Settings, which few services need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Latency that the concurrency limit follows. Default: P50.
    pub percentile: Percentile,
    /// Longest wait of a request without a deadline. Default: 1 s.
    pub max_wait: Duration,
    /// Largest number of waiting requests, at most 2²⁴. Default: 10,000.
    pub waiting_max: usize,
    /// Concurrency limit that never changes, for comparisons. Default: none.
    pub fixed_limit: Option<u32>,
}

/// A request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Hash of the name of the operation, and of its class if it has classes. Like requests have the same hash.
    pub operation: u64,
    /// Tier.
    pub criticality: Criticality,
    /// Hash of the user's name. Requests without a user belong to any cohort.
    pub user: Option<u64>,
    /// Time after which the answer is useless.
    pub deadline: Option<Moment>,
}

/// A request that is served. Give it back by [`Throttler::handle_end`] or [`Throttler::cancel`].
#[derive(Debug, PartialEq)]
#[must_use = "the request uses concurrency until its admission is given back"]
pub struct Admission {
    operation: u64,
    /// Predicted cost, in thousandths of a unit.
    cost: u64,
    at: Moment,
}

/// A waiting request, for [`Throttler::leave`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    key: Key,
    leaves_at: Moment,
}

/// The answer to a request.
#[derive(Debug, PartialEq)]
pub enum Offer {
    /// It is served.
    Admitted(Admission),
    /// It waits; [`Throttler::poll_decided`] returns its waiter.
    Queued(Place),
    /// It is refused.
    Refused(Refusal),
}

/// A refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The reason.
    pub reason: Reason,
    /// Time after which the caller may come back. Callers get different times.
    pub retry_after: Duration,
}

/// The reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The requests that wait take longer than this one can wait.
    Full,
    /// A more critical request took its place.
    PushedOut,
    /// It waited as long as it could, or cannot wait at all.
    TooLate,
}

/// An overload control. `W`: the thing that wakes a waiting request.
#[derive(Debug)]
pub struct Throttler<W> {
    config: Config,
    operations: Operations,
    limit: ConcurrencyLimit,
    queue: Queue<W>,
    in_flight: u32,
    speed: Speed,
    arrivals: u64,
    refusals: u64,
    decided: VecDeque<(W, Result<Admission, Refusal>)>,
}

/// Speed at which the service works off cost while requests wait.
#[derive(Debug, Default)]
struct Speed {
    work: f64,
    seconds: f64,
    /// End of the last request, if others waited.
    since: Option<Moment>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            percentile: Percentile::default(),
            max_wait: Duration::from_secs(1),
            waiting_max: 10_000,
            fixed_limit: None,
        }
    }
}

impl Admission {
    /// Returns the predicted cost, in units of the service.
    pub fn predicted_cost(&self) -> f64 {
        self.cost as f64 / UNIT
    }

    /// Returns the milliseconds since the request was admitted, which are its cost if none is reported.
    pub fn millis(&self, now: Moment) -> f64 {
        now.nanos_since(self.at) as f64 / 1e6
    }
}

impl Place {
    /// Returns when the request gives up.
    pub const fn leaves_at(self) -> Moment {
        self.leaves_at
    }
}

impl<W> Throttler<W> {
    /// Creates a throttler that knows nothing yet.
    pub fn new(config: Config) -> Self {
        Self {
            operations: Operations::new(1.0, FIRST_LATENCY.as_secs_f64()),
            limit: ConcurrencyLimit::new(config.percentile),
            queue: Queue::new(),
            in_flight: 0,
            speed: Speed::default(),
            arrivals: 0,
            refusals: 0,
            decided: VecDeque::new(),
            config: Config {
                waiting_max: config.waiting_max.min(WAITING_MAX),
                ..config
            },
        }
    }

    /// Returns the largest number of requests that are served at once.
    pub fn limit(&self) -> u32 {
        let limit = self.config.fixed_limit;
        limit.unwrap_or_else(|| self.limit.limit())
    }

    /// Returns the number of requests that are served now.
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns the number of waiting requests of a tier.
    pub fn waiting(&self, tier: Criticality) -> usize {
        self.queue.len_of(tier)
    }

    /// Returns the predicted cost of all waiting requests, in units of the service.
    pub fn waiting_cost(&self) -> f64 {
        self.queue.cost() as f64 / UNIT
    }

    /// Returns the predicted cost of an operation, in units of the service.
    pub fn predicted_cost(&self, operation: u64) -> f64 {
        self.operations.cost(operation)
    }

    /// Decides about a request. `waiter` is called only if the request has to wait.
    pub fn offer(&mut self, ask: &Ask, waiter: impl FnOnce() -> W, now: Moment) -> Offer {
        self.arrivals += 1;
        self.handle_timeout(now);
        if ask.deadline.is_some_and(|deadline| deadline <= now) {
            return Offer::Refused(self.refuse(Reason::TooLate));
        }
        let known = self.operations.of(ask.operation);
        let cost = (known.cost.mean() * UNIT) as u64;
        let latency = known.latency.mean();
        let operation = ask.operation;
        if self.queue.is_empty() && self.in_flight < self.limit() {
            self.in_flight += 1;
            let at = now;
            return Offer::Admitted(Admission {
                operation,
                cost,
                at,
            });
        }
        let rank = Rank::new(ask.criticality, ask.user.unwrap_or(self.arrivals), now);
        let patience = self.patience(ask, latency, now);
        if patience == 0 {
            return Offer::Refused(self.refuse(Reason::TooLate));
        }
        let fits = patience as f64 * self.speed.per_nano();
        if self.queue.cost_before(rank) as f64 > fits {
            return Offer::Refused(self.refuse(Reason::Full));
        }
        while let Some(last) = self.last_without_room(rank, cost, now) {
            self.send_away(last, Reason::PushedOut);
        }
        if self.queue.len() >= self.config.waiting_max {
            return Offer::Refused(self.refuse(Reason::Full));
        }
        let leaves_at = now.after_nanos(patience);
        let waiting = Waiting {
            waiter: waiter(),
            operation,
            cost,
            leaves_at,
        };
        let key = self.queue.push(rank, self.arrivals, waiting, now);
        Offer::Queued(Place { key, leaves_at })
    }

    /// Takes the end of a request into account, and returns its cost. `cost`: what it really cost, in units of the
    /// service; its latency in milliseconds if none, or if it is no cost.
    pub fn handle_end(&mut self, admission: Admission, cost: Option<f64>, now: Moment) -> f64 {
        let millis = admission.millis(now);
        let cost = cost.filter(|cost| cost.is_finite() && *cost >= 0.0);
        let cost = cost.unwrap_or(millis).min(COST_MAX);
        // The real cost: the predictions of a new service are far off.
        self.observe(&admission, (cost * UNIT) as u64, now);
        self.operations
            .record(admission.operation, cost, millis / 1e3);
        self.handle_timeout(now);
        cost
    }

    /// Takes an admission back whose request was not served to its end. If that request was slower than usual, its
    /// latency counts: otherwise a service whose callers all give up would seem quick.
    pub fn cancel(&mut self, admission: Admission, now: Moment) {
        let latency = admission.millis(now) / 1e3;
        let operation = admission.operation;
        if latency > self.operations.of(operation).latency.mean() {
            self.observe(&admission, 0, now);
            self.operations.record_cut(operation, latency);
        } else {
            self.in_flight = self.in_flight.saturating_sub(1);
        }
        self.handle_timeout(now);
    }

    /// Ends a request for the limit and the speed. `done`: the cost that is worked off.
    fn observe(&mut self, admission: &Admission, done: u64, now: Moment) {
        debug_assert!(self.in_flight > 0, "{admission:?} is not in flight");
        self.in_flight = self.in_flight.saturating_sub(1);
        let known = self.operations.of(admission.operation);
        let ratio = admission.millis(now) / 1e3 / known.reference(self.limit.round());
        let usual = Duration::from_secs_f64(self.operations.all().latency.mean());
        let is_limited = !self.queue.is_empty();
        self.limit.handle_end(ratio, usual, is_limited, now);
        self.speed.record(done, is_limited, now);
    }

    /// Removes a waiting request whose caller has gone.
    pub fn leave(&mut self, place: Place) {
        self.queue.remove(place.key);
    }

    /// Refuses requests that cannot wait longer, and admits the next ones.
    pub fn handle_timeout(&mut self, now: Moment) {
        while let Some((at, key)) = self.queue.next_leaving()
            && at <= now
        {
            self.send_away(key, Reason::TooLate);
        }
        self.admit(now);
    }

    /// Returns when [`Throttler::handle_timeout`] is due.
    pub fn poll_timeout(&mut self) -> Option<Moment> {
        self.queue.next_leaving().map(|(at, _)| at)
    }

    /// Returns a request that waited, and the decision about it.
    pub fn poll_decided(&mut self) -> Option<(W, Result<Admission, Refusal>)> {
        self.decided.pop_front()
    }

    /// Admits waiting requests up to the limit.
    fn admit(&mut self, now: Moment) {
        while self.in_flight < self.limit()
            && let Some(first) = self.queue.first()
            && let Some(waiting) = self.queue.remove(first)
        {
            self.in_flight += 1;
            let admission = Admission {
                operation: waiting.operation,
                cost: waiting.cost,
                at: now,
            };
            self.decided.push_back((waiting.waiter, Ok(admission)));
        }
    }

    fn send_away(&mut self, key: Key, reason: Reason) {
        if let Some(waiting) = self.queue.remove(key) {
            let refusal = self.refuse(reason);
            self.decided.push_back((waiting.waiter, Err(refusal)));
        }
    }

    /// Makes a refusal. A caller comes back when the queue of now is done, or up to three times as late.
    fn refuse(&mut self, reason: Reason) -> Refusal {
        self.refusals += 1;
        let nanos = self.queue.cost() as f64 / self.speed.per_nano();
        let nanos = nanos.clamp(RETRY_MIN.as_nanos() as f64, RETRY_MAX.as_nanos() as f64);
        let part = (mix(self.refusals) >> 40) as f64 / (1u64 << 24) as f64;
        Refusal {
            reason,
            retry_after: Duration::from_nanos((nanos * (1.0 + 2.0 * part)) as u64),
        }
    }

    /// Returns the last waiting request if it has no room, or no time, behind a new one of a rank.
    fn last_without_room(&mut self, rank: Rank, cost: u64, now: Moment) -> Option<Key> {
        let has_room = self.queue.len() < self.config.waiting_max;
        let before = self.queue.cost() + cost;
        let (key, last) = self.queue.last_after(rank)?;
        let left = last.leaves_at.nanos_since(now) as f64;
        let has_time = (before - last.cost) as f64 <= left * self.speed.per_nano();
        (!has_room || !has_time).then_some(key)
    }

    /// Returns how long a request can wait, in nanoseconds. `usual`: seconds that its operation takes.
    fn patience(&self, ask: &Ask, usual: f64, now: Moment) -> u64 {
        let interval = (INTERVAL * self.operations.all().latency.mean() * 1e9) as u64;
        let interval = interval.max(nanos(INTERVAL_MIN));
        let max_wait = nanos(self.config.max_wait);
        let longest = match ask.deadline {
            Some(deadline) => {
                let left = deadline.nanos_since(now);
                let left = left.saturating_sub((usual * 1e9) as u64);
                // A caller that claims to have time for ever does not fill the queue.
                left.min(max_wait.max(interval))
            }
            None => max_wait,
        };
        let busy_since = self.queue.busy_since(ask.criticality);
        if busy_since.is_some_and(|since| now.nanos_since(since) >= interval) {
            longest.min(interval / WAIT)
        } else {
            longest
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

impl Speed {
    fn record(&mut self, cost: u64, is_limited: bool, now: Moment) {
        if let Some(since) = self.since {
            // However long a stall was, it counts as one time constant.
            let seconds = (now.nanos_since(since) as f64 / 1e9).min(SPEED_SECONDS);
            let kept = (-seconds / SPEED_SECONDS).exp();
            self.work = self.work * kept + cost as f64;
            self.seconds = self.seconds * kept + seconds;
        }
        self.since = is_limited.then_some(now);
    }

    /// Returns the cost in a nanosecond; infinite if it is unknown.
    fn per_nano(&self) -> f64 {
        if self.seconds > 0.0 && self.work > 0.0 {
            self.work / (self.seconds * 1e9)
        } else {
            f64::INFINITY
        }
    }
}
