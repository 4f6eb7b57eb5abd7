//! The decision about each request, and what its end teaches.
//!
//! Like a state machine of quinn, a throttler has getters, commands ([`Throttler::offer`], [`Throttler::cancel`],
//! [`Throttler::leave`]), inputs ([`Throttler::handle_end`], [`Throttler::handle_timeout`]) and outputs
//! ([`Throttler::poll_decided`], [`Throttler::poll_timeout`]). After each command and input, take the outputs until there
//! are none.
//!
//! The queue is full for a request if the predicted cost of all that wait would take longer than the request can wait.
//! A request can wait until its deadline, less the usual latency of its operation. If requests of its tier have waited
//! without a pause for an interval, it can wait only for a fifth of that interval: a queue that never empties makes all
//! requests late, and serves no more of them than a short one. Source: CoDel (Nichols and Jacobson, "Controlling Queue
//! Delay", 2012), and its use for requests (Maurer, "Fail at Scale", 2015).

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
const INTERVAL: f64 = 20.0;

/// Part of the interval for which a request waits then.
const WAIT: f64 = 0.2;

/// Latency of a request before one has ended.
const FIRST_LATENCY: Duration = Duration::from_millis(10);

/// Millionths of a unit of cost, so that sums are exact.
const UNIT: f64 = 1e6;

/// Largest cost of a request, so that no sum overflows: 2⁴⁰ units.
const COST_MAX: f64 = (1u64 << 40) as f64;

/// Shortest time after which a refused caller comes back.
const RETRY_MIN: Duration = Duration::from_secs(1);

/// Time constants over which the speed of the service is averaged.
const SPEED_SECONDS: f64 = 2.0;

/// Settings, which few services need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Latency that the concurrency limit follows. Default: P50.
    pub percentile: Percentile,
    /// Longest wait of a request without a deadline. Default: 1 s.
    pub max_wait: Duration,
    /// Largest number of waiting requests. Default: 10,000.
    pub waiting_max: usize,
    /// Concurrency limit that never changes, for comparisons. Default: none.
    pub fixed_limit: Option<u32>,
}

/// A request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ask {
    /// Hash of the name of the operation, with its class if there are some. Like requests have the same hash.
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
    /// Predicted cost, in millionths of a unit.
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
    decided: VecDeque<(W, Result<Admission, Refusal>)>,
}

/// Cost that the service works off in a second, while requests wait.
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
            decided: VecDeque::new(),
            config,
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
    pub fn predicted_cost(&mut self, operation: u64) -> f64 {
        self.operations.of(operation).cost.mean()
    }

    /// Decides about a request. `waiter` is called only if the request has to wait.
    pub fn offer(&mut self, ask: &Ask, waiter: impl FnOnce() -> W, now: Moment) -> Offer {
        self.arrivals += 1;
        self.handle_timeout(now);
        let known = self.operations.of(ask.operation);
        let cost = (known.cost.mean().min(COST_MAX) * UNIT) as u64;
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
        if patience.is_zero() {
            return Offer::Refused(self.refuse(Reason::TooLate));
        }
        let fits = patience.as_secs_f64() * self.speed.per_second();
        if self.queue.cost_before(rank) as f64 > fits {
            return Offer::Refused(self.refuse(Reason::Full));
        }
        // All of a more critical request's predecessors fit, so this ends.
        while self.queue.cost() as f64 > fits || self.queue.len() >= self.config.waiting_max {
            let Some(last) = self.queue.last_after(rank) else {
                return Offer::Refused(self.refuse(Reason::Full));
            };
            self.send_away(last, Reason::PushedOut, now);
        }
        let key = Key::new(rank, self.arrivals);
        let leaves_at = now.after(patience);
        let waiting = Waiting {
            waiter: waiter(),
            operation,
            cost,
            leaves_at,
        };
        self.queue.push(key, waiting, now);
        self.admit(now);
        Offer::Queued(Place { key, leaves_at })
    }

    /// Takes the end of a request into account. `cost`: what it really cost, in units of the service; its latency in
    /// milliseconds if none.
    pub fn handle_end(&mut self, admission: Admission, cost: Option<f64>, now: Moment) {
        let millis = admission.millis(now);
        let latency = millis / 1e3;
        let reference = self.operations.of(admission.operation);
        let reference = reference.reference(self.limit.round());
        self.in_flight = self.in_flight.saturating_sub(1);
        let is_limited = !self.queue.is_empty();
        let usual = Duration::from_secs_f64(self.operations.all().latency.mean());
        self.limit
            .handle_end(latency / reference, usual, is_limited, now);
        let cost = cost.unwrap_or(millis);
        self.operations.record(admission.operation, cost, latency);
        self.speed.record(admission.cost, is_limited, now);
        self.handle_timeout(now);
    }

    /// Takes an admission back whose request was not served to its end. Nothing is learned from it.
    pub fn cancel(&mut self, admission: Admission, now: Moment) {
        debug_assert!(self.in_flight > 0, "{admission:?} is not in flight");
        self.in_flight = self.in_flight.saturating_sub(1);
        self.handle_timeout(now);
    }

    /// Removes a waiting request whose caller has gone.
    pub fn leave(&mut self, place: Place, now: Moment) {
        self.queue.remove(place.key, now);
    }

    /// Refuses requests that cannot wait longer, and admits the next ones.
    pub fn handle_timeout(&mut self, now: Moment) {
        while let Some((at, key)) = self.queue.next_leaving()
            && at <= now
        {
            self.send_away(key, Reason::TooLate, now);
        }
        self.admit(now);
    }

    /// Returns when [`Throttler::handle_timeout`] is due.
    pub fn poll_timeout(&self) -> Option<Moment> {
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
            && let Some(waiting) = self.queue.remove(first, now)
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

    fn send_away(&mut self, key: Key, reason: Reason, now: Moment) {
        if let Some(waiting) = self.queue.remove(key, now) {
            let refusal = self.refuse(reason);
            self.decided.push_back((waiting.waiter, Err(refusal)));
        }
    }

    /// Makes a refusal. A caller comes back when the queue of now is done, and as much later at most.
    fn refuse(&self, reason: Reason) -> Refusal {
        let least = self.time_of(self.queue.cost()).max(RETRY_MIN);
        let part = (mix(self.arrivals) >> 40) as f64 / (1u64 << 24) as f64;
        Refusal {
            reason,
            retry_after: least.mul_f64(1.0 + part),
        }
    }

    /// Returns how long a request can wait.
    fn patience(&self, ask: &Ask, latency: f64, now: Moment) -> Duration {
        let longest = ask.deadline.map_or(self.config.max_wait, |deadline| {
            let left = Duration::from_nanos(deadline.nanos_since(now));
            left.saturating_sub(Duration::from_secs_f64(latency))
        });
        let usual = self.operations.all().latency.mean();
        let interval = Duration::from_secs_f64(INTERVAL * usual).max(INTERVAL_MIN);
        let busy_since = self.queue.busy_since(ask.criticality);
        if busy_since.is_some_and(|since| now >= since.after(interval)) {
            longest.min(interval.mul_f64(WAIT))
        } else {
            longest
        }
    }

    /// Returns the time in which the service works off a cost; zero if its speed is unknown.
    fn time_of(&self, cost: u64) -> Duration {
        let seconds = cost as f64 / self.speed.per_second();
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }
}

impl Speed {
    fn record(&mut self, cost: u64, is_limited: bool, now: Moment) {
        if let Some(since) = self.since {
            // A stall counts as little as any other time.
            let seconds = (now.nanos_since(since) as f64 / 1e9).min(SPEED_SECONDS);
            let kept = (-seconds / SPEED_SECONDS).exp();
            self.work = self.work * kept + cost as f64;
            self.seconds = self.seconds * kept + seconds;
        }
        self.since = is_limited.then_some(now);
    }

    /// Returns the speed; infinite if it is unknown.
    fn per_second(&self) -> f64 {
        if self.seconds > 0.0 && self.work > 0.0 {
            self.work / self.seconds
        } else {
            f64::INFINITY
        }
    }
}
