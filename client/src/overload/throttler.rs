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
//! short one. With few places, 16 requests may wait all the same: a shorter queue would often be empty. Source: CoDel
//! (Nichols and Jacobson, "Controlling Queue Delay", 2012), and its use for requests (Maurer, "Fail at Scale", 2015).

use std::collections::VecDeque;
use std::time::Duration;

use doorward_limits::Moment;

use crate::overload::criticality::{Criticality, Rank, mix};
use crate::overload::limit::{ConcurrencyLimit, End};
use crate::overload::operations::Operations;
use crate::overload::queue::{Key, Queue, Waiting};
use crate::{Refusal, Why};

mod config;
mod request;
mod speed;

use request::UNIT;
use speed::Speed;

pub use config::Config;
pub use request::{Admission, Ask, Offer, Place, Reason};

/// Shortest time for which requests of a tier wait without a pause before waits are cut.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// The same time as a multiple of the usual latency.
const INTERVAL: f64 = 10.0;

/// Divisor from that time to the longest wait then.
const WAIT: u64 = 5;

/// Limit below which places are few, and the number of requests of a tier that then wait before waits are cut.
const FEW: (u32, usize) = (6, 16);

/// Latency of a request before one has ended.
const FIRST_LATENCY: Duration = Duration::from_millis(10);

/// Largest cost of a request, in units of the service. With it, the sum of all waiting requests fits into 64 bits.
const COST_MAX: f64 = 1e9;

/// Largest number of waiting requests that a service may set.
const WAITING_MAX: usize = 1 << 24;

/// Divisor from the mean latency of requests in flight to that of a short one.
const SHORT: f64 = 16.0;

/// Number of refusals for which one request is admitted whatever the limit says, and the longest time for which such a
/// request keeps others out.
const TRIAL: u64 = 100;
const TRIAL_TIME: Duration = Duration::from_secs(10);
const TRIAL_PAUSE: Duration = Duration::from_secs(1);

/// Shortest time after which a refused caller comes back.
const RETRY_MIN: Duration = Duration::from_secs(1);

/// Longest time after which a refused caller comes back, before it is spread.
const RETRY_MAX: Duration = Duration::from_secs(10);

/// An overload control. `W`: the thing that wakes a waiting request.
#[derive(Debug)]
pub struct Throttler<W> {
    config: Config,
    operations: Operations,
    limit: ConcurrencyLimit,
    queue: Queue<W>,
    in_flight: u32,
    /// Sum of their predicted latencies.
    in_flight_seconds: f64,
    speed: Speed,
    arrivals: u64,
    refusals: u64,
    /// When a request last had to wait, or was refused.
    pressed_at: Moment,
    trials: Trials,
    decided: VecDeque<(W, Result<Admission, Refusal>)>,
}

/// Requests that are admitted whatever the limit says.
#[derive(Debug)]
struct Trials {
    in_flight: u32,
    /// Number of refusals since the last one, and when it began.
    refusals: u64,
    at: Moment,
}

impl<W> Throttler<W> {
    /// Creates a throttler that knows nothing yet.
    pub fn new(config: Config) -> Self {
        Self {
            operations: Operations::new(1.0, FIRST_LATENCY.as_secs_f64()),
            limit: ConcurrencyLimit::new(config.first_limit),
            queue: Queue::default(),
            in_flight: 0,
            in_flight_seconds: 0.0,
            speed: Speed::default(),
            arrivals: 0,
            refusals: 0,
            pressed_at: Moment::FIRST,
            trials: Trials {
                in_flight: 0,
                refusals: 0,
                at: Moment::FIRST,
            },
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

    /// Returns the usual latency of all requests, in seconds.
    pub const fn usual_latency(&self) -> f64 {
        self.operations.all().latency.mean()
    }

    /// Returns the name of the state of the limit.
    pub const fn state(&self) -> &'static str {
        self.limit.state()
    }

    /// Returns the number of requests that are served now.
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Returns the number of waiting requests of a tier.
    pub fn waiting(&self, tier: Criticality) -> usize {
        self.queue.len_of(tier)
    }

    /// Returns the predicted cost of an operation, in units of the service.
    pub fn predicted_cost(&self, operation: u64) -> f64 {
        self.operations.cost(operation)
    }

    /// Decides about a request. `waiter` is called only if the request has to wait.
    pub fn offer(&mut self, ask: &Ask, waiter: impl FnOnce() -> W, now: Moment) -> Offer {
        self.arrivals += 1;
        self.limit.handle_arrival(self.in_flight, now);
        self.handle_timeout(now);
        if ask.deadline.is_some_and(|deadline| deadline <= now) && !self.config.is_shadow {
            return Offer::Refused(self.refuse(Reason::TooLate));
        }
        let known = self.operations.of(ask.operation);
        let cost = (known.cost.mean() * UNIT) as u64;
        let latency = known.latency.mean();
        let admission = Admission {
            operation: ask.operation,
            cost,
            seconds: latency,
            at: now,
            deadline: ask.deadline,
            is_trial: false,
            shadow: None,
        };
        if self.has_place(ask.criticality, ask.operation) {
            return self.start(admission);
        }
        self.pressed_at = now;
        self.limit.handle_pressed();
        let rank = Rank::new(ask.criticality, ask.user.unwrap_or(self.arrivals), now);
        let patience = self.patience(ask, latency, now);
        if patience == 0 {
            return self.refuse_or_try(admission, Reason::TooLate, now);
        }
        let fits = patience as f64 * self.speed.per_nano();
        if self.cost_before(rank) > fits {
            return self.refuse_or_try(admission, Reason::Full, now);
        }
        while let Some(last) = self.last_without_room(rank, cost, now) {
            self.send_away(last, Reason::PushedOut);
        }
        if self.queue.len() >= self.config.waiting_max {
            return self.refuse_or_try(admission, Reason::Full, now);
        }
        if self.config.is_shadow {
            return self.start(admission);
        }
        let leaves_at = now.after_nanos(patience);
        let waiting = Waiting {
            waiter: waiter(),
            operation: ask.operation,
            cost,
            leaves_at,
            deadline: ask.deadline,
        };
        let key = self.queue.push(rank, self.arrivals, waiting, now);
        Offer::Queued(Place { key, leaves_at })
    }

    /// Returns whether there is a place for a request. A critical one that is much shorter than those in flight would
    /// wait for them many times longer than it takes, so it has a place beyond the limit.
    fn has_place(&mut self, tier: Criticality, operation: u64) -> bool {
        if self.in_flight < self.limit() {
            return true;
        }
        if tier != Criticality::Critical || self.config.fixed_limit.is_some() {
            return false;
        }
        let latency = self.operations.of(operation).latency.mean();
        SHORT * latency * f64::from(self.in_flight) <= self.in_flight_seconds
            && self.in_flight < self.limit.short_limit()
    }

    fn start(&mut self, admission: Admission) -> Offer {
        self.count(&admission);
        Offer::Admitted(admission)
    }

    /// Counts an admitted request.
    fn count(&mut self, admission: &Admission) {
        self.in_flight += 1;
        self.in_flight_seconds += admission.seconds;
        let best = self.operations.of(admission.operation).best().map(f64::exp);
        self.limit
            .handle_admitted(best, self.in_flight, admission.at);
    }

    /// Returns the predicted cost of requests that a new one of a rank waits for. In shadow mode, those beyond the limit
    /// are the queue.
    fn cost_before(&self, rank: Rank) -> f64 {
        if !self.config.is_shadow {
            return self.queue.cost_before(rank) as f64;
        }
        let beyond = self.in_flight.saturating_sub(self.limit());
        f64::from(beyond) * self.operations.all().cost.mean() * UNIT
    }

    /// Refuses a request, or admits it as a trial.
    fn refuse_or_try(&mut self, admission: Admission, reason: Reason, now: Moment) -> Offer {
        if self.config.is_shadow {
            let shadow = Some(reason);
            return self.start(Admission {
                shadow,
                ..admission
            });
        }
        self.trials.refusals += 1;
        let pause = match self.trials.in_flight {
            0 => TRIAL_PAUSE,
            _ => TRIAL_TIME,
        };
        let is_due =
            self.trials.refusals >= TRIAL && now.nanos_since(self.trials.at) >= nanos(pause);
        if !is_due || self.config.fixed_limit.is_some() {
            return Offer::Refused(self.refuse(reason));
        }
        self.trials.refusals = 0;
        self.trials.at = now;
        self.trials.in_flight += 1;
        let is_trial = true;
        self.start(Admission {
            is_trial,
            ..admission
        })
    }

    /// Takes the end of a request into account, and returns its cost. `cost`: what it really cost, in units of the
    /// service; its latency in milliseconds if none, or if it is no cost.
    pub fn handle_end(&mut self, admission: Admission, cost: Option<f64>, now: Moment) -> f64 {
        let millis = admission.millis(now);
        let cost = cost.filter(|cost| cost.is_finite() && *cost >= 0.0);
        let cost = cost.unwrap_or(millis).min(COST_MAX);
        // The real cost: the predictions of a new service are far off.
        self.observe(&admission, (cost * UNIT) as u64, false, now);
        self.operations
            .record(admission.operation, cost, millis / 1e3);
        let level = self.limit.level();
        self.operations
            .record_best(admission.operation, millis / 1e3, level, now);
        self.handle_timeout(now);
        cost
    }

    /// Takes an admission back whose request was not served to its end. If that request was slower than usual, its
    /// latency counts: otherwise a service whose callers all give up would seem quick.
    pub fn cancel(&mut self, admission: Admission, now: Moment) {
        let latency = admission.millis(now) / 1e3;
        let operation = admission.operation;
        if latency > self.operations.of(operation).latency.mean() {
            self.observe(&admission, 0, true, now);
            self.operations.record_cut(operation, latency);
        } else {
            self.free(&admission);
        }
        self.handle_timeout(now);
    }

    /// Ends a request for the limit and the speed. `done`: the cost that is worked off.
    fn observe(&mut self, admission: &Admission, done: u64, is_cut: bool, now: Moment) {
        let in_flight = self.in_flight;
        self.free(admission);
        let known = self.operations.of(admission.operation);
        let latency = admission.millis(now) / 1e3;
        let excess = known
            .best()
            .map_or(0.0, |best| latency.max(1e-9).ln() - best);
        let is_late = is_cut || admission.deadline.is_some_and(|deadline| deadline <= now);
        let half = admission.at.after_nanos(now.nanos_since(admission.at) / 2);
        let is_limited = !self.queue.is_empty() || self.pressed_at >= half;
        let end = End {
            admitted_at: admission.at,
            ratio: latency / known.reference(self.limit.round()),
            excess,
            has_best: known.best().is_some(),
            is_late,
            is_cut,
            is_short: INTERVAL * latency <= self.config.max_wait.as_secs_f64(),
            is_limited,
            in_flight,
        };
        let usual = Duration::from_secs_f64(self.operations.all().latency.mean());
        self.limit.handle_end(&end, usual, now);
        let is_busy = match self.config.is_shadow {
            true => in_flight > self.limit(),
            false => !self.queue.is_empty(),
        };
        self.speed.record(done, is_busy, now);
    }

    /// Frees the place of a request.
    fn free(&mut self, admission: &Admission) {
        debug_assert!(self.in_flight > 0, "{admission:?} is not in flight");
        self.in_flight = self.in_flight.saturating_sub(1);
        self.in_flight_seconds -= admission.seconds;
        let trials = &mut self.trials.in_flight;
        *trials = trials.saturating_sub(u32::from(admission.is_trial));
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
    pub fn poll_timeout(&self) -> Option<Moment> {
        self.queue.next_leaving().map(|(at, _)| at)
    }

    /// Returns a request that waited, and the decision about it.
    pub fn poll_decided(&mut self) -> Option<(W, Result<Admission, Refusal>)> {
        self.decided.pop_front()
    }

    /// Admits waiting requests up to the limit.
    fn admit(&mut self, now: Moment) {
        while let Some((first, operation)) = self.queue.first()
            && self.has_place(first.tier(), operation)
            && let Some(waiting) = self.queue.remove(first)
        {
            let seconds = self.operations.of(operation).latency.mean();
            let admission = Admission {
                operation,
                cost: waiting.cost,
                seconds,
                at: now,
                deadline: waiting.deadline,
                is_trial: false,
                shadow: None,
            };
            self.count(&admission);
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
        // Callers get different times.
        let time = Duration::from_nanos((nanos * (1.0 + 2.0 * part)) as u64);
        Refusal::new(Why::Overloaded(reason), Some(time))
    }

    /// Returns the last waiting request if it has no room, or no time, behind a new one of a rank.
    fn last_without_room(&self, rank: Rank, cost: u64, now: Moment) -> Option<Key> {
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
        let is_long = self.limit() >= FEW.0 || self.queue.len_of(ask.criticality) >= FEW.1;
        if is_long && busy_since.is_some_and(|since| now.nanos_since(since) >= interval) {
            longest.min(interval / WAIT)
        } else {
            longest
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
