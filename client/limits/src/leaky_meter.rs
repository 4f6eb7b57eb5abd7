//! Leaky bucket as a meter: a cost must fit, and the level leaks at a rate.
//!
//! A take passes if level + cost ≤ capacity. Capacity − level equals the tokens of a token bucket, so both give the
//! same answers in every field. Choose a meter if you think of the amount in use, and not of the amount left.

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::error::SettingsError;
use crate::flow::Flow;
use crate::level::Level;
use crate::moment::Moment;
use crate::rate::Rate;
use crate::units::Units;

/// A leaky bucket as a meter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeakyMeter {
    flow: Flow,
}

/// Level of one bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeakyMeterState(Level);

impl LeakyMeter {
    /// Creates a bucket with this capacity, which leaks at this rate; at a rate of 0, never.
    ///
    /// # Errors
    ///
    /// If the rate is by the calendar, or so uneven that parts of such a large capacity cannot be counted.
    pub fn new(capacity: impl Into<Units>, rate: Rate) -> Result<Self, SettingsError> {
        let flow = Flow::new(capacity.into(), rate)?;
        Ok(Self { flow })
    }
}

impl Algorithm for LeakyMeter {
    type State = LeakyMeterState;

    fn limit(&self) -> Units {
        self.flow.size()
    }

    fn fills(&self) -> u64 {
        self.flow.fills()
    }

    fn fresh(&self) -> LeakyMeterState {
        LeakyMeterState(Level::FULL)
    }

    #[inline]
    fn take(&self, state: &mut LeakyMeterState, cost: Units, now: Moment) -> Decision {
        state.0.take(&self.flow, cost, now)
    }

    #[inline]
    fn peek(&self, state: &LeakyMeterState, cost: Units, now: Moment) -> Decision {
        state.0.peek(&self.flow, cost, now)
    }

    fn standing(&self, state: &LeakyMeterState, now: Moment) -> Standing {
        state.0.standing(&self.flow, now)
    }

    fn charge(&self, state: &mut LeakyMeterState, cost: Units, now: Moment) {
        state.0.charge(&self.flow, cost, now);
    }

    fn refund(&self, state: &mut LeakyMeterState, cost: Units, now: Moment) {
        state.0.refund(&self.flow, cost, now);
    }

    fn change(&self, next: &Self, state: &mut LeakyMeterState, now: Moment) {
        state.0.change(&self.flow, &next.flow, now);
    }

    fn is_fresh(&self, state: &LeakyMeterState, now: Moment) -> bool {
        state.0.is_full(&self.flow, now)
    }
}
