//! A mode that counts refused attempts, as a log in Redis and envoyproxy/ratelimit do: a caller that keeps asking stays
//! refused until it asks less.
//!
//! A refused take is charged to the algorithm inside, and so is an attempt that another limit refused. A cost above the
//! limit is not, because no wait helps then. A peek counts nothing.

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::moment::Moment;
use crate::units::Units;

/// An algorithm that counts refused attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountRefused<A>(pub A);

impl<A: Algorithm> Algorithm for CountRefused<A> {
    type State = A::State;

    fn limit(&self) -> Units {
        self.0.limit()
    }

    fn fills(&self) -> u64 {
        self.0.fills()
    }

    fn fresh(&self) -> A::State {
        self.0.fresh()
    }

    fn take(&self, state: &mut A::State, cost: Units, now: Moment) -> Decision {
        match self.0.take(state, cost, now) {
            Decision::After(_) => {
                self.0.charge(state, cost, now);
                self.0.peek(state, cost, now)
            }
            decision => decision,
        }
    }

    fn peek(&self, state: &A::State, cost: Units, now: Moment) -> Decision {
        match self.0.peek(state, cost, now) {
            Decision::After(_) => self.take(&mut state.clone(), cost, now),
            decision => decision,
        }
    }

    fn attempt(&self, state: &mut A::State, cost: Units, now: Moment) {
        if !matches!(self.0.peek(state, cost, now), Decision::Never(_)) {
            self.0.charge(state, cost, now);
        }
    }

    fn standing(&self, state: &A::State, now: Moment) -> Standing {
        self.0.standing(state, now)
    }

    fn charge(&self, state: &mut A::State, cost: Units, now: Moment) {
        self.0.charge(state, cost, now);
    }

    fn refund(&self, state: &mut A::State, cost: Units, now: Moment) {
        self.0.refund(state, cost, now);
    }

    fn change(&self, next: &Self, state: &mut A::State, now: Moment) {
        self.0.change(&next.0, state, now);
    }

    fn is_fresh(&self, state: &A::State, now: Moment) -> bool {
        self.0.is_fresh(state, now)
    }
}
