//! What a limit answers.

use std::fmt;
use std::time::Duration;

use crate::units::Units;

/// The answer to who wants to take something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "what is refused must not be done"]
pub enum Decision {
    /// It is taken.
    Allowed(Allowed),
    /// Nothing is taken. The same passes after this long, if nothing else happens, and not a nanosecond earlier.
    After(Duration),
    /// Nothing is taken, and no wait would help, until the limit is another one.
    Never(Reason),
}

/// What has been allowed, and how the limit stands after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The most that is allowed right after. [`Units::MAX`] where any cost is (warm-up).
    pub remaining: Units,
    /// How long until all is available again; 0 if it is.
    pub reset: Duration,
    /// How long to wait before it is done; 0 but for a queue and for warm-up.
    pub delay: Duration,
    /// Whether more than the soft limit is in use, for a limit that has one.
    pub warn: bool,
}

/// How a limit stands, whatever it would answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// The most that is allowed now; nothing in debt, during a ban, or past the deadline of a queue.
    pub remaining: Units,
    /// How long until all is available again; 0 if it is.
    pub reset: Duration,
}

/// Why no wait would help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The cost is above the limit, whatever is left of it.
    CostAboveLimit,
    /// Nothing comes in: the rate is 0.
    RateIsZero,
}

impl Decision {
    /// Whether it is allowed.
    #[inline]
    pub const fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed(_))
    }

    /// How long until the same passes; none if it has passed, or never does.
    #[inline]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::After(span) => Some(*span),
            Self::Allowed(_) | Self::Never(_) => None,
        }
    }
}

impl Standing {
    /// What is allowed at once with such a standing after it.
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

impl Reason {
    /// In one word, for logs and answers.
    pub const fn word(self) -> &'static str {
        match self {
            Self::CostAboveLimit => "cost_above_limit",
            Self::RateIsZero => "rate_is_zero",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CostAboveLimit => "the cost is above the limit",
            Self::RateIsZero => "the rate is 0",
        })
    }
}
