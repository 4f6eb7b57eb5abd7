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
mod tests;
