//! The clock that leases count on. No program changes its speed.
//!
//! A lease is safe only while two clocks run at about the same speed: the clock of the server that granted it, and the
//! clock of its holder. Programs that set the time change the speed of the system's monotonic clock: ntpd by 500 ppm at
//! most, chrony by up to 8.3 % unless it is configured otherwise. So leases count on a clock that these programs do not
//! touch. It is as fast as the machine's crystal, which is off by some 100 ppm at most.
//!
//! | platform | the clock | |
//! | --- | --- | --- |
//! | Linux, Android | `CLOCK_MONOTONIC_RAW` | no program changes its speed |
//! | Apple, Windows | the clock of [`std::time::Instant`] | no program changes its speed |
//! | others | the clock of [`std::time::Instant`] | [`IS_STEERED`]: a program may change its speed |
//!
//! All of these clocks stand still, or may stand still, while the machine is suspended.
//!
//! No other file reads a monotonic clock, with one exception: tokio's clock measures how long an answer takes, and no
//! lease depends on that. Tokio's timers run on the system's clock, whatever its speed, so they only wake a task.
//! [`sleep_until`] reads this clock again, and continues to sleep if the timer woke it too early. A timer that wakes
//! late stays late. So code that decides about a lease reads this clock first.

mod clock;

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

pub use crate::clock::{Clock, tolerance, wall};

/// Whether a program, such as chrony, may change the speed of the clock.
pub const IS_STEERED: bool = !cfg!(any(
    target_os = "linux",
    target_os = "android",
    target_vendor = "apple",
    windows
));

/// A reading of the clock. Like [`std::time::Instant`], it can be compared with other readings on the same machine, and
/// with nothing else.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(Duration);

impl Instant {
    /// Returns the current reading. It never runs backwards.
    pub fn now() -> Self {
        Self(platform::now())
    }

    /// Returns the span from `earlier` to this reading, or zero if this reading is not the later one.
    pub const fn saturating_duration_since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the time since this reading, or zero if it is in the future.
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

/// Saturates at the beginning of the clock, which may be the start of the machine.
impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(span))
    }
}

/// Returns the span between the readings, or zero if the left one is not the later one.
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

/// Sleeps until this clock reaches `deadline`: never less, and longer if the system's clock is slower. Cancel safe.
pub async fn sleep_until(deadline: Instant) {
    sleep_until_by(Instant::now, deadline).await;
}

/// Sleeps as [`sleep_until`] does, by a clock that the caller supplies.
pub async fn sleep_until_by(now: impl Fn() -> Instant, deadline: Instant) {
    /// Longest single sleep. Timers of centuries would overflow on some platforms.
    const SLEEP_MAX: Duration = Duration::from_secs(24 * 3600);
    loop {
        let left = deadline.saturating_duration_since(now());
        if left.is_zero() {
            return;
        }
        // At least a millisecond, the resolution of tokio's timers. So the loop does not spin when the system's clock
        // is faster.
        tokio::time::sleep(left.clamp(Duration::from_millis(1), SLEEP_MAX)).await;
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
mod platform {
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    pub(super) fn now() -> Duration {
        let time = clock_gettime(ClockId::MonotonicRaw);
        // The clock counts from the start of the machine, so neither value is negative.
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
