//! Leaky bucket as a queue: what is accepted is done one after the other, at a rate.
//!
//! The backlog is a meter's level. Who is accepted waits backlog/rate, the first not at all; who would wait for longer
//! than a deadline is refused, and who does not fit in the capacity, too. The backlog includes the rest of the one
//! that is being served, so the capacity is nginx's `burst` + 1. Starts are rounded up to a nanosecond, so what
//! starts in any span, its last one left out, is at most rate·span and a nanosecond's worth.
//!
//! A deadline of 0 takes only who need not wait.

use std::time::Duration;

use crate::algorithm::Algorithm;
use crate::decision::{Allowed, Decision, Reason, Standing};
use crate::error::SettingsError;
use crate::flow::{Flow, Short};
use crate::level::{Level, Reading};
use crate::moment::{Moment, span};
use crate::rate::Rate;
use crate::units::Units;

/// A leaky bucket as a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeakyQueue {
    flow: Flow,
    /// The longest wait, in nanoseconds.
    wait_max: u128,
}

/// The backlog of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeakyQueueState(Level);

impl LeakyQueue {
    /// A queue for so much, the one being served included, with a longest wait.
    ///
    /// # Errors
    ///
    /// If the rate is by the calendar, or if it is so uneven that parts of so large a capacity cannot be counted.
    pub fn new(
        capacity: impl Into<Units>,
        rate: Rate,
        wait_max: Duration,
    ) -> Result<Self, SettingsError> {
        Ok(Self {
            flow: Flow::new(capacity.into(), rate)?,
            wait_max: wait_max.as_nanos(),
        })
    }

    /// How long the backlog takes, by the clock that was given; none if for ever.
    #[inline]
    fn wait(&self, reading: Reading) -> Option<u128> {
        match self.flow.nanos_for(reading.missing)? {
            0 => Some(0),
            nanos => Some(nanos.saturating_add(u128::from(reading.behind))),
        }
    }

    #[inline]
    fn stands(&self, reading: Reading) -> Standing {
        let mut standing = self.flow.standing(reading.missing, reading.behind);
        if self.wait(reading).is_none_or(|wait| wait > self.wait_max) {
            standing.remaining = Units::ZERO;
        }
        standing
    }

    /// What to say, and what the backlog becomes if it is accepted.
    #[inline]
    fn decide(&self, reading: Reading, cost: Units) -> (Decision, Option<i128>) {
        let taken = self.flow.take(reading.missing, cost);
        if taken == Err(Short::Always) {
            return (Decision::Never(Reason::CostAboveLimit), None);
        }
        let Some(wait) = self.wait(reading) else {
            return (Decision::Never(Reason::RateIsZero), None);
        };
        if let Ok(missing) = taken
            && wait <= self.wait_max
        {
            let after = Reading { missing, ..reading };
            let Standing { remaining, reset } = self.stands(after);
            let allowed = Allowed {
                remaining,
                reset,
                delay: span(wait),
                warn: false,
            };
            return (Decision::Allowed(allowed), Some(missing));
        }
        // The later of both instants: in time for the deadline, and when it fits.
        let in_time = Decision::After(span(wait.saturating_sub(self.wait_max)));
        let fits = match taken {
            Ok(_) => in_time,
            Err(short) => self.flow.refusal(short, reading.behind),
        };
        let refusal = match (in_time, fits) {
            (Decision::After(a), Decision::After(b)) => Decision::After(a.max(b)),
            (_, never) => never,
        };
        (refusal, None)
    }
}

impl Algorithm for LeakyQueue {
    type State = LeakyQueueState;

    fn limit(&self) -> Units {
        self.flow.size()
    }

    fn fresh(&self) -> LeakyQueueState {
        LeakyQueueState(Level::FULL)
    }

    #[inline]
    fn take(&self, state: &mut LeakyQueueState, cost: Units, now: Moment) -> Decision {
        let reading = state.0.read(&self.flow, now);
        let (decision, missing) = self.decide(reading, cost);
        if let (Some(missing), 1..) = (missing, cost.parts()) {
            state.0.set(reading, missing, now);
        }
        decision
    }

    #[inline]
    fn peek(&self, state: &LeakyQueueState, cost: Units, now: Moment) -> Decision {
        self.decide(state.0.read(&self.flow, now), cost).0
    }

    fn standing(&self, state: &LeakyQueueState, now: Moment) -> Standing {
        self.stands(state.0.read(&self.flow, now))
    }

    fn charge(&self, state: &mut LeakyQueueState, cost: Units, now: Moment) {
        state.0.charge(&self.flow, cost, now);
    }

    fn refund(&self, state: &mut LeakyQueueState, cost: Units, now: Moment) {
        state.0.refund(&self.flow, cost, now);
    }

    fn change(&self, next: &Self, state: &mut LeakyQueueState, now: Moment) {
        state.0.change(&self.flow, &next.flow, now);
    }

    fn is_fresh(&self, state: &LeakyQueueState, now: Moment) -> bool {
        state.0.is_full(&self.flow, now)
    }
}
