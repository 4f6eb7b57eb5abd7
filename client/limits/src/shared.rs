//! Limits that threads share: one limit behind a short lock, and the interface of all shared limits.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::algorithm::Algorithm;
use crate::atomic_bucket::AtomicBucket;
use crate::decision::{Decision, Standing};
use crate::limiter::Limiter;
use crate::moment::Moment;
use crate::units::Units;

/// A limit that many threads use by reference. [`AtomicBucket`] needs no lock; [`Shared`] has any algorithm.
pub trait SharedLimit: Send + Sync {
    /// Takes `cost` if it is available.
    fn take(&self, cost: Units, now: Moment) -> Decision;

    /// Returns the answer that a take would get. A peek of 0 only looks.
    fn peek(&self, cost: Units, now: Moment) -> Decision;

    /// Returns the standing of the limit, even if it refuses.
    fn standing(&self, now: Moment) -> Standing;

    /// Takes `cost`, available or not.
    fn charge(&self, cost: Units, now: Moment);

    /// Gives back `cost`. Any amount above full is lost.
    fn refund(&self, cost: Units, now: Moment);
}

/// One limit of any algorithm, behind a lock that is held for one decision: some nanoseconds, and no I/O.
pub struct Shared<A: Algorithm> {
    limiter: Mutex<Limiter<A>>,
}

impl<A: Algorithm> Shared<A> {
    /// Creates a limit with everything available.
    pub fn new(algorithm: A) -> Self {
        Self {
            limiter: Mutex::new(Limiter::new(algorithm)),
        }
    }

    /// Sets another limit. The available part keeps its ratio, so nothing bursts.
    pub fn set_limit(&self, next: A, now: Moment) {
        self.lock().set_limit(next, now);
    }

    /// Returns whether everything is available.
    pub fn is_fresh(&self, now: Moment) -> bool {
        self.lock().is_fresh(now)
    }

    fn lock(&self) -> MutexGuard<'_, Limiter<A>> {
        // No limiter panics within a decision.
        self.limiter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A> SharedLimit for Shared<A>
where
    A: Algorithm + Send,
    A::State: Send,
{
    fn take(&self, cost: Units, now: Moment) -> Decision {
        self.lock().take(cost, now)
    }

    fn peek(&self, cost: Units, now: Moment) -> Decision {
        self.lock().peek(cost, now)
    }

    fn standing(&self, now: Moment) -> Standing {
        self.lock().standing(now)
    }

    fn charge(&self, cost: Units, now: Moment) {
        self.lock().charge(cost, now);
    }

    fn refund(&self, cost: Units, now: Moment) {
        self.lock().refund(cost, now);
    }
}

impl SharedLimit for AtomicBucket {
    #[inline]
    fn take(&self, cost: Units, now: Moment) -> Decision {
        self.take(cost, now)
    }

    #[inline]
    fn peek(&self, cost: Units, now: Moment) -> Decision {
        self.peek(cost, now)
    }

    fn standing(&self, now: Moment) -> Standing {
        self.standing(now)
    }

    fn charge(&self, cost: Units, now: Moment) {
        self.charge(cost, now);
    }

    fn refund(&self, cost: Units, now: Moment) {
        self.refund(cost, now);
    }
}

impl<A> fmt::Debug for Shared<A>
where
    A: Algorithm + fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock().fmt(f)
    }
}
