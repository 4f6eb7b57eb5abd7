//! By how much a clock may be wrong, and how that changes the durations that a process sends and receives.
//!
//! Every process allows for a thousandth between two clocks ([`at_least`], [`at_most`]): half of it for each. A process
//! with a worse clock corrects for it alone, in what it sends and receives, so that all others may assume a good clock. There are two kinds
//! of durations:
//!
//! - a *promise*: how long something may be used, such as a lease. It is made shorter when sent or received, so that its
//!   user stops in time, whichever of the two clocks is fast.
//! - a *report*: how long something may be in use, such as what a holder has, what is outstanding or inherited, or a
//!   predecessor's leases. It is made longer, so that a server that waits for its end does not continue too early.
//!
//! The own books of a process stay unchanged. With a tolerance T a promise becomes (1 − T) / (1 − 0.001) of what it was: so a
//! received lease counts (1 − T) of what the parent sent, including the thousandth that every holder takes off. A report
//! becomes longer by the same factor. With the smallest tolerance, a thousandth, nothing changes.
//!
//! Why that is enough: docs/protocol.md, "A lease".

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

/// By how much, as one part in so many, the clocks of two machines may differ in speed without a lease being believed in
/// for longer than it is reserved: 500 ppm each, several times what a clock is off by whose speed nobody changes.
const SPEEDS_DIFFER_BY: u32 = 1_000;

/// How long a span on another machine's clock lasts on this one, at least.
pub fn at_least(span: Duration) -> Duration {
    span.saturating_sub(span / SPEEDS_DIFFER_BY)
}

/// How long a span on another machine's clock lasts on this one, at most.
pub fn at_most(span: Duration) -> Duration {
    // A little more than the part: a span that one side shortens and the other lengthens must not end too early.
    span.saturating_add(span / (SPEEDS_DIFFER_BY - 1))
}

/// Parts per million by which the clock may differ in speed from that of another machine, half a
/// thousandth of which is that machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tolerance(u32);

/// A tolerance that cannot be.
#[derive(Clone, Debug, PartialEq, Error)]
#[error(
    "the clock's tolerance is {given}; give the part by which clocks may differ in speed, a number from {least} to {most}",
    least = Tolerance::LEAST.part(),
    most = Tolerance::MOST.part()
)]
pub struct BadTolerance {
    given: String,
}

/// A whole, in the unit of a tolerance.
const WHOLE: u32 = 1_000_000;

impl Tolerance {
    /// What everybody allows for: NTP changes a clock's speed by 500 ppm at most, here and there.
    pub const LEAST: Self = Self(1_000);

    /// What is enough for a clock whose speed chrony changes, by 8.3 % unless it is sent otherwise.
    pub const STEERED: Self = Self(100_000);

    /// A clock that may be worse is of no use for leases; nor could a master be elected by it.
    pub const MOST: Self = Self(250_000);

    /// So much of a span.
    ///
    /// # Errors
    ///
    /// If it is less than the least or more than the most.
    pub fn of_part(part: f64) -> Result<Self, BadTolerance> {
        let ppm = (part * f64::from(WHOLE)).round();
        let is_within = ppm >= f64::from(Self::LEAST.0) && ppm <= f64::from(Self::MOST.0);
        if !is_within {
            return Err(BadTolerance {
                given: part.to_string(),
            });
        }
        Ok(Self::clamped(part))
    }

    /// So much of a span, or the least or the most if it is less or more than these.
    pub fn clamped(part: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it saturates, and is clamped"
        )]
        Self((part * f64::from(WHOLE)).round() as u32).clamp(Self::LEAST, Self::MOST)
    }

    /// As a part of a span.
    pub const fn part(self) -> f64 {
        self.0 as f64 / WHOLE as f64
    }

    /// A promise, when sent or received: never longer.
    pub fn promise(self, span: Duration) -> Duration {
        self.scale(span, WHOLE - self.0, WHOLE - Self::LEAST.0)
    }

    /// A report, when sent or received: never shorter.
    pub fn report(self, span: Duration) -> Duration {
        let longer = self.scale(span, WHOLE - Self::LEAST.0, WHOLE - self.0);
        // Rounded up; what is over is over.
        let is_rounded = self != Self::LEAST && !span.is_zero();
        longer.saturating_add(Duration::from_nanos(u64::from(is_rounded)))
    }

    fn scale(self, span: Duration, times: u32, of: u32) -> Duration {
        const SECOND: u128 = 1_000_000_000;
        if self == Self::LEAST {
            return span;
        }
        let nanos = span.as_nanos() * u128::from(times) / u128::from(of);
        let seconds = u64::try_from(nanos / SECOND);
        // What remains of a division by a second is less than one.
        let rest = u32::try_from(nanos % SECOND).unwrap_or(0);
        seconds.map_or(Duration::MAX, |seconds| Duration::new(seconds, rest))
    }
}

/// As a part, such as `0.1`.
impl FromStr for Tolerance {
    type Err = BadTolerance;

    fn from_str(text: &str) -> Result<Self, BadTolerance> {
        let bad = |_| BadTolerance {
            given: format!("{text:?}"),
        };
        text.parse().map_err(bad).and_then(Self::of_part)
    }
}

/// As [`Tolerance::from_str`] reads it.
impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.part(), f)
    }
}

impl Default for Tolerance {
    fn default() -> Self {
        Self::LEAST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn of(part: f64) -> Tolerance {
        Tolerance::of_part(part).expect("within the limits")
    }

    #[test]
    fn by_the_least_nothing_changes() {
        for span in [
            Duration::ZERO,
            Duration::from_nanos(1),
            MINUTE,
            Duration::MAX,
        ] {
            assert_eq!(Tolerance::LEAST.promise(span), span);
            assert_eq!(Tolerance::LEAST.report(span), span);
        }
        assert_eq!(of(0.1).report(Duration::ZERO), Duration::ZERO);
        assert_eq!(of(0.001), Tolerance::LEAST);
        assert_eq!(Tolerance::default(), Tolerance::LEAST);
        assert_eq!(Tolerance::MOST.report(Duration::MAX), Duration::MAX);
    }

    #[test]
    fn a_lease_that_is_heard_counts_less_by_the_whole_tolerance() {
        for part in [0.001, 0.01, 0.1, 0.25] {
            let counted = at_least(of(part).promise(MINUTE)).as_secs_f64();
            assert!(
                (counted - 60.0 * (1.0 - part)).abs() < 1e-6,
                "{part} {counted}"
            );
            let counted = at_most(of(part).report(MINUTE)).as_secs_f64();
            assert!(
                (counted - 60.0 / (1.0 - part)).abs() < 1e-6,
                "{part} {counted}"
            );
        }
    }

    /// Clocks as slow and as fast as the tolerances allow, and leases that pass between them. Times
    /// without a unit are true ones; `of_x(span)` is how long a span lasts that x measures.
    #[test]
    fn no_lease_is_used_for_longer_than_it_is_reserved() {
        const HALF: f64 = 0.0005;
        for (granter, holder) in [(0.001, 0.001), (0.1, 0.001), (0.001, 0.1), (0.25, 0.25)] {
            let (granter, holder) = (of(granter), of(holder));
            for (granters_sign, holders_sign) in
                [(1.0, 1.0), (1.0, -1.0), (-1.0, 1.0), (-1.0, -1.0)]
            {
                let speed =
                    |tolerance: Tolerance, sign: f64| 1.0 + sign * (tolerance.part() - HALF);
                let of_granter =
                    |span: Duration| span.as_secs_f64() / speed(granter, granters_sign);
                let of_holder = |span: Duration| span.as_secs_f64() / speed(holder, holders_sign);
                let sent = granter.promise(MINUTE);
                let used = at_least(holder.promise(sent));
                let what = format!("{granter:?} {granters_sign} {holder:?} {holders_sign}");
                assert!(of_holder(used) <= of_granter(MINUTE), "{what}: a promise");
                let sent = holder.report(MINUTE);
                let counted = at_most(granter.report(sent));
                assert!(of_granter(counted) >= of_holder(MINUTE), "{what}: a report");
            }
        }
    }

    #[test]
    fn a_tolerance_is_read_as_it_is_written() {
        for text in ["0.001", "0.1", "0.25", "0.083"] {
            assert_eq!(
                text.parse::<Tolerance>()
                    .map(|it| it.to_string())
                    .as_deref(),
                Ok(text)
            );
        }
        for text in ["", "a tenth", "10%", "1", "0.0001", "NaN"] {
            text.parse::<Tolerance>().expect_err(text);
        }
    }

    #[test]
    fn a_tolerance_is_within_limits() {
        for part in [0.0, 0.0009, 0.26, 1.0, -0.1, f64::NAN, f64::INFINITY] {
            let error = Tolerance::of_part(part).expect_err("out of them");
            assert!(error.to_string().contains("from 0.001 to 0.25"), "{error}");
        }
        for (part, clamped) in [(0.0, 0.001), (0.1, 0.1), (7.0, 0.25), (f64::NAN, 0.001)] {
            assert_eq!(Tolerance::clamped(part), of(clamped), "{part}");
        }
        assert!(Tolerance::LEAST < Tolerance::STEERED && Tolerance::STEERED < Tolerance::MOST);
    }
}
