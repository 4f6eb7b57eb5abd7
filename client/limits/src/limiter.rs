//! A limit for one key: an algorithm, and its state.

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::moment::Moment;
use crate::timeline::Timeline;
use crate::units::Units;

/// One limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Limiter<A: Algorithm> {
    algorithm: A,
    state: A::State,
    times: Timeline,
}

impl<A: Algorithm> Limiter<A> {
    /// Creates a limit with everything available.
    pub fn new(algorithm: A) -> Self {
        let state = algorithm.fresh();
        Self {
            algorithm,
            state,
            times: Timeline::START,
        }
    }

    /// Takes `cost` if it is available.
    #[inline]
    pub fn take(&mut self, cost: impl Into<Units>, now: Moment) -> Decision {
        let now = self.times.pass(&self.algorithm, now);
        self.algorithm.take(&mut self.state, cost.into(), now)
    }

    /// Returns the answer that a take would get; a peek of 0 only looks.
    #[inline]
    pub fn peek(&self, cost: impl Into<Units>, now: Moment) -> Decision {
        let now = self.times.look(&self.algorithm, now);
        self.algorithm.peek(&self.state, cost.into(), now)
    }

    /// Records an attempt that another limit refused, for a ban.
    pub fn attempt(&mut self, cost: impl Into<Units>, now: Moment) {
        let now = self.times.pass(&self.algorithm, now);
        self.algorithm.attempt(&mut self.state, cost.into(), now);
    }

    /// Returns the standing of the limit, even if it refuses.
    pub fn standing(&self, now: Moment) -> Standing {
        let now = self.times.look(&self.algorithm, now);
        self.algorithm.standing(&self.state, now)
    }

    /// Takes `cost`, available or not.
    pub fn charge(&mut self, cost: impl Into<Units>, now: Moment) {
        let now = self.times.pass(&self.algorithm, now);
        self.algorithm.charge(&mut self.state, cost.into(), now);
    }

    /// Gives back `cost`.
    pub fn refund(&mut self, cost: impl Into<Units>, now: Moment) {
        let now = self.times.pass(&self.algorithm, now);
        self.algorithm.refund(&mut self.state, cost.into(), now);
    }

    /// Sets another limit. The available part keeps its ratio, so nothing bursts.
    pub fn set_limit(&mut self, next: A, now: Moment) {
        let now = self.times.pass(&self.algorithm, now);
        self.algorithm.change(&next, &mut self.state, now);
        self.algorithm = next;
    }

    /// Returns whether everything is available, so that the state can be forgotten.
    pub fn is_fresh(&self, now: Moment) -> bool {
        let now = self.times.look(&self.algorithm, now);
        self.algorithm.is_fresh(&self.state, now)
    }

    /// Does one operation at its time.
    pub(crate) fn update<R>(
        &mut self,
        now: Moment,
        operation: impl FnOnce(&A, &mut A::State, Moment) -> R,
    ) -> R {
        let now = self.times.pass(&self.algorithm, now);
        operation(&self.algorithm, &mut self.state, now)
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
