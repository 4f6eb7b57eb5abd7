//! Soft and hard limit: a warning before the refusal.
//!
//! Decisions come from the algorithm inside. Beyond the soft limit they carry a warning, so that a caller can slow down
//! before it is refused. A refusal always warns. When the hard limit changes, the soft one keeps its ratio to it,
//! unless another one is given.

use std::cmp::Ordering;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::moment::Moment;
use crate::units::Units;
use crate::wide::compare_products;

/// An algorithm with a soft limit below its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SoftHard<A> {
    hard: A,
    /// The soft limit, as a part of `of`.
    soft: Units,
    of: Units,
}

impl<A: Algorithm> SoftHard<A> {
    /// Creates a limit that warns if more than `soft` is in use.
    pub fn new(hard: A, soft: impl Into<Units>) -> Self {
        Self {
            of: hard.limit(),
            hard,
            soft: soft.into(),
        }
    }

    /// Returns the same with another hard limit; the soft one keeps its ratio to it.
    #[must_use]
    pub fn with_hard<B: Algorithm>(&self, hard: B) -> SoftHard<B> {
        SoftHard {
            hard,
            soft: self.soft,
            of: self.of,
        }
    }

    /// Returns the algorithm inside.
    pub const fn hard(&self) -> &A {
        &self.hard
    }

    /// Returns whether more than the soft limit is in use.
    pub fn warns(&self, state: &A::State, now: Moment) -> bool {
        self.is_beyond(self.hard.standing(state, now).remaining)
    }

    fn is_beyond(&self, remaining: Units) -> bool {
        let limit = self.hard.limit();
        let used = limit.saturating_sub(remaining);
        if self.of == Units::ZERO {
            return used > Units::ZERO;
        }
        // used > soft · limit / of
        let order = compare_products(
            used.parts(),
            self.of.parts(),
            self.soft.parts(),
            limit.parts(),
        );
        order == Ordering::Greater
    }

    fn marked(&self, decision: Decision) -> Decision {
        match decision {
            Decision::Allowed(mut allowed) => {
                allowed.warn = self.is_beyond(allowed.remaining);
                Decision::Allowed(allowed)
            }
            refusal => refusal,
        }
    }
}

impl<A: Algorithm> Algorithm for SoftHard<A> {
    type State = A::State;

    fn limit(&self) -> Units {
        self.hard.limit()
    }

    fn fills(&self) -> u64 {
        self.hard.fills()
    }

    fn fresh(&self) -> A::State {
        self.hard.fresh()
    }

    fn take(&self, state: &mut A::State, cost: Units, now: Moment) -> Decision {
        self.marked(self.hard.take(state, cost, now))
    }

    fn peek(&self, state: &A::State, cost: Units, now: Moment) -> Decision {
        self.marked(self.hard.peek(state, cost, now))
    }

    fn attempt(&self, state: &mut A::State, cost: Units, now: Moment) {
        self.hard.attempt(state, cost, now);
    }

    fn standing(&self, state: &A::State, now: Moment) -> Standing {
        self.hard.standing(state, now)
    }

    fn charge(&self, state: &mut A::State, cost: Units, now: Moment) {
        self.hard.charge(state, cost, now);
    }

    fn refund(&self, state: &mut A::State, cost: Units, now: Moment) {
        self.hard.refund(state, cost, now);
    }

    fn change(&self, next: &Self, state: &mut A::State, now: Moment) {
        self.hard.change(&next.hard, state, now);
    }

    fn is_fresh(&self, state: &A::State, now: Moment) -> bool {
        self.hard.is_fresh(state, now)
    }
}
