//! Token bucket: a burst at once, refilled at a rate.
//!
//! tokens = min(burst, tokens + rate·Δt). In any closed span of w, at most burst + rate·w is taken. A cost may be
//! anything up to the burst. A charge may lead into debt without a floor. The rate pays it back, and until then nothing
//! passes.

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::error::{InvalidLimit, SettingsError};
use crate::flow::Flow;
use crate::level::Level;
use crate::moment::Moment;
use crate::rate::Rate;
use crate::units::Units;

/// A token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    pub(crate) flow: Flow,
}

/// Tokens of one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucketState(pub(crate) Level);

impl TokenBucket {
    /// Creates a bucket with this burst. A rate of 0 never refills it.
    ///
    /// # Errors
    ///
    /// If the rate is so uneven that parts of such a large burst cannot be counted.
    pub fn new(burst: impl Into<Units>, rate: Rate) -> Result<Self, SettingsError> {
        let flow = Flow::new(burst.into(), rate)?;
        Ok(Self { flow })
    }

    /// Creates a bucket from a rate such as `100/s`. The burst is the amount of one second, rounded up to whole units;
    /// [`Self::new`] takes another one.
    ///
    /// # Errors
    ///
    /// If the text is not a rate, or [`Self::new`] refuses it.
    pub fn limit(rate: &str) -> Result<Self, InvalidLimit> {
        let rate: Rate = rate.parse()?;
        Ok(Self::new(rate.in_a_second(), rate)?)
    }

    /// A bucket of size 0 without supply.
    pub(crate) const NOTHING: Self = Self {
        flow: Flow::NOTHING,
    };
}

impl Algorithm for TokenBucket {
    type State = TokenBucketState;

    fn limit(&self) -> Units {
        self.flow.size()
    }

    fn fills(&self) -> u64 {
        self.flow.fills()
    }

    fn fresh(&self) -> TokenBucketState {
        TokenBucketState(Level::FULL)
    }

    #[inline]
    fn take(&self, state: &mut TokenBucketState, cost: Units, now: Moment) -> Decision {
        state.0.take(&self.flow, cost, now)
    }

    fn standing(&self, state: &TokenBucketState, now: Moment) -> Standing {
        state.0.standing(&self.flow, now)
    }

    fn charge(&self, state: &mut TokenBucketState, cost: Units, now: Moment) {
        state.0.charge(&self.flow, cost, now);
    }

    fn refund(&self, state: &mut TokenBucketState, cost: Units, now: Moment) {
        state.0.refund(&self.flow, cost, now);
    }

    fn change(&self, next: &Self, state: &mut TokenBucketState, now: Moment) {
        state.0.change(&self.flow, &next.flow, now);
    }

    fn is_fresh(&self, state: &TokenBucketState, now: Moment) -> bool {
        state.0.is_full(&self.flow, now)
    }
}
