//! Demand that many threads measure without a lock, and that the client's task reads.
//!
//! Each call counts its cost in a [`Tally`], and updates the largest amount in flight at once. When a request may be
//! due, the task takes both, and [`DemandMeter`] records them under that time. So each call counts once. A call that
//! counts at that moment is in this measurement or in the next one.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::limiter::demand::{AdaptiveWants, DemandMeter};
use crate::limiter::tally::Tally;
use crate::lock::lock;
use crate::time::Time;

/// Time until the next look while callers wait. A server that sends the time of its decisions is asked no more often.
pub(crate) const SOON: Duration = Duration::from_millis(100);

/// Measured demand.
#[derive(Debug)]
pub(crate) struct Measured {
    demand: Mutex<DemandMeter>,
    asked: Tally,
    /// Largest amount in flight and waiting at once since the last reading, as the bits of a number that is not
    /// negative; these bits have the same order as the numbers.
    most: AtomicU64,
    has_ended: AtomicBool,
    /// Time of the next look, in nanoseconds.
    next_look: AtomicU64,
}

impl Measured {
    /// Measures demand. The first wants stay for a window, because nothing is measured yet.
    pub(crate) fn new(config: AdaptiveWants, wants: f64, now: Time) -> Self {
        let mut demand = DemandMeter::new(config, now);
        demand.wait(wants, now);
        Self {
            demand: Mutex::new(demand),
            asked: Tally::default(),
            most: AtomicU64::new(0.0_f64.to_bits()),
            has_ended: AtomicBool::new(false),
            next_look: AtomicU64::new(0),
        }
    }

    /// Records a call that asks for `cost`.
    #[inline]
    pub(crate) fn asked(&self, cost: f64) {
        self.asked.add(cost);
    }

    /// Records the amount in flight or waiting.
    #[inline]
    pub(crate) fn at_once(&self, level: f64) {
        let level = level.max(0.0).to_bits();
        // Usually the level is lower, and nothing is written. The task itself adds the amount in flight when it looks.
        if self.most.load(Ordering::Relaxed) < level {
            self.most.fetch_max(level, Ordering::Relaxed);
        }
    }

    /// Ends the measurement: the program says what it wants.
    pub(crate) fn end(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    /// Returns the wants of a rate. `at_least`: see [`DemandMeter::wait`].
    pub(crate) fn rate(&self, at_least: Option<f64>, now: Time) -> f64 {
        let mut demand = lock(&self.demand);
        demand.asked(self.asked.take(), now);
        if let Some(wants) = at_least {
            demand.wait(wants, now);
        }
        demand.rate(now)
    }

    /// Returns the wants of a gauge with `level` in flight or waiting.
    pub(crate) fn gauge(&self, level: f64, now: Time) -> f64 {
        let mut demand = lock(&self.demand);
        let most = self.most.swap(0.0_f64.to_bits(), Ordering::Relaxed);
        demand.at_once(f64::from_bits(most).max(level), now);
        demand.gauge(now)
    }

    /// Returns the time of the next look.
    pub(crate) fn next_look(&self) -> Time {
        Time::after_origin(Duration::from_nanos(self.next_look.load(Ordering::Relaxed)))
    }

    /// Sets the time of the next look, and returns the time until then: a short one while callers wait.
    pub(crate) fn look_again(&self, is_waiting: bool, now: Time) -> Duration {
        let interval = lock(&self.demand).interval();
        let interval = if is_waiting {
            interval.min(SOON)
        } else {
            interval
        };
        let next = (now + interval).since_origin().as_nanos();
        let next = u64::try_from(next).unwrap_or(u64::MAX);
        self.next_look.store(next, Ordering::Relaxed);
        interval
    }
}
