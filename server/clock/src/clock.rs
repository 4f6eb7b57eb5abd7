//! The times of a process, as state machines count them; and the wall clock.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use doorward_time::Time;
use doorward_time::tolerance::Tolerance;

use crate::{IS_STEERED, Instant, sleep_until_by};

/// Clock that counts from its start, by [the clock that leases count on](Instant).
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin: Instant,
    source: fn() -> Instant,
}

impl Clock {
    /// Returns a clock that shows [`Time::ZERO`] now.
    pub fn start() -> Self {
        Self::start_by(Instant::now)
    }

    /// Returns a clock with another source than the machine's clock. An election uses the machine's clock, so a server
    /// that takes part in one must use it as well.
    pub fn start_by(source: fn() -> Instant) -> Self {
        Self {
            origin: source(),
            source,
        }
    }

    /// Returns the time now. It never runs backwards.
    pub fn now(&self) -> Time {
        self.time((self.source)())
    }

    /// Returns the time of a moment. A moment before the start of this clock is [`Time::ZERO`].
    pub fn time(&self, instant: Instant) -> Time {
        Time::ZERO + instant.saturating_duration_since(self.origin)
    }

    /// Returns the moment of a time.
    pub fn instant(&self, time: Time) -> Instant {
        self.origin + time.since(Time::ZERO)
    }

    /// Sleeps until this clock has reached a time. Cancel safe.
    pub async fn sleep_until(&self, time: Time) {
        sleep_until_by(self.source, self.instant(time)).await;
    }
}

/// Returns the default clock tolerance of this platform.
pub const fn tolerance() -> Tolerance {
    if IS_STEERED {
        Tolerance::STEERED
    } else {
        Tolerance::LEAST
    }
}

/// Returns the wall clock as time since the Unix epoch. Zero before it. Programs may set it, so no lease depends on it.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the clock"
)]
pub fn wall() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_moments_and_gives_them_back() {
        let clock = Clock::start();
        let later = clock.instant(Time::ZERO) + Duration::from_secs(7);
        let time = clock.time(later);
        assert_eq!(time, Time::ZERO + Duration::from_secs(7));
        assert_eq!(clock.instant(time), later);
    }

    #[tokio::test]
    async fn it_goes_by_its_source() {
        /// The machine's clock at twice its speed.
        fn fast() -> Instant {
            let now = Instant::now();
            now + now.saturating_duration_since(now - Duration::MAX)
        }
        let began = Instant::now();
        let clock = Clock::start_by(fast);
        clock
            .sleep_until(Time::ZERO + Duration::from_millis(20))
            .await;
        let shows = clock.now();
        assert!(shows >= Time::ZERO + Duration::from_millis(20));
        assert!(shows <= Time::ZERO + 2 * began.elapsed());
        assert_eq!(
            clock.time(began - Duration::MAX),
            Time::ZERO,
            "before it began"
        );
    }
}
