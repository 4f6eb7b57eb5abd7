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
    /// A limit of which all is available.
    pub fn new(algorithm: A) -> Self {
        let state = algorithm.fresh();
        Self { algorithm, state }
    }

    /// Takes so much if it is there.
    #[inline]
    pub fn take(&mut self, cost: impl Into<Units>, now: Moment) -> Decision {
        self.algorithm.take(&mut self.state, cost.into(), now)
    }

    /// What a take would answer; a peek of 0 only looks.
    #[inline]
    pub fn peek(&self, cost: impl Into<Units>, now: Moment) -> Decision {
        self.algorithm.peek(&self.state, cost.into(), now)
    }

    /// Somebody wanted so much, and another limit refused: a ban takes note.
    pub fn attempt(&mut self, cost: impl Into<Units>, now: Moment) {
        self.algorithm.attempt(&mut self.state, cost.into(), now);
    }

    /// How the limit stands, also when it refuses.
    pub fn standing(&self, now: Moment) -> Standing {
        self.algorithm.standing(&self.state, now)
    }

    /// Takes so much whether or not it is there.
    pub fn charge(&mut self, cost: impl Into<Units>, now: Moment) {
        self.algorithm.charge(&mut self.state, cost.into(), now);
    }

    /// Gives back so much.
    pub fn refund(&mut self, cost: impl Into<Units>, now: Moment) {
        self.algorithm.refund(&mut self.state, cost.into(), now);
    }

    /// Another limit from now on. What is available keeps its ratio, so nothing bursts.
    pub fn set_limit(&mut self, next: A, now: Moment) {
        self.algorithm.change(&next, &mut self.state, now);
        self.algorithm = next;
    }

    /// Whether all is available, so that nothing need be remembered.
    pub fn is_fresh(&self, now: Moment) -> bool {
        self.algorithm.is_fresh(&self.state, now)
    }

    /// What is agreed.
    pub fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// What is remembered.
    pub fn state(&self) -> &A::State {
        &self.state
    }
}
