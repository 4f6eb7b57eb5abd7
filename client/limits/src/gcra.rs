//! GCRA: a token bucket whose state is one point in time.
//!
//! The theoretical arrival time (TAT) is the time at which the bucket is full again. With T = 1/rate, a take passes if
//! max(TAT, now) + cost·T − now ≤ burst·T. Every answer equals that of [`crate::TokenBucket`], field by field, as long
//! as time does not go back. GCRA does not know the time of its last request, so after a step back it shows a little
//! less, never more.
//!
//! The TAT is kept in drops ([`crate::flow`]), which are parts of a nanosecond such that 1/rate is a whole number.

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::error::SettingsError;
use crate::flow::{Flow, MISSING_MAX};
use crate::moment::Moment;
use crate::rate::Rate;
use crate::units::Units;

/// The generic cell rate algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gcra {
    flow: Flow,
}

/// Time at which one bucket is full again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, packed(8))]
pub struct GcraState {
    /// In drops since the origin.
    tat: i128,
}

/// A time before every moment: 2⁶² drops per nanosecond times 2⁶³ nanoseconds is 2¹²⁵.
const LONG_AGO: i128 = -(1 << 126);

impl Gcra {
    /// Creates a bucket with this burst.
    ///
    /// # Errors
    ///
    /// If the rate is 0 or by the calendar, or so uneven that parts of such a large burst cannot be counted.
    pub fn new(burst: impl Into<Units>, rate: Rate) -> Result<Self, SettingsError> {
        let flow = Flow::new(burst.into(), rate)?;
        if flow.drops == 0 {
            return Err(SettingsError::RateIsZero { rate });
        }
        Ok(Self { flow })
    }

    /// Returns the time in drops.
    #[inline]
    fn drops_at(&self, now: Moment) -> i128 {
        i128::from(self.flow.drops) * i128::from(now.nanos())
    }

    /// Returns the missing amount now.
    #[inline]
    fn missing(&self, state: &GcraState, now: Moment) -> i128 {
        (state.tat - self.drops_at(now)).clamp(0, MISSING_MAX)
    }

    /// Sets the missing amount.
    #[inline]
    fn set(&self, state: &mut GcraState, missing: i128, now: Moment) {
        state.tat = self.drops_at(now) + missing;
    }
}

impl Algorithm for Gcra {
    type State = GcraState;

    fn limit(&self) -> Units {
        self.flow.size()
    }

    fn fills(&self) -> u64 {
        self.flow.fills()
    }

    fn fresh(&self) -> GcraState {
        GcraState { tat: LONG_AGO }
    }

    #[inline]
    fn take(&self, state: &mut GcraState, cost: Units, now: Moment) -> Decision {
        let missing = self.missing(state, now);
        match self.flow.take(missing, cost) {
            Ok(left) => {
                if cost > Units::ZERO {
                    self.set(state, left, now);
                }
                Decision::Allowed(self.flow.standing(left, 0).allowed())
            }
            Err(short) => self.flow.refusal(short, 0),
        }
    }

    fn standing(&self, state: &GcraState, now: Moment) -> Standing {
        self.flow.standing(self.missing(state, now), 0)
    }

    fn charge(&self, state: &mut GcraState, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let missing = self.missing(state, now);
            self.set(state, self.flow.charge(missing, cost), now);
        }
    }

    fn refund(&self, state: &mut GcraState, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let missing = self.missing(state, now);
            self.set(state, self.flow.refund(missing, cost), now);
        }
    }

    fn change(&self, next: &Self, state: &mut GcraState, now: Moment) {
        let missing = self.missing(state, now);
        next.set(state, self.flow.change(&next.flow, missing), now);
    }

    fn is_fresh(&self, state: &GcraState, now: Moment) -> bool {
        self.missing(state, now) == 0
    }
}
