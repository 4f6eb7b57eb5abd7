//! A point in time: whole nanoseconds since an origin, or before it.
//!
//! Windows that are aligned to the clock need 1970 in UTC as the origin. Everything else works with any constant
//! origin.

use std::time::Duration;

/// A point in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Moment(i64);

impl Moment {
    /// The origin.
    pub const ORIGIN: Self = Self(0);

    /// The first moment of the range.
    pub const FIRST: Self = Self(i64::MIN);

    /// The last moment of the range: 292 years after the origin.
    pub const LAST: Self = Self(i64::MAX);

    /// Returns the moment a number of nanoseconds after the origin, or before it.
    #[inline]
    pub const fn from_nanos(nanos: i64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds after the origin.
    #[inline]
    pub const fn nanos(self) -> i64 {
        self.0
    }

    /// Returns the nanoseconds since an earlier moment; 0 if it is not earlier.
    #[inline]
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        if self.0 >= earlier.0 {
            self.0.abs_diff(earlier.0)
        } else {
            0
        }
    }

    /// Returns a moment that is later by nanoseconds, at most the last moment.
    #[inline]
    #[must_use]
    pub const fn after_nanos(self, nanos: u64) -> Self {
        Self(self.0.saturating_add_unsigned(nanos))
    }

    /// Returns a moment that is later by a span, at most the last moment.
    #[inline]
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        let nanos = i64::try_from(span.as_nanos()).unwrap_or(i64::MAX);
        Self(self.0.saturating_add(nanos))
    }
}

/// Returns a span of nanoseconds, at most the longest span.
#[inline]
pub(crate) fn span(nanos: u128) -> Duration {
    match u64::try_from(nanos) {
        Ok(nanos) => Duration::from_nanos(nanos),
        Err(_) => long_span(nanos),
    }
}

#[cold]
fn long_span(nanos: u128) -> Duration {
    Duration::from_nanos_u128(nanos.min(Duration::MAX.as_nanos()))
}
