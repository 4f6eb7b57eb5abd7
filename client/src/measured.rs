//! Demand as many threads measure it without a lock, and the client's task reads it.
//!
//! Each call counts what it asks for in a [`Tally`], and moves the most that was in flight at once. When a request may be
//! due, the task takes both away, and [`DemandMeter`] files them under that time. So each call counts once. One that is
//! counting while the task takes is in what it takes, or in what it takes next.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::limiter::demand::{AdaptiveWants, DemandMeter};
use crate::limiter::tally::Tally;
use crate::time::Time;

/// Demand, measured.
#[derive(Debug)]
pub(crate) struct Measured {
    demand: Mutex<DemandMeter>,
    asked: Tally,
    /// The most that was in flight and waiting at once, since that was read last: the bits of a number that is not
    /// negative, which are in the same order as the numbers.
    most: AtomicU64,
}

impl Measured {
    pub(crate) fn new(config: AdaptiveWants, now: Time) -> Self {
        Self {
            demand: Mutex::new(DemandMeter::new(config, now)),
            asked: Tally::default(),
            most: AtomicU64::new(0.0_f64.to_bits()),
        }
    }

    /// `cost` was asked for.
    #[inline]
    pub(crate) fn asked(&self, cost: f64) {
        self.asked.add(cost);
    }

    /// So much is in flight or waiting.
    #[inline]
    pub(crate) fn at_once(&self, level: f64) {
        let level = level.max(0.0).to_bits();
        // Mostly it is less: then nothing is written. The task counts what is in flight when it looks itself.
        if self.most.load(Ordering::Relaxed) < level {
            self.most.fetch_max(level, Ordering::Relaxed);
        }
    }

    /// What to ask for of a rate.
    pub(crate) fn rate(&self, now: Time) -> f64 {
        let mut demand = self.lock();
        demand.asked(self.asked.take(), now);
        demand.rate(now)
    }

    /// What to ask for of a gauge of which so much is in flight or waiting.
    pub(crate) fn gauge(&self, level: f64, now: Time) -> f64 {
        let mut demand = self.lock();
        let most = self.most.swap(0.0_f64.to_bits(), Ordering::Relaxed);
        demand.at_once(f64::from_bits(most).max(level), now);
        demand.gauge(now)
    }

    /// How often to look.
    pub(crate) fn interval(&self) -> Duration {
        self.lock().interval()
    }

    fn lock(&self) -> MutexGuard<'_, DemandMeter> {
        // Nothing panics while it is held; should something, what is in it is still right.
        self.demand.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
