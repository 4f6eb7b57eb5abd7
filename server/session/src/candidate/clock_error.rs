//! By how much a candidate's clock may be wrong, and what that does to spans it tells and hears.
//!
//! The same arithmetic as the engine's `Tolerance`, of which this crate knows nothing; the server tests that
//! both agree. A thousandth is allowed for between any two clocks, so the least changes nothing.

use std::time::Duration;

/// Parts per million by which the clock may differ in speed from that of another machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClockError(u32);

/// A whole, in the unit of an error.
const WHOLE: u32 = 1_000_000;

/// By how much, as one part in so many, any two clocks may differ.
const SPEEDS_DIFFER_BY: u32 = 1_000;

impl ClockError {
    /// What everybody allows for.
    pub const LEAST: Self = Self(1_000);

    /// No clock by which a master could be elected is worse.
    pub const MOST: Self = Self(250_000);

    /// So many parts per million; less than the least counts as the least, more than the most as the most.
    pub fn of_ppm(ppm: u32) -> Self {
        Self(ppm).clamp(Self::LEAST, Self::MOST)
    }

    /// So much of a span; see [`ClockError::of_ppm`].
    pub fn of_part(part: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it saturates, and is clamped"
        )]
        Self::of_ppm((part * f64::from(WHOLE)).round() as u32)
    }

    /// As a part of a span.
    pub const fn part(self) -> f64 {
        self.0 as f64 / WHOLE as f64
    }

    /// A report, how long something may be in use, to be told or heard: never shorter.
    pub fn report(self, span: Duration) -> Duration {
        const SECOND: u128 = 1_000_000_000;
        if self == Self::LEAST || span.is_zero() {
            return span;
        }
        let nanos =
            span.as_nanos() * u128::from(WHOLE - Self::LEAST.0) / u128::from(WHOLE - self.0);
        let seconds = u64::try_from(nanos / SECOND);
        // What remains of a division by a second is less than one.
        let rest = u32::try_from(nanos % SECOND).unwrap_or(0);
        let longer = seconds.map_or(Duration::MAX, |seconds| Duration::new(seconds, rest));
        // Rounded up.
        longer.saturating_add(Duration::from_nanos(1))
    }
}

/// How long a span that somebody else's clock measures lasts at most, by ours.
pub fn at_most(span: Duration) -> Duration {
    // A little more than the part, so that one shortened and one lengthened are not too short.
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
