//! Time and chance: the only file of the server that reads a clock or draws entropy.
//!
//! The engine counts time from the start of the process, on [the clock that leases count on](doorward_clock). A wall
//! clock may jump, and a monotonic clock may run fast while NTP corrects it; neither may end leases. The wall clock is
//! read for three things only: the absolute expiry that old peers understand, the start of sequences, and timestamps
//! for people.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use doorward_clock::Instant;
use doorward_engine::id::Incarnation;
use doorward_session::time::Time;
use doorward_session::time::tolerance::Tolerance;

/// Clock that counts from its start.
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

    /// Returns the time now for a session, from the same origin.
    pub fn session_now(&self) -> Time {
        self.now()
    }

    /// As [`Clock::sleep_until`], for a session. None: for ever. Cancel safe.
    pub async fn sleep_until_due(&self, due: Option<Time>) {
        match due {
            Some(due) => self.sleep_until(due).await,
            None => std::future::pending().await,
        }
    }

    /// Sleeps until this clock has reached a time. Cancel safe.
    pub async fn sleep_until(&self, time: Time) {
        let deadline = self.origin + time.since(Time::ZERO);
        doorward_clock::sleep_until_by(self.source, deadline).await;
    }
}

/// Returns the time of a moment as elections count it: from the beginning of the machine's clock, whatever clock the
/// node uses.
pub fn machine_time(instant: Instant) -> Time {
    let beginning = instant - Duration::MAX;
    Time::after_origin(instant.saturating_duration_since(beginning))
}

/// Returns the time now as elections count it.
pub fn machine_now() -> Time {
    machine_time(Instant::now())
}

/// Returns the moment of an election's time.
pub fn instant_of(time: Time) -> Instant {
    let beginning = Instant::now() - Duration::MAX;
    beginning + time.since_origin()
}

/// Returns the default clock tolerance of this platform.
pub const fn tolerance() -> Tolerance {
    if doorward_clock::IS_STEERED {
        Tolerance::STEERED
    } else {
        Tolerance::LEAST
    }
}

/// Returns the wall clock as time since the Unix epoch. Zero before it.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the clock"
)]
pub fn wall() -> Duration {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
}

/// Returns a fresh seed for one node.
pub fn seed() -> u64 {
    rand::random()
}

/// Returns a new incarnation for this process.
pub fn incarnation() -> Incarnation {
    Incarnation::new(rand::random()).unwrap_or(Incarnation::FIRST)
}

/// Returns a random number, uniform in 0…1.
pub fn chance() -> f64 {
    rand::random()
}

/// Returns a random part of a span, at least a tenth, so that waiting clients do not return together.
pub fn some_of(span: Duration) -> Duration {
    span.mul_f64(rand::random_range(0.1..1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elections_count_moments_and_give_them_back() {
        let now = Instant::now();
        let later = now + Duration::from_secs(7);
        assert_eq!(instant_of(machine_time(now)), now);
        let between = machine_time(later).since(machine_time(now));
        assert_eq!(between, Duration::from_secs(7));
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
