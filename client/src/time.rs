//! A point in time, as the pure half knows it: how long after an origin the caller chooses; and by
//! how much the clock may be wrong that shows it.

use std::time::Duration;

pub use doorward_session::time::Time;
use thiserror::Error;

/// By how much the speed of our clock may differ from a server's without a lease being used for
/// longer than it is reserved. A lease counts as that much shorter. The engine goes by the same
/// rules, and knows nothing of clients (`docs/protocol.md`, "A lease").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tolerance(u32);

/// A tolerance that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("the clock's tolerance is {0}; give a part of a span, from 0.001 to 0.25")]
pub struct BadTolerance(pub f64);

/// A whole, in the unit of a tolerance: parts per million.
const WHOLE: u32 = 1_000_000;

impl Tolerance {
    /// A thousandth: 500 ppm for each of two clocks, which is as much as NTP changes a clock's speed
    /// by. Servers allow for that, whatever the client does.
    pub const LEAST: Self = Self(1_000);

    /// A tenth: for a clock whose speed chrony changes, by 8.3 % unless it is told otherwise.
    pub const STEERED: Self = Self(100_000);

    /// A quarter: a clock that may be worse is of no use for leases.
    pub const MOST: Self = Self(250_000);

    /// So much of a span.
    ///
    /// # Errors
    ///
    /// If it is less than the least or more than the most.
    pub fn of_part(part: f64) -> Result<Self, BadTolerance> {
        let ppm = (part * f64::from(WHOLE)).round();
        if ppm >= f64::from(Self::LEAST.0) && ppm <= f64::from(Self::MOST.0) {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "it is within the limits"
            )]
            Ok(Self(ppm as u32))
        } else {
            Err(BadTolerance(part))
        }
    }

    /// How long a span that a server's clock measures lasts at least, by ours.
    pub(crate) fn at_least(self, span: Duration) -> Duration {
        span.saturating_sub(scaled(span, self.0, WHOLE))
    }

    /// How long to say that something lasts which our clock measures, to servers that allow for a
    /// thousandth: not less than it may.
    pub(crate) fn report(self, span: Duration) -> Duration {
        span.saturating_add(scaled(span, self.0 - Self::LEAST.0, WHOLE - self.0))
    }
}

impl Default for Tolerance {
    fn default() -> Self {
        Self::LEAST
    }
}

fn scaled(span: Duration, times: u32, of: u32) -> Duration {
    const SECOND: u128 = 1_000_000_000;
    let nanos = span.as_nanos() * u128::from(times) / u128::from(of);
    let seconds = u64::try_from(nanos / SECOND).unwrap_or(u64::MAX);
    // What remains of a division by a second is less than one.
    Duration::new(seconds, u32::try_from(nanos % SECOND).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_lease_counts_as_shorter_and_what_is_told_of_it_as_longer() {
        for (part, counts, told) in [(0.001, 59.94, 60.0), (0.1, 54.0, 66.6), (0.25, 45.0, 79.92)] {
            let tolerance = Tolerance::of_part(part).unwrap();
            let close = |span: Duration, to: f64| (span.as_secs_f64() - to).abs() < 1e-6;
            assert!(close(tolerance.at_least(MINUTE), counts), "{part}");
            assert!(close(tolerance.report(MINUTE), told), "{part}");
            assert_eq!(tolerance.report(Duration::ZERO), Duration::ZERO);
        }
        assert_eq!(Tolerance::LEAST.report(Duration::MAX), Duration::MAX);
    }

    #[test]
    fn a_tolerance_is_within_limits() {
        for part in [0.0, 0.0009, 0.26, -0.1, f64::NAN, f64::INFINITY] {
            Tolerance::of_part(part).expect_err("out of them");
        }
        assert_eq!(Tolerance::of_part(0.001), Ok(Tolerance::default()));
        assert_eq!(Tolerance::of_part(0.1), Ok(Tolerance::STEERED));
    }
}
