//! Clocks, for callers that do not pass the time themselves.
//!
//! A limit takes the time as an argument, so that tests and simulations can choose it. [`Clocked`] reads a clock for
//! it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::decision::{Decision, Standing};
use crate::limit::Limit;
use crate::moment::Moment;
use crate::units::Units;

/// A source of the time.
pub trait Clock: Send + Sync {
    /// Returns the time.
    fn now(&self) -> Moment;
}

/// A clock that stands still until it is set, for tests and simulations.
#[derive(Debug, Default)]
pub struct ManualClock {
    nanos: AtomicI64,
}

impl ManualClock {
    /// Creates a clock that shows this time.
    pub const fn new(now: Moment) -> Self {
        Self {
            nanos: AtomicI64::new(now.nanos()),
        }
    }

    /// Sets another time, later or earlier.
    pub fn set(&self, now: Moment) {
        self.nanos.store(now.nanos(), Ordering::Relaxed);
    }

    /// Advances the time.
    pub fn advance(&self, span: Duration) {
        self.set(self.now().after(span));
    }
}

impl Clock for ManualClock {
    #[inline]
    fn now(&self) -> Moment {
        Moment::from_nanos(self.nanos.load(Ordering::Relaxed))
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    #[inline]
    fn now(&self) -> Moment {
        (**self).now()
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    #[inline]
    fn now(&self) -> Moment {
        (**self).now()
    }
}

/// A limit with its clock.
#[derive(Debug)]
pub struct Clocked<L, C> {
    limit: L,
    clock: C,
}

impl<L, C: Clock> Clocked<L, C> {
    /// Combines a limit and a clock.
    pub const fn new(limit: L, clock: C) -> Self {
        Self { limit, clock }
    }

    /// Returns the limit, for instance to set another one.
    pub const fn limit(&self) -> &L {
        &self.limit
    }

    /// Returns the clock's time.
    #[inline]
    pub fn now(&self) -> Moment {
        self.clock.now()
    }
}

impl<L: Limit, C: Clock> Clocked<L, C> {
    /// Takes `cost` now if it is available.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "unused parts of an answer cost nothing then"
    )]
    pub fn take(&self, cost: impl Into<Units>) -> Decision {
        self.limit.take(cost.into(), self.now())
    }

    /// Returns the answer that a take would get now.
    #[inline]
    pub fn peek(&self, cost: impl Into<Units>) -> Decision {
        self.limit.peek(cost.into(), self.now())
    }

    /// Returns the standing of the limit now.
    pub fn standing(&self) -> Standing {
        self.limit.standing(self.now())
    }

    /// Takes `cost` now, available or not.
    pub fn charge(&self, cost: impl Into<Units>) {
        self.limit.charge(cost.into(), self.now());
    }

    /// Gives back `cost` now.
    pub fn refund(&self, cost: impl Into<Units>) {
        self.limit.refund(cost.into(), self.now());
    }
}
