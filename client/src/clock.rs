//! The only file that reads clocks and draws chance, with the counter inside it.

mod counter;

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use doorward_clock::Instant;
use doorward_limits::Moment;

use crate::clock::counter::Counter;
use crate::time::{Time, Tolerance};

/// A clock, from when it was made.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    /// [The clock that leases count on](doorward_clock).
    OfLeases(Arc<LeaseClock>),
    /// That of tokio's timers, which tests pause and set: for a fake client.
    OfTimers(tokio::time::Instant),
}

/// The clock that leases count on, and what is cheaper to read.
#[derive(Debug)]
pub(crate) struct LeaseClock {
    origin: Instant,
    counter: Counter,
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self::OfLeases(Arc::new(LeaseClock {
            origin: Instant::now(),
            counter: Counter::default(),
        }))
    }

    pub(crate) fn start_by_timers() -> Self {
        Self::OfTimers(tokio::time::Instant::now())
    }

    pub(crate) fn now(&self) -> Time {
        Time::after_origin(match self {
            Self::OfLeases(clock) => clock.origin.elapsed(),
            Self::OfTimers(origin) => origin.elapsed(),
        })
    }

    /// The same for local limits, or less by up to [`FAST_CLOCK_BEHIND`](crate::limiter::FAST_CLOCK_BEHIND): cheap, once
    /// that has [started](Clock::start_fast).
    #[inline]
    pub(crate) fn fast_now(&self) -> Moment {
        match self {
            Self::OfLeases(clock) => clock.counter.now(|| clock.good_now()),
            Self::OfTimers(_) => self.timers_now(),
        }
    }

    /// Apart, so that who calls a limiter can have all of it in place.
    #[cold]
    fn timers_now(&self) -> Moment {
        Moment::ORIGIN.after(self.now().since_origin())
    }

    /// Gets ready to be read fast, in the background.
    pub(crate) fn start_fast(&self) {
        if let Self::OfLeases(clock) = self {
            let clock = Arc::clone(clock);
            // It spins. Nobody waits for it: a runtime that ends would wait for a task of its own. Without a thread, the
            // clock of leases is read.
            let thread = std::thread::Builder::new().name("doorward-clock".to_owned());
            drop(thread.spawn(move || clock.counter.start()));
        }
    }

    /// Sleeps until this clock has come to a time. Cancel safe.
    pub(crate) async fn sleep_until(&self, time: Time) {
        match self {
            Self::OfLeases(clock) => {
                doorward_clock::sleep_until(clock.origin + time.since_origin()).await;
            }
            Self::OfTimers(origin) => {
                tokio::time::sleep_until(*origin + time.since_origin()).await;
            }
        }
    }
}

impl LeaseClock {
    #[cold]
    fn good_now(&self) -> Moment {
        Moment::ORIGIN.after(self.origin.elapsed())
    }
}

/// By how much this platform's clock may be wrong, if nobody says something else.
pub(crate) const fn tolerance() -> Tolerance {
    if doorward_clock::IS_STEERED {
        Tolerance::STEERED
    } else {
        Tolerance::LEAST
    }
}

/// Since the Unix epoch, by the wall clock; zero if it is set before that.
#[expect(clippy::disallowed_methods, reason = "this is the file that may")]
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Which process this is, or which client of it: another one each time. Not 0, which is none.
pub(crate) fn incarnation() -> u64 {
    rand::random::<u64>().max(1)
}

/// Uniform in 0…1.
pub(crate) fn chance() -> f64 {
    rand::random()
}
