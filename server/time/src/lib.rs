//! A point in time as code without a clock counts it, the allowed [difference](tolerance) between two clocks, and waits
//! that are [spread]. And [`named!`], since all of them have enums with names.
//!
//! The engine, sessions and the client's state read no clock. Every event carries its time, counted from an origin that
//! the caller chooses: a program takes its own start, the simulator and tests take zero. There is no "never" value. A
//! deadline that may be absent is an `Option<Time>`.

pub mod budget;
pub mod marks;
mod named;
pub mod spread;
pub mod term;
pub mod tolerance;

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

/// Returns a span in whole milliseconds, rounded down. Saturates at the largest number of 64 bits.
pub fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Returns a span in whole milliseconds, rounded up. Saturates likewise.
pub fn millis_up(span: Duration) -> u64 {
    u64::try_from(span.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX)
}

/// Nanoseconds since an origin the caller chooses. Printable, ordered, cheap to copy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// The last representable time, 584 years after the origin. It is an upper bound of all times, and does not mean
    /// "no deadline".
    pub const MAX: Self = Self(u64::MAX);

    /// Returns the time `nanos` nanoseconds after the origin.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the time `secs` seconds after the origin. Saturates at [`Self::MAX`].
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Returns the time `span` after the origin. Saturates at [`Self::MAX`].
    #[inline]
    pub const fn after_origin(span: Duration) -> Self {
        let nanos = span.as_nanos();
        if nanos > u64::MAX as u128 {
            return Self::MAX;
        }
        #[expect(clippy::cast_possible_truncation, reason = "it was compared above")]
        Self(nanos as u64)
    }

    /// Returns the span from the origin to this time.
    #[inline]
    pub const fn since_origin(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// Returns the nanoseconds since the origin.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the span from `earlier` to this time, or zero if this time is not the later one.
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Saturates at the last representable time, 584 years after the origin.
impl Add<Duration> for Time {
    type Output = Self;

    #[inline]
    fn add(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

/// Saturates at the origin.
impl Sub<Duration> for Time {
    type Output = Self;

    #[inline]
    fn sub(self, span: Duration) -> Self {
        Self(
            self.0
                .saturating_sub(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)),
        )
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{:03}s",
            self.0 / 1_000_000_000,
            self.0 / 1_000_000 % 1_000
        )
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
