//! One way in for all algorithms.
//!
//! An [`Algorithm`] is what is agreed: the limit and how it is counted. It never changes, and many keys share it. Its
//! [`Algorithm::State`] is what is remembered of one key, and knows no limit, so that a map of a million keys stores
//! a million small states and one algorithm.
//!
//! # What every algorithm answers to
//!
//! - A fresh state has all available. It comes into being at the first operation, so it needs no time.
//! - *take* passes if the cost is not above what is there; equal is enough. A refused take changes nothing.
//! - A take of 0, and a *peek*, change nothing, not even the clock. They are refused in debt, during a ban, and past
//!   the deadline of a queue.
//! - *charge* is always applied and may lead into debt. *refund* never leads above full.
//! - If time goes back, no time has passed since the last change. Durations count from the time given.

use std::fmt::Debug;

use crate::decision::{Decision, Standing};
use crate::moment::Moment;
use crate::units::Units;

/// A limit, and how it is counted.
pub trait Algorithm {
    /// What is remembered of one key.
    type State: Clone + Debug + PartialEq;

    /// The most that can ever be available at once; [`Units::MAX`] where any cost is.
    fn limit(&self) -> Units;

    /// A state with all available.
    fn fresh(&self) -> Self::State;

    /// Takes so much if it is there.
    fn take(&self, state: &mut Self::State, cost: Units, now: Moment) -> Decision;

    /// What a take would answer. `peek(state, Units::ZERO, now)` only looks.
    fn peek(&self, state: &Self::State, cost: Units, now: Moment) -> Decision {
        self.take(&mut state.clone(), cost, now)
    }

    /// Somebody wanted to take so much, and another limit refused. Only what counts attempts takes note.
    fn attempt(&self, _state: &mut Self::State, _cost: Units, _now: Moment) {}

    /// How the limit stands, also when it refuses.
    fn standing(&self, state: &Self::State, now: Moment) -> Standing;

    /// Takes so much whether or not it is there: what was done already costs more than was said.
    fn charge(&self, state: &mut Self::State, cost: Units, now: Moment);

    /// Gives back so much: what was taken was not used. What is more than full is lost.
    fn refund(&self, state: &mut Self::State, cost: Units, now: Moment);

    /// Carries a state over to another limit of the same algorithm: up to `now` it counts by this one. The ratio of
    /// what is available to the limit is kept, so nothing bursts; a debt is an amount and stays one. After a limit of
    /// 0 nothing is available.
    fn change(&self, next: &Self, state: &mut Self::State, now: Moment);

    /// Whether the state can be forgotten: from `now` on it answers what a fresh one does.
    fn is_fresh(&self, state: &Self::State, now: Moment) -> bool;
}
