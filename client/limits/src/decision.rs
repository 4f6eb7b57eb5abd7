//! Answers of a limit.

use std::time::Duration;

use thiserror::Error;

use crate::units::Units;

/// The answer to a take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what is refused must not be done"]
// The tag is a number of its own. Otherwise it would be within a time, which every caller would have to compute.
#[repr(u8)]
pub enum Decision {
    /// The cost is taken.
    Allowed(Allowed),
    /// A refusal. The same request passes after this time, if nothing else happens, and not a nanosecond earlier.
    After(Duration),
    /// A refusal. No wait helps until the limit changes.
    Never(Reason),
}

/// An allowed cost, and the standing of the limit after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// Largest amount that is allowed right after. [`Units::MAX`] where any cost is (warm-up).
    pub remaining: Units,
    /// Time until everything is available again; 0 if it is.
    pub reset: Duration,
    /// Time to wait before the work may start; above 0 only for a queue and for warm-up.
    pub delay: Duration,
    /// Whether more than the soft limit is in use, for a limit that has one.
    pub warn: bool,
}

/// The standing of a limit, independent of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Largest amount that is allowed now; 0 in debt, during a ban, or past the deadline of a queue.
    pub remaining: Units,
    /// Time until everything is available again; 0 if it is.
    pub reset: Duration,
    /// Amount that charges took beyond the limit, rounded up. 0 for a ban, which owes time, and for warm-up.
    pub debt: Units,
}

/// The answer of one of several limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its decision.
    pub decision: Decision,
    /// Its standing now.
    pub standing: Standing,
    /// Cost of the request.
    pub cost: Units,
}

/// Reason why no wait helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum Reason {
    /// The cost is above the limit, whatever is left of it.
    #[error("the cost is above the limit")]
    CostAboveLimit,
    /// The rate is 0, so no units come in.
    #[error("the rate is 0")]
    RateIsZero,
}

impl Decision {
    /// Returns whether the cost is allowed.
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_))
    }

    /// Returns the time until the same request passes; `None` if it has passed, or never does.
    #[inline]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::After(span) => Some(*span),
            Self::Allowed(_) | Self::Never(_) => None,
        }
    }
}

impl Standing {
    /// Creates the standing of a limit without debt.
    #[inline]
    pub const fn new(remaining: Units, reset: Duration) -> Self {
        let debt = Units::ZERO;
        Self {
            remaining,
            reset,
            debt,
        }
    }

    /// Returns the standing of a limit by its used parts, of which those beyond the limit are a debt.
    #[inline]
    pub(crate) fn of_used(used: u128, limit: Units, reset: Duration) -> Self {
        Self {
            remaining: Units::from_parts(limit.parts().saturating_sub(used)),
            debt: Units::from_parts(used.saturating_sub(limit.parts())),
            reset,
        }
    }

    /// Returns the allowance of an immediate start with this standing.
    #[inline]
    pub(crate) const fn allowed(self) -> Allowed {
        Allowed {
            remaining: self.remaining,
            reset: self.reset,
            delay: Duration::ZERO,
            warn: false,
        }
    }
}
