//! A limit for one key: an algorithm, and its state.

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::moment::Moment;
use crate::units::Units;

/// One limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Limiter<A: Algorithm> {
    algorithm: A,
    state: A::State,
}

impl<A: Algorithm> Limiter<A> {
    /// Creates a limit with everything available.
    pub fn new(algorithm: A) -> Self {
        let state = algorithm.fresh();
        Self { algorithm, state }
    }

    /// Takes `cost` if it is available.
    #[inline]
    pub fn take(&mut self, cost: impl Into<Units>, now: Moment) -> Decision {
        self.algorithm.take(&mut self.state, cost.into(), now)
    }

    /// Returns the answer that a take would get; a peek of 0 only looks.
    #[inline]
    pub fn peek(&self, cost: impl Into<Units>, now: Moment) -> Decision {
        self.algorithm.peek(&self.state, cost.into(), now)
    }

    /// Records an attempt that another limit refused, for a ban.
    pub fn attempt(&mut self, cost: impl Into<Units>, now: Moment) {
        self.algorithm.attempt(&mut self.state, cost.into(), now);
    }

    /// Returns the standing of the limit, even if it refuses.
    pub fn standing(&self, now: Moment) -> Standing {
        self.algorithm.standing(&self.state, now)
    }

    /// Takes `cost`, available or not.
    pub fn charge(&mut self, cost: impl Into<Units>, now: Moment) {
        self.algorithm.charge(&mut self.state, cost.into(), now);
    }

    /// Gives back `cost`.
    pub fn refund(&mut self, cost: impl Into<Units>, now: Moment) {
        self.algorithm.refund(&mut self.state, cost.into(), now);
    }

    /// Sets another limit. The available part keeps its ratio, so nothing bursts.
    pub fn set_limit(&mut self, next: A, now: Moment) {
        self.algorithm.change(&next, &mut self.state, now);
        self.algorithm = next;
    }

    /// Returns whether everything is available, so that the state can be forgotten.
    pub fn is_fresh(&self, now: Moment) -> bool {
        self.algorithm.is_fresh(&self.state, now)
    }

    /// Returns the settings.
    pub fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// Returns the state.
    pub fn state(&self) -> &A::State {
        &self.state
    }
}
