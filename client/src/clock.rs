//! The only file that reads clocks and draws chance.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::time::Time;

/// The monotonic clock that leases count on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "this is the file that may")]
    pub(crate) fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "this is the file that may")]
    pub(crate) fn now(&self) -> Time {
        Time::after_origin(Instant::now().saturating_duration_since(self.origin))
    }

    /// The instant of a time, for timers.
    pub(crate) fn instant(&self, time: Time) -> tokio::time::Instant {
        let instant = self.origin.checked_add(time.since_origin());
        // Farther than the clock can count: a day from now is as good.
        instant.map_or_else(
            || tokio::time::Instant::now() + Duration::from_secs(86_400),
            tokio::time::Instant::from_std,
        )
    }
}

/// Since the Unix epoch, by the wall clock; zero if it is set before that.
#[expect(clippy::disallowed_methods, reason = "this is the file that may")]
pub(crate) fn since_epoch() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Uniform in 0…1.
pub(crate) fn chance() -> f64 {
    rand::random()
}
