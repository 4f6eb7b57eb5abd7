//! Allowance of a client on a resource: the amount now, and the time until which it holds.

mod safe;

use std::fmt;

pub use crate::capacity::safe::{GrantedSafeCapacity, InSafeMode};
use crate::time::Time;

/// An amount that a client may use: per second for a rate, at once for a gauge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// At most this amount; finite, not negative. 0 is nothing.
    Limited(f64),
    /// No limit.
    Unlimited,
}

impl Capacity {
    /// No capacity.
    pub const NONE: Self = Self::Limited(0.0);

    /// Returns the amount, or infinity for no limit.
    pub const fn get(self) -> f64 {
        match self {
            Self::Limited(capacity) => capacity,
            Self::Unlimited => f64::INFINITY,
        }
    }
}

impl fmt::Display for Capacity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Limited(capacity) => fmt::Display::fmt(capacity, f),
            Self::Unlimited => f.write_str("unlimited"),
        }
    }
}

/// Origin of a capacity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A valid lease.
    Lease,
    /// The client's mode: there is no valid lease, or only a lease of 0 from a server in learning mode.
    Mode,
}

/// Capacity of a client now, and after the moment at which it changes by itself. A lease ends and a safe capacity
/// halves even if the client's task does not run. So limiters receive the following capacity in advance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// Capacity now.
    pub capacity: Capacity,
    /// Origin of the capacity.
    pub source: Source,
    /// End of this capacity, if it ends by itself.
    pub until: Option<Time>,
    /// Capacity after that end.
    pub then: Capacity,
    /// In safe mode: the later capacities, unless something else is published. None: `then` stays.
    pub safe: Option<InSafeMode>,
}

impl Allowance {
    /// No capacity, until something else is published.
    pub const NONE: Self = Self::by_mode(Capacity::NONE);

    /// Returns an allowance by the client's mode, until something else is published.
    pub const fn by_mode(capacity: Capacity) -> Self {
        Self {
            capacity,
            source: Source::Mode,
            until: None,
            then: capacity,
            safe: None,
        }
    }

    /// Returns the capacity at a time, however late that is.
    pub fn at(&self, now: Time) -> Capacity {
        self.seen_at(now).capacity
    }

    /// Returns the allowance as it is at a time, with its next change.
    #[must_use]
    pub fn seen_at(&self, now: Time) -> Self {
        match (self.until, self.safe) {
            (Some(until), Some(safe)) if until <= now => safe.allowance(now),
            (Some(until), None) if until <= now => Self::by_mode(self.then),
            _ => *self,
        }
    }
}
