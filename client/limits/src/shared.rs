//! One limit that threads share, behind a short lock.

use std::sync::Mutex;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::limit::Limit;
use crate::limiter::Limiter;
use crate::lock::lock;
use crate::moment::Moment;
use crate::units::Units;

/// One limit of any algorithm, behind a lock that is held for one decision: some nanoseconds, and no I/O.
#[derive(Debug)]
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
        lock(&self.limiter).set_limit(next, now);
    }

    /// Does several operations on the limit while no other thread uses it.
    pub fn with<R>(&self, operations: impl FnOnce(&mut Limiter<A>) -> R) -> R {
        operations(&mut lock(&self.limiter))
    }
}

impl<A> Limit for Shared<A>
where
    A: Algorithm + Send,
    A::State: Send,
{
    fn take(&self, cost: Units, now: Moment) -> Decision {
        lock(&self.limiter).take(cost, now)
    }

    fn peek(&self, cost: Units, now: Moment) -> Decision {
        lock(&self.limiter).peek(cost, now)
    }

    fn standing(&self, now: Moment) -> Standing {
        lock(&self.limiter).standing(now)
    }

    fn charge(&self, cost: Units, now: Moment) {
        lock(&self.limiter).charge(cost, now);
    }

    fn refund(&self, cost: Units, now: Moment) {
        lock(&self.limiter).refund(cost, now);
    }

    fn attempt(&self, cost: Units, now: Moment) {
        lock(&self.limiter).attempt(cost, now);
    }
}
