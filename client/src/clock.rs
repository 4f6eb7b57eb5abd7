//! The only file that reads clocks and draws chance.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use doorward_clock::Instant;

use crate::time::{Time, Tolerance};

/// A clock, from when it was made.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Clock {
    /// [The clock that leases count on](doorward_clock).
    OfLeases(Instant),
    /// That of tokio's timers, which tests pause and set: for a fake client.
    OfTimers(tokio::time::Instant),
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self::OfLeases(Instant::now())
    }

    pub(crate) fn start_by_timers() -> Self {
        Self::OfTimers(tokio::time::Instant::now())
    }

    pub(crate) fn now(&self) -> Time {
        Time::after_origin(match self {
            Self::OfLeases(origin) => origin.elapsed(),
            Self::OfTimers(origin) => origin.elapsed(),
        })
    }

    /// Sleeps until this clock has come to a time. Cancel safe.
    pub(crate) async fn sleep_until(&self, time: Time) {
        match self {
            Self::OfLeases(origin) => {
                doorward_clock::sleep_until(*origin + time.since_origin()).await;
            }
            Self::OfTimers(origin) => {
                tokio::time::sleep_until(*origin + time.since_origin()).await;
            }
        }
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
