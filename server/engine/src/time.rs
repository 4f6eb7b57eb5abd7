//! A point in time, as the engine knows it.
//!
//! The engine reads no clock: every event comes with the time it happened, counted from an origin
//! that the caller chooses (the shell: when the process started; the simulator and tests: zero).
//! There is no "never" value; a deadline that may be absent is an `Option<Time>`.

use std::fmt;
use std::ops::{Add, Sub};
use std::time::Duration;

use crate::planted::{self, Bug};

/// Nanoseconds since an origin the caller chooses. Printable, ordered, cheap to copy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The origin.
    pub const ZERO: Self = Self(0);

    /// The last representable time, 584 years after the origin: no deadline, but a bound of all.
    pub const MAX: Self = Self(u64::MAX);

    /// The time `nanos` nanoseconds after the origin.
    #[inline]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// The time `secs` seconds after the origin (the last representable time if that is later).
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the origin.
    #[inline]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// By how much, as one part in so many, the clocks of two servers may differ in speed without a
/// lease being believed in for longer than it is reserved: 500 ppm each, several times what a clock
/// is off by whose speed nobody changes. A holder counts a lease as that much shorter, and what a
/// holder says it still has is counted as that much longer. A server whose clock may be worse makes
/// up for the rest by its [`crate::tolerance`].
const SPEEDS_DIFFER_BY: u32 = 1_000;

/// How long a span that somebody else's clock measures lasts at least, by ours.
pub fn at_least(span: Duration) -> Duration {
    if planted::is(Bug::ClockMarginForgotten) {
        return span;
    }
    span.saturating_sub(span / SPEEDS_DIFFER_BY)
}

/// How long a span that somebody else's clock measures lasts at most, by ours.
pub fn at_most(span: Duration) -> Duration {
    // A little more than the part, so that one shortened and one lengthened are not too short.
    span.saturating_add(span / (SPEEDS_DIFFER_BY - 1))
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
