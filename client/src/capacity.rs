//! How much a client may use of a resource: now, and until when that holds.

mod safe;

use std::fmt;

pub use crate::capacity::safe::{InSafeMode, ToldSafeCapacity};
use crate::time::Time;

/// How much may be used: per second for a rate, at once for a gauge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Capacity {
    /// At most so much; finite, not negative. 0 is nothing.
    Limited(f64),
    /// As much as is wanted.
    Unlimited,
}

impl Capacity {
    /// Nothing.
    pub const NONE: Self = Self::Limited(0.0);

    /// The number; infinity for no limit.
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

/// Where a capacity comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A valid lease.
    Lease,
    /// The client's mode: there is no valid lease, or only one of 0 by a server in learning mode.
    Mode,
}

/// What a client may use, with the moment that changes by itself: a lease ends and a safe capacity is
/// halved whether or not anybody is awake to notice, so limiters are handed what comes after it, too.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// Now.
    pub capacity: Capacity,
    /// Where it comes from.
    pub source: Source,
    /// Until when, if it ends by itself.
    pub until: Option<Time>,
    /// From then on.
    pub then: Capacity,
    /// In safe mode: what follows later, if nobody says something else. None: `then` stays.
    pub safe: Option<InSafeMode>,
}

impl Allowance {
    /// Nothing, until something else is published.
    pub const NONE: Self = Self::by_mode(Capacity::NONE);

    /// By the client's mode, until something else is published.
    pub const fn by_mode(capacity: Capacity) -> Self {
        Self {
            capacity,
            source: Source::Mode,
            until: None,
            then: capacity,
            safe: None,
        }
    }

    /// What may be used at a time, however late that is.
    pub fn at(&self, now: Time) -> Capacity {
        self.seen_at(now).capacity
    }

    /// What it is at a time, and when that changes by itself.
    #[must_use]
    pub fn seen_at(&self, now: Time) -> Self {
        match (self.until, self.safe) {
            (Some(until), Some(safe)) if until <= now => safe.allowance(now),
            (Some(until), None) if until <= now => Self::by_mode(self.then),
            _ => *self,
        }
    }
}
