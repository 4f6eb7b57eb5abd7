//! By how much a candidate's clock may be wrong, and how that changes the durations that it reports and reads.
//!
//! The arithmetic is that of the engine's `Tolerance`, on which this crate does not depend; a test of the server
//! compares both. A thousandth is always allowed between two clocks, so the smallest error changes nothing.

use std::time::Duration;

/// By how much the clock may differ in speed from another machine's, in parts per million.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClockError(u32);

/// One whole, in parts per million.
const WHOLE: u32 = 1_000_000;

/// Any two clocks may differ by one part in this many.
const SPEEDS_DIFFER_BY: u32 = 1_000;

impl ClockError {
    /// The error that is always allowed for.
    pub const LEAST: Self = Self(1_000);

    /// The largest error with which a master can be elected.
    pub const MOST: Self = Self(250_000);

    /// An error in parts per million, clamped to [`ClockError::LEAST`] and [`ClockError::MOST`].
    pub fn of_ppm(ppm: u32) -> Self {
        Self(ppm).clamp(Self::LEAST, Self::MOST)
    }

    /// An error as a part of a span; see [`ClockError::of_ppm`].
    pub fn of_part(part: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it saturates, and is clamped"
        )]
        Self::of_ppm((part * f64::from(WHOLE)).round() as u32)
    }

    /// The error as a part of a span.
    pub const fn part(self) -> f64 {
        self.0 as f64 / WHOLE as f64
    }

    /// How long something may be in use, corrected for this error when it is sent or received: never shorter.
    pub fn report(self, span: Duration) -> Duration {
        const SECOND: u128 = 1_000_000_000;
        if self == Self::LEAST || span.is_zero() {
            return span;
        }
        let nanos =
            span.as_nanos() * u128::from(WHOLE - Self::LEAST.0) / u128::from(WHOLE - self.0);
        let seconds = u64::try_from(nanos / SECOND);
        // The remainder of a division by a second is less than a second.
        let rest = u32::try_from(nanos % SECOND).unwrap_or(0);
        let longer = seconds.map_or(Duration::MAX, |seconds| Duration::new(seconds, rest));
        // Rounded up.
        longer.saturating_add(Duration::from_nanos(1))
    }
}

/// How long a span on another machine's clock lasts on this one, at most.
pub fn at_most(span: Duration) -> Duration {
    // A little more than the part: a span that one side shortens and the other lengthens must not end too early.
    span.saturating_add(span / (SPEEDS_DIFFER_BY - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_longer_by_the_error_of_the_clock() {
        let minute = Duration::from_secs(60);
        for (part, longer) in [(0.001, 60.0), (0.1, 66.6), (0.25, 79.92)] {
            let found = ClockError::of_part(part).report(minute).as_secs_f64();
            assert!((found - longer).abs() < 1e-6, "{part}: {found}");
        }
        assert_eq!(ClockError::MOST.report(Duration::ZERO), Duration::ZERO);
        assert_eq!(ClockError::MOST.report(Duration::MAX), Duration::MAX);
    }

    #[test]
    fn an_error_is_within_limits() {
        for (part, ppm) in [
            (0.0, 1_000),
            (0.1, 100_000),
            (7.0, 250_000),
            (f64::NAN, 1_000),
        ] {
            assert_eq!(ClockError::of_part(part), ClockError(ppm), "{part}");
        }
    }
}
