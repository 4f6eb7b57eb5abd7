//! One limit that threads share, behind a short lock.

use std::sync::{Mutex, MutexGuard};

use crate::algorithm::Algorithm;
use crate::decision::{Answer, Decision, Standing};
use crate::key::Key;
use crate::limit::{self, Act, Held, Limit};
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

    fn address(&self) -> usize {
        std::ptr::from_ref(self).addr()
    }

    fn hold(&self, _keys: &[Key], now: Moment) -> Box<dyn Held + '_> {
        Box::new(HeldLimiter(lock(&self.limiter), now))
    }
}

struct HeldLimiter<'a, A: Algorithm>(MutexGuard<'a, Limiter<A>>, Moment);

impl<A: Algorithm> Held for HeldLimiter<'_, A> {
    fn act(&mut self, act: Act, _key: Key, cost: Units) -> Answer {
        let act_on =
            |limit: &A, state: &mut A::State, now| limit::act(limit, state, act, cost, now);
        self.0.update(self.1, act_on)
    }
}
