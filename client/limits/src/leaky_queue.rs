//! Leaky bucket as a queue: accepted work starts one after the other, at a rate.
//!
//! The backlog is a meter's level. Accepted work waits for backlog/rate, the first not at all. Work that would wait
//! longer than a deadline is refused, and so is work that does not fit in the capacity. The backlog includes the rest
//! of the work that is being served, so the capacity is nginx's `burst` + 1. Starts are rounded up to a nanosecond. So
//! the work that starts in any span, without its last start, is at most rate·span plus the amount of a nanosecond.
//!
//! A deadline of 0 accepts only work that need not wait.

use std::time::Duration;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Reason, Standing};
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
    /// Longest wait, in nanoseconds.
    wait_max: u128,
}

/// Backlog of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeakyQueueState(Level);

impl LeakyQueue {
    /// Creates a queue with a capacity, which includes the work being served, and a longest wait.
    ///
    /// # Errors
    ///
    /// If the rate is so uneven that parts of such a large capacity cannot be counted.
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

    /// Returns the time of the backlog, by the given clock; `None` if it is infinite.
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

    /// Returns the decision, and the backlog after an acceptance.
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
            let mut allowed = self.stands(after).allowed();
            allowed.delay = span(wait);
            return (Decision::Allowed(allowed), Some(missing));
        }
        // The later of two times: the wait is within the deadline, and the work fits.
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

    fn fills(&self) -> u64 {
        self.flow.fills()
    }

    fn fresh(&self) -> LeakyQueueState {
        LeakyQueueState(Level::FULL)
    }

    #[inline]
    fn take(&self, state: &mut LeakyQueueState, cost: Units, now: Moment) -> Decision {
        let reading = state.0.read(&self.flow, now);
        let (decision, missing) = self.decide(reading, cost);
        if let (Some(missing), 1..) = (missing, cost.parts()) {
            state.0.set(missing, now);
        }
        decision
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
