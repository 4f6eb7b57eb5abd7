//! The common interface of all algorithms.
//!
//! An [`Algorithm`] holds the settings: the limit and the way it is counted. It never changes, and many keys share it.
//! Its [`Algorithm::State`] is the memory of one key and does not contain the limit. So a map of a million keys stores
//! a million small states and one algorithm.
//!
//! # Rules for every algorithm
//!
//! - A fresh state has everything available. It starts at the first operation, so it needs no time.
//! - *take* passes if the cost is at most the available amount. A refused take changes nothing.
//! - A take of 0, and a *peek*, change nothing, not even the clock. They are refused in debt, during a ban, and past
//!   the deadline of a queue.
//! - *charge* always applies and may lead into debt. *refund* never leads above full.
//! - If time goes back, no time has passed since the last change. Durations count from the given time. The owner of a
//!   state (a limiter, a map of keys) handles large steps back; [`Algorithm::fills`] says which.

use std::fmt::Debug;

use crate::decision::{Decision, Standing};
use crate::moment::Moment;
use crate::units::Units;

/// Settings of a limit, and the way it is counted.
pub trait Algorithm {
    /// Memory of one key.
    type State: Clone + Debug + PartialEq;

    /// Returns the largest amount that can be available at once, or [`Units::MAX`] where any cost is.
    fn limit(&self) -> Units;

    /// Returns the nanoseconds in which everything comes back. A clock that is set back by far more moves no level
    /// (`timeline.rs`). [`u64::MAX`]: the algorithm itself follows such a clock.
    fn fills(&self) -> u64;

    /// Returns a state with everything available.
    fn fresh(&self) -> Self::State;

    /// Takes `cost` if it is available.
    fn take(&self, state: &mut Self::State, cost: Units, now: Moment) -> Decision;

    /// Returns the answer that a take would get. `peek(state, Units::ZERO, now)` only looks.
    fn peek(&self, state: &Self::State, cost: Units, now: Moment) -> Decision {
        self.take(&mut state.clone(), cost, now)
    }

    /// Records an attempt to take `cost` that another limit refused. Only algorithms that count attempts use it.
    fn attempt(&self, _state: &mut Self::State, _cost: Units, _now: Moment) {}

    /// Returns the standing of the limit, even if it refuses.
    fn standing(&self, state: &Self::State, now: Moment) -> Standing;

    /// Takes `cost`, available or not: finished work cost more than expected.
    fn charge(&self, state: &mut Self::State, cost: Units, now: Moment);

    /// Gives back `cost`: taken units were not used. Any amount above full is lost.
    fn refund(&self, state: &mut Self::State, cost: Units, now: Moment);

    /// Converts a state to another limit of the same algorithm; up to `now` it counts by this one. The available part
    /// keeps its ratio to the limit, so nothing bursts; a debt keeps its amount. After a limit of 0 nothing is
    /// available.
    fn change(&self, next: &Self, state: &mut Self::State, now: Moment);

    /// Returns whether the state can be forgotten: from `now` on it gives the same answers as a fresh one.
    fn is_fresh(&self, state: &Self::State, now: Moment) -> bool;
}
