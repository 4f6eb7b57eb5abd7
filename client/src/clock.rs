//! Clocks and random numbers of the client; no other file may read them.

mod counter;

use std::sync::Arc;

use doorward_clock::Instant;
pub(crate) use doorward_clock::{tolerance, wall};
use doorward_limits::Moment;

use crate::clock::counter::Counter;
use crate::time::Time;

/// A clock that starts at 0.
#[derive(Clone, Debug)]
pub(crate) enum Clock {
    /// [The clock that leases count on](doorward_clock).
    OfLeases(Arc<LeaseClock>),
    /// The clock of tokio's timers, which tests pause and set, for a fake client.
    OfTimers(tokio::time::Instant),
}

/// The clock that leases count on, with a source that is cheaper to read.
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

    /// Returns the time for local limits. It may be behind by up to
    /// [`FAST_CLOCK_BEHIND`](crate::limiter::FAST_CLOCK_BEHIND), and is cheap to read once the fast clock has
    /// [started](Clock::start_fast).
    #[inline]
    pub(crate) fn fast_now(&self) -> Moment {
        match self {
            Self::OfLeases(clock) => clock.counter.now(|| clock.good_now()),
            Self::OfTimers(_) => self.timers_now(),
        }
    }

    /// A function of its own, so that a limiter's call can be inlined.
    #[cold]
    fn timers_now(&self) -> Moment {
        Moment::ORIGIN.after(self.now().since_origin())
    }

    /// Prepares the fast clock in the background.
    pub(crate) fn start_fast(&self) {
        if let Self::OfLeases(clock) = self {
            let clock = Arc::clone(clock);
            // The measurement spins in a thread of its own, because a runtime that ends would wait for its task.
            // Without the thread, limiters read the clock of leases.
            let thread = std::thread::Builder::new().name("doorward-clock".to_owned());
            drop(thread.spawn(move || clock.counter.start()));
        }
    }

    /// Sleeps until this clock reaches a time. Cancel safe.
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

/// Draws the number that identifies a process, or a client within it. Never 0, which means absent.
pub(crate) fn incarnation() -> u64 {
    rand::random::<u64>().max(1)
}

/// Draws a number, uniform in 0…1.
pub(crate) fn chance() -> f64 {
    rand::random()
}
