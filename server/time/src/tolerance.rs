//! The possible error of a clock, and how it changes the durations that a process sends and receives.
//!
//! Every process allows for a difference of a thousandth between two clocks ([`at_least`], [`at_most`]): half of it for
//! each clock. A process with a worse clock corrects the durations that it sends and receives. So all other processes
//! may assume a good clock. There are two kinds of durations:
//!
//! - a *promise*: how long something may be used, such as a lease. A process shortens a promise when it sends or
//!   receives it. So the user stops in time, whichever of the two clocks is fast.
//! - a *report*: how long something may be in use, such as a holder's lease, an outstanding or inherited amount, or a
//!   predecessor's leases. A process lengthens a report when it sends or receives it. So a server that waits for the
//!   end does not continue too early.
//!
//! A process keeps its own books unchanged. A tolerance T multiplies a promise by (1 − T) / (1 − 0.001). So a received
//! lease lasts (1 − T) of the duration that the parent sent, including the thousandth that every holder takes off. A
//! report becomes longer by the same factor. The smallest tolerance, a thousandth, changes nothing.
//!
//! The section "A lease" of docs/protocol.md says why this is enough.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

/// Largest allowed difference in speed between the clocks of two machines: one part in this many. Within it, no holder
/// relies on a lease for longer than the server reserves it. Each clock gets 500 ppm, several times the error of a
/// clock whose speed no program changes.
const SPEEDS_DIFFER_BY: u32 = 1_000;

/// Returns the least time that passes on this machine's clock while `span` passes on another machine's clock.
pub fn at_least(span: Duration) -> Duration {
    span.saturating_sub(span / SPEEDS_DIFFER_BY)
}

/// Returns the most time that passes on this machine's clock while `span` passes on another machine's clock.
pub fn at_most(span: Duration) -> Duration {
    // Slightly more than the part: a span that one side shortens and the other lengthens must not end too early.
    span.saturating_add(span / (SPEEDS_DIFFER_BY - 1))
}

/// Largest difference in speed between this machine's clock and that of another machine, in parts per million. Half a
/// thousandth of it belongs to the other machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tolerance(u32);

/// A tolerance that is no number, or outside the valid range.
#[derive(Clone, Debug, PartialEq, Error)]
#[error(
    "the clock's tolerance is {given}; give the part by which clocks may differ in speed, a number from {least} to {most}",
    least = Tolerance::LEAST.part(),
    most = Tolerance::MOST.part()
)]
pub struct BadTolerance {
    given: String,
}

/// One whole, in parts per million, the unit of a tolerance.
const WHOLE: u32 = 1_000_000;

impl Tolerance {
    /// Tolerance that every process allows for: NTP changes the speed of each of the two clocks by 500 ppm at most.
    pub const LEAST: Self = Self(1_000);

    /// Tolerance for a clock that chrony steers. Chrony changes its speed by up to 8.3 % unless configured otherwise.
    pub const STEERED: Self = Self(100_000);

    /// Largest valid tolerance. A clock that may be worse is of no use for leases, and cannot time an election either.
    pub const MOST: Self = Self(250_000);

    /// Returns the tolerance for that part of a span, such as 0.1.
    ///
    /// # Errors
    ///
    /// Returns an error if the part is less than [`Self::LEAST`] or more than [`Self::MOST`].
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

    /// Returns the tolerance for that part of a span, limited to the range from [`Self::LEAST`] to [`Self::MOST`].
    pub fn clamped(part: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it saturates, and is clamped"
        )]
        Self((part * f64::from(WHOLE)).round() as u32).clamp(Self::LEAST, Self::MOST)
    }

    /// Returns the tolerance as a part of a span.
    pub const fn part(self) -> f64 {
        self.0 as f64 / WHOLE as f64
    }

    /// Corrects a promise that is sent or received. The result is never longer.
    pub fn promise(self, span: Duration) -> Duration {
        self.scale(span, WHOLE - self.0, WHOLE - Self::LEAST.0)
    }

    /// Corrects a report that is sent or received. The result is never shorter.
    pub fn report(self, span: Duration) -> Duration {
        let longer = self.scale(span, WHOLE - Self::LEAST.0, WHOLE - self.0);
        // Rounds up, unless nothing is left of the span.
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
        // The remainder of a division by a second is less than a second, so it fits.
        let rest = u32::try_from(nanos % SECOND).unwrap_or(0);
        seconds.map_or(Duration::MAX, |seconds| Duration::new(seconds, rest))
    }
}

/// Reads the tolerance as a part of a span, such as `0.1`.
impl FromStr for Tolerance {
    type Err = BadTolerance;

    fn from_str(text: &str) -> Result<Self, BadTolerance> {
        let bad = |_| BadTolerance {
            given: format!("{text:?}"),
        };
        text.parse().map_err(bad).and_then(Self::of_part)
    }
}

/// Writes the tolerance as [`Tolerance::from_str`] reads it.
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
