//! Time and chance: the only file of the server that reads a clock or draws entropy.
//!
//! The engine counts time from when the process started, on the monotonic clock: a wall clock that
//! jumps must not end leases. The wall clock is read for three things only: the absolute expiry
//! that old peers understand, the start of sequences, and timestamps for people.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use doorward_engine::time::Time;

/// Counts from when it was made.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock that shows [`Time::ZERO`] now.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the clock"
    )]
    pub fn start() -> Self {
        Self {
            origin: Instant::now(),
        }
    }

    /// The time now. Never runs backwards.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the clock"
    )]
    pub fn now(&self) -> Time {
        Time::ZERO + Instant::now().saturating_duration_since(self.origin)
    }

    /// The time of a moment. One before this clock was started is [`Time::ZERO`].
    pub fn time(&self, instant: tokio::time::Instant) -> Time {
        Time::ZERO + instant.into_std().saturating_duration_since(self.origin)
    }

    /// The moment of a time, to sleep until it.
    pub fn instant(&self, time: Time) -> tokio::time::Instant {
        /// Nobody sleeps longer than this at once, and it cannot overflow.
        const SLEEP_MAX: Duration = Duration::from_secs(24 * 3600);
        let wait = time.since(self.now()).min(SLEEP_MAX);
        (self.origin + self.now().since(Time::ZERO) + wait).into()
    }
}

/// The wall clock, as time since the Unix epoch. Zero before it.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the clock"
)]
pub fn wall() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Fresh chance for one node.
pub fn seed() -> u64 {
    rand::random()
}

/// A part of a span by chance, at least a tenth: so that those who wait do not all come at once.
pub fn some_of(span: Duration) -> Duration {
    span.mul_f64(rand::random_range(0.1..1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_time_far_away_is_a_moment_within_a_day() {
        let clock = Clock::start();
        let far = clock.instant(Time::from_nanos(u64::MAX));
        assert!(far > tokio::time::Instant::now());
        assert!(
            far <= tokio::time::Instant::now() + Duration::from_secs(24 * 3600),
            "a sleep of centuries would overflow some platforms"
        );
    }
}
