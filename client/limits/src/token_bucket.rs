//! Token bucket: so many at once, refilled at a rate.
//!
//! tokens = min(burst, tokens + rate·Δt). In any closed span of w, at most burst + rate·w is taken. A cost may be
//! anything up to the burst. What is charged leads into debt without a floor, which the rate pays back; till then
//! nothing passes.

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::error::SettingsError;
use crate::flow::Flow;
use crate::moment::Moment;
use crate::rate::Rate;
use crate::rest::Rest;
use crate::units::Units;

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    flow: Flow,
}

/// What is in one bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBucketState {
    /// Drops that are missing at that time.
    missing: i128,
    at: Moment,
    rest: Rest,
}

impl TokenBucket {
    /// A bucket of that size. A rate of 0 never refills it.
    ///
    /// # Errors
    ///
    /// If the rate is by the calendar, or if it is so uneven that parts of so large a burst cannot be counted.
    pub fn new(burst: impl Into<Units>, rate: Rate) -> Result<Self, SettingsError> {
        let flow = Flow::new(burst.into(), rate)?;
        Ok(Self { flow })
    }

    /// What fits.
    pub const fn burst(&self) -> Units {
        self.flow.size()
    }

    /// An empty bucket, for what must not begin with a burst.
    pub fn empty(&self, now: Moment) -> TokenBucketState {
        TokenBucketState {
            missing: self.flow.full(),
            at: now,
            rest: Rest::NONE,
        }
    }

    /// What is missing now, and how far the clock is behind the last change.
    #[inline]
    fn missing(&self, state: &TokenBucketState, now: Moment) -> (i128, u64) {
        let missing = self.flow.after(state.missing, now.nanos_since(state.at));
        (missing, state.at.nanos_since(now))
    }

    /// So much was missing at that time, and now it is another amount.
    #[inline]
    fn set(state: &mut TokenBucketState, before: i128, missing: i128, now: Moment) {
        state.missing = missing;
        state.at = state.at.max(now);
        if before == 0 || missing == 0 {
            state.rest.clear();
        }
    }
}

impl Algorithm for TokenBucket {
    type State = TokenBucketState;

    fn fresh(&self) -> TokenBucketState {
        TokenBucketState {
            missing: 0,
            at: Moment::FIRST,
            rest: Rest::NONE,
        }
    }

    #[inline]
    fn take(&self, state: &mut TokenBucketState, cost: Units, now: Moment) -> Decision {
        let (missing, behind) = self.missing(state, now);
        match self.flow.take(missing, cost) {
            Ok(left) => {
                if cost > Units::ZERO {
                    Self::set(state, missing, left, now);
                }
                Decision::Allowed(self.flow.standing(left, behind).allowed())
            }
            Err(short) => self.flow.refusal(short, behind),
        }
    }

    #[inline]
    fn peek(&self, state: &TokenBucketState, cost: Units, now: Moment) -> Decision {
        let (missing, behind) = self.missing(state, now);
        match self.flow.take(missing, cost) {
            Ok(missing) => Decision::Allowed(self.flow.standing(missing, behind).allowed()),
            Err(short) => self.flow.refusal(short, behind),
        }
    }

    fn standing(&self, state: &TokenBucketState, now: Moment) -> Standing {
        let (missing, behind) = self.missing(state, now);
        self.flow.standing(missing, behind)
    }

    fn charge(&self, state: &mut TokenBucketState, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let (missing, _) = self.missing(state, now);
            Self::set(state, missing, self.flow.charge(missing, cost), now);
        }
    }

    fn refund(&self, state: &mut TokenBucketState, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let (missing, _) = self.missing(state, now);
            Self::set(state, missing, self.flow.refund(missing, cost), now);
        }
    }

    fn change(&self, next: &Self, state: &mut TokenBucketState, now: Moment) {
        let (missing, _) = self.missing(state, now);
        Self::set(state, missing, missing, now);
        state.missing = self.flow.change(&next.flow, missing, &mut state.rest);
    }

    fn is_fresh(&self, state: &TokenBucketState, now: Moment) -> bool {
        self.missing(state, now).0 == 0
    }
}
