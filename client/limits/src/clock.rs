//! Clocks, which give the time to pass to a limit.
//!
//! A limit takes the time as an argument, so that tests and simulations can choose it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use crate::moment::Moment;

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
