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
mod tests;
