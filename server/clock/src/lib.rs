//! The clock that leases count on: one whose speed nobody changes.
//!
//! A lease is safe only while the clock of whoever granted it and the clock of its holder run at
//! about the same speed. Programs that set the time change the speed of the system's monotonic
//! clock: ntpd by 500 ppm at most, chrony by up to 8.3 % unless it is configured otherwise. So leases
//! count on a clock that these programs do not touch: it is as fast as the machine's crystal, which
//! is off by some 100 ppm at most.
//!
//! | platform | the clock | |
//! | --- | --- | --- |
//! | Linux, Android | `CLOCK_MONOTONIC_RAW` | nobody changes its speed |
//! | Apple, Windows | what [`std::time::Instant`] reads | nobody changes its speed |
//! | others | what [`std::time::Instant`] reads | [`IS_STEERED`]: its speed may be changed |
//!
//! All of them stand still, or may, while the machine is suspended.
//!
//! This is the only file that reads a monotonic clock, but for how long an answer takes, which no
//! lease depends on: that is by tokio's. Its timers run on the system's clock,
//! whatever its speed: so they only wake. [`sleep_until`] looks at this clock again and goes on
//! sleeping if it woke too early; one that wakes late is late, and whoever decides about a lease
//! looks at this clock first.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// Whether something may change the speed of the clock, as chrony does.
pub const IS_STEERED: bool = !cfg!(any(
    target_os = "linux",
    target_os = "android",
    target_vendor = "apple",
    windows
));

/// What the clock showed at some moment. As [`std::time::Instant`], it can be compared with others of
/// the same machine, and with nothing else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(Duration);

impl Instant {
    /// What the clock shows now. Never runs backwards.
    pub fn now() -> Self {
        Self(platform::now())
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// How long ago this was; zero if it is to come.
    pub fn elapsed(self) -> Duration {
        Self::now().saturating_duration_since(self)
    }
}

/// Saturates at the end of time.
impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

/// Saturates at the beginning of the clock, which may be when the machine was started.
impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }
}

/// How long after the other one this is; zero if it is not after it.
impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        self.saturating_duration_since(earlier)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}s", self.0.as_secs_f64())
    }
}

/// Sleeps until this clock has come to a moment: never less, and as much longer as the system's
/// clock is slower. Cancel safe.
pub async fn sleep_until(deadline: Instant) {
    sleep_until_by(Instant::now, deadline).await;
}

/// As [`sleep_until`], by a clock of the caller's own.
pub async fn sleep_until_by(now: impl Fn() -> Instant, deadline: Instant) {
    /// Timers of centuries would overflow some platforms.
    const SLEEP_MAX: Duration = Duration::from_secs(24 * 3600);
    loop {
        let left = deadline.saturating_duration_since(now());
        if left.is_zero() {
            return;
        }
        // At least a millisecond, which is what tokio's timers can tell apart: so this does not spin
        // when the system's clock is faster.
        tokio::time::sleep(left.clamp(Duration::from_millis(1), SLEEP_MAX)).await;
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod platform {
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    pub(super) fn now() -> Duration {
        let time = clock_gettime(ClockId::MonotonicRaw);
        // It counts from when the machine was started, so neither is negative.
        let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
        let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
        Duration::new(seconds, nanos)
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod platform {
    use std::sync::OnceLock;
    use std::time::{Duration, Instant};

    #[expect(
        clippy::disallowed_methods,
        reason = "the one place that reads the monotonic clock"
    )]
    pub(super) fn now() -> Duration {
        static ORIGIN: OnceLock<Instant> = OnceLock::new();
        let now = Instant::now();
        now.saturating_duration_since(*ORIGIN.get_or_init(|| now))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn it_is_the_clock_that_nobody_steers() {
        use rustix::time::{ClockId, clock_gettime};

        let raw = || {
            let time = clock_gettime(ClockId::MonotonicRaw);
            Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
        };
        // The steered one has been elsewhere since the machine was started.
        let (before, now, after) = (raw(), Instant::now(), raw());
        assert!(before <= now.0 && now.0 <= after, "{before:?} {now:?}");
        const { assert!(!IS_STEERED) };
    }

    #[test]
    fn it_never_runs_backwards() {
        let mut last = Instant::now();
        for _ in 0..1_000 {
            let now = Instant::now();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn instants_are_counted_with() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        assert_eq!((now + second) - now, second);
        assert_eq!(now - (now + second), Duration::ZERO, "not after it");
        assert_eq!((now + second) - second, now);
        assert!(now + Duration::MAX > now, "it saturates");
        assert!(now - Duration::MAX < now, "it saturates");
    }

    #[tokio::test]
    async fn a_timer_that_fires_too_early_is_set_again_without_spinning() {
        // The system's clock, which is that of tokio's timers, is twice as fast as ours.
        let began = tokio::time::Instant::now();
        let origin = Instant::now();
        let looks = Cell::new(0);
        let now = || {
            looks.set(looks.get() + 1);
            origin + began.elapsed() / 2
        };
        let deadline = origin + Duration::from_millis(50);
        sleep_until_by(now, deadline).await;
        let (looks, took) = (looks.get(), began.elapsed().as_millis());
        assert!(now() >= deadline, "it woke too early");
        assert!(
            looks <= 2 + took,
            "{looks} looks in {took} ms: it slept between them"
        );
    }

    #[tokio::test]
    async fn what_is_over_is_not_waited_for() {
        let over = Instant::now();
        let later = || over + Duration::from_secs(1);
        sleep_until_by(later, over).await;
        sleep_until(over).await;
    }
}
