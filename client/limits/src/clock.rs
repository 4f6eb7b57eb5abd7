//! Clocks, for who does not want to hand in the time.
//!
//! A limit is handed the time, so that tests and simulations make their own. [`Clocked`] reads a clock for it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::key::Key;
use crate::keyed::Keyed;
use crate::moment::Moment;
use crate::shared::SharedLimit;
use crate::units::Units;

/// What shows the time.
pub trait Clock: Send + Sync {
    /// The time.
    fn now(&self) -> Moment;
}

/// A clock that stands still until somebody sets it: for tests and simulations.
#[derive(Debug, Default)]
pub struct ManualClock {
    nanos: AtomicI64,
}

impl ManualClock {
    /// A clock that shows that time.
    pub const fn new(now: Moment) -> Self {
        Self {
            nanos: AtomicI64::new(now.nanos()),
        }
    }

    /// Shows another time from now on, an earlier one too.
    pub fn set(&self, now: Moment) {
        self.nanos.store(now.nanos(), Ordering::Relaxed);
    }

    /// Shows a time that is so much later.
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

/// A limit, and the clock that it goes by.
#[derive(Debug)]
pub struct Clocked<L, C> {
    limit: L,
    clock: C,
}

impl<L, C: Clock> Clocked<L, C> {
    /// That limit, by that clock.
    pub const fn new(limit: L, clock: C) -> Self {
        Self { limit, clock }
    }

    /// The limit, for instance to set another one.
    pub const fn limit(&self) -> &L {
        &self.limit
    }

    /// What the clock shows.
    #[inline]
    pub fn now(&self) -> Moment {
        self.clock.now()
    }
}

impl<L: SharedLimit, C: Clock> Clocked<L, C> {
    /// Takes so much now if it is there.
    #[inline]
    pub fn take(&self, cost: impl Into<Units>) -> Decision {
        self.limit.take(cost.into(), self.now())
    }

    /// What a take would answer now.
    #[inline]
    pub fn peek(&self, cost: impl Into<Units>) -> Decision {
        self.limit.peek(cost.into(), self.now())
    }

    /// How the limit stands now.
    pub fn standing(&self) -> Standing {
        self.limit.standing(self.now())
    }

    /// Takes so much now whether or not it is there.
    pub fn charge(&self, cost: impl Into<Units>) {
        self.limit.charge(cost.into(), self.now());
    }

    /// Gives back so much now.
    pub fn refund(&self, cost: impl Into<Units>) {
        self.limit.refund(cost.into(), self.now());
    }
}

impl<A, C> Clocked<Keyed<A>, C>
where
    A: Algorithm + Clone,
    C: Clock,
{
    /// Takes so much of a key's limit now if it is there.
    #[inline]
    pub fn take_for(&self, key: Key, cost: impl Into<Units>) -> Decision {
        self.limit.take(key, cost.into(), self.now())
    }

    /// What a take would answer now.
    #[inline]
    pub fn peek_for(&self, key: Key, cost: impl Into<Units>) -> Decision {
        self.limit.peek(key, cost.into(), self.now())
    }
}
