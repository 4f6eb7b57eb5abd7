//! Warm-up: a slow start after a rest.
//!
//! A backend may be cold after a rest: caches are empty, connections are closed. So permits that are stored while no
//! request comes cost more time than fresh ones; the more are stored, the more each costs. The formulae are those of
//! Guava's `SmoothWarmingUp`. With the interval s = 1/rate, a warm-up of w and a cold factor of f, half of w/s permits
//! cost s each, and the 2·w/(s + f·s) above those cost from s up to f·s. From the top, these take w together.
//!
//! Any cost passes at once if no request is ahead; the next request waits for it. So there is no *never*, nothing
//! remains, and a wait of up to `wait_max` is accepted. The work that starts in any span, without its last start, is at
//! most rate·span plus the amount of a nanosecond.
//!
//! Permits are counted in drops ([`crate::flow`]), exactly. Each take rounds time up to a nanosecond. The area under
//! the slope is computed in floating point, to some 15 digits, and its errors do not add up.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::error::SettingsError;
use crate::moment::{Moment, span};
use crate::rate::Rate;
use crate::units::Units;
use crate::wide::{gcd, scaled};

/// A rate that is reached after a warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUp {
    /// Drops per part of a unit.
    part: u128,
    /// Drops of fresh permits per nanosecond.
    fresh: u128,
    /// Drops that are stored per nanosecond.
    refill: u128,
    /// Largest number of stored drops.
    full: u128,
    /// Number of stored drops up to which permits cost no more than fresh ones.
    threshold: u128,
    /// Additional nanoseconds of all permits above the threshold, compared to fresh ones: a fraction.
    slope: (u128, u128),
    /// Longest wait, in nanoseconds.
    wait_max: u128,
}

/// Stored permits, and the time of the next start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUpState {
    /// Drops that were stored then.
    stored: u128,
    /// Time at which all accepted work is done, in nanoseconds; [`NEVER_USED`] before the first operation.
    free: i128,
}

/// Start of a rest so long that the largest number of drops is stored.
const NEVER_USED: i128 = i128::MIN;

/// Upper bound of each number above, so that products fit.
const DROPS_MAX: u128 = 1 << 100;

/// Upper bound of times.
const FOREVER: i128 = 1 << 120;

impl WarmUp {
    /// Creates a rate that is reached after the time `warm_up`, from a rate that is lower by `cold_factor`.
    ///
    /// # Errors
    ///
    /// If the rate is 0 or by the calendar, the cold factor is below 1, or exact numbers do not fit.
    pub fn new(
        rate: Rate,
        warm_up: Duration,
        cold_factor: Units,
        wait_max: Duration,
    ) -> Result<Self, SettingsError> {
        let size = rate.amount();
        if size == Units::ZERO {
            return Err(SettingsError::RateIsZero { rate });
        }
        if cold_factor < Units::ONE {
            return Err(SettingsError::ColdFactor { cold_factor });
        }
        let exact = Self::exact(size, rate.period(), warm_up.as_nanos(), cold_factor);
        let mut exact = exact.ok_or(SettingsError::TooFine { size, rate })?;
        exact.wait_max = wait_max.as_nanos();
        Ok(exact)
    }

    /// Computes exact settings. With the rate a/p parts per nanosecond and the cold factor f = k/one, a drop is
    /// 1/(2p·(one + k)) of a part, and all other numbers are whole. The threshold is a/p·w/2, and the room above it is
    /// 2·a/p·w/(1 + f).
    fn exact(amount: Units, period: NonZeroU64, warm_up: u128, factor: Units) -> Option<Self> {
        let (one, k) = (Units::ONE.parts(), factor.parts());
        let common = gcd(amount.parts(), u128::from(period.get())).max(1);
        let (a, p) = (amount.parts() / common, u128::from(period.get()) / common);
        let scale = one.checked_add(k)?;
        let part = p.checked_mul(scale.checked_mul(2)?)?;
        let fresh = a.checked_mul(scale.checked_mul(2)?)?;
        let refill = a.checked_mul(one.checked_mul(5)?.checked_add(k)?)?;
        let full = refill.checked_mul(warm_up)?;
        let threshold = a.checked_mul(scale)?.checked_mul(warm_up)?;
        let numbers = [part, fresh, refill, full, threshold];
        let common = numbers.into_iter().fold(0, gcd).max(1);
        if numbers.into_iter().any(|it| it / common > DROPS_MAX) {
            return None;
        }
        Some(Self {
            part: part / common,
            fresh: fresh / common,
            refill: refill / common,
            full: full / common,
            threshold: threshold / common,
            // w·(f − 1)/(f + 1)
            slope: (warm_up.checked_mul(k.checked_sub(one)?)?, scale),
            wait_max: 0,
        })
    }

    /// Returns the number of stored permits; the largest number is the coldest state.
    pub fn stored(&self, state: &WarmUpState, now: Moment) -> Units {
        Units::from_parts(self.read(state, now).stored / self.part)
    }

    /// Returns the state, brought up to now.
    fn read(&self, state: &WarmUpState, now: Moment) -> WarmUpState {
        let now = i128::from(now.nanos());
        let idle = u128::try_from(now.saturating_sub(state.free)).unwrap_or(0);
        let came = self.refill.saturating_mul(idle);
        WarmUpState {
            stored: state.stored.saturating_add(came).min(self.full),
            free: state.free.max(now),
        }
    }

    /// Returns the time until the next start.
    fn delay(reading: WarmUpState, now: Moment) -> u128 {
        u128::try_from(reading.free - i128::from(now.nanos())).unwrap_or(0)
    }

    /// Returns the nanoseconds that a number of drops costs while `stored` are stored, rounded up.
    fn time_for(&self, drops: u128, stored: u128) -> u128 {
        let (whole, left) = (drops / self.fresh, drops % self.fresh);
        let above = self.full - self.threshold;
        let high = stored.saturating_sub(self.threshold);
        let taken = drops.min(high);
        if taken == 0 || above == 0 {
            return whole + u128::from(left > 0);
        }
        // The taken part of the area above the threshold, of 1.
        let (high, taken) = (high as f64 / above as f64, taken as f64 / above as f64);
        let part = taken * (2.0 * high - taken);
        // Slightly less, so that a whole number is not rounded up.
        let slope = part * (self.slope.0 as f64 / self.slope.1 as f64);
        let more = left as f64 / self.fresh as f64 + slope * (1.0 - 4.0 * f64::EPSILON);
        // It is positive, and cut at the most there is.
        let more = more.ceil() as u128;
        whole.saturating_add(more)
    }

    /// Returns the reading after a cost.
    fn after(&self, reading: WarmUpState, cost: Units) -> WarmUpState {
        let drops = cost.parts().saturating_mul(self.part);
        let nanos = i128::try_from(self.time_for(drops, reading.stored)).unwrap_or(FOREVER);
        WarmUpState {
            stored: reading.stored.saturating_sub(drops),
            free: reading.free.saturating_add(nanos).min(FOREVER),
        }
    }

    /// Returns the decision, and the reading after an acceptance.
    fn decide(&self, state: &WarmUpState, cost: Units, now: Moment) -> (Decision, WarmUpState) {
        let reading = self.read(state, now);
        let delay = Self::delay(reading, now);
        if delay > self.wait_max {
            return (Decision::After(span(delay - self.wait_max)), reading);
        }
        let after = self.after(reading, cost);
        let mut allowed = self.stands(after, now).allowed();
        allowed.delay = span(delay);
        (Decision::Allowed(allowed), after)
    }

    /// Returns the standing; the largest amount remains if any cost passes, otherwise 0.
    fn stands(&self, reading: WarmUpState, now: Moment) -> Standing {
        let delay = Self::delay(reading, now);
        let remaining = match delay > self.wait_max {
            true => Units::ZERO,
            false => Units::MAX,
        };
        Standing::new(remaining, span(delay))
    }
}

impl Algorithm for WarmUp {
    type State = WarmUpState;

    fn limit(&self) -> Units {
        Units::MAX
    }

    fn fills(&self) -> u64 {
        // The length of the warm-up.
        u64::try_from(self.full / self.refill.max(1)).unwrap_or(u64::MAX)
    }

    fn fresh(&self) -> WarmUpState {
        WarmUpState {
            stored: 0,
            free: NEVER_USED,
        }
    }

    fn take(&self, state: &mut WarmUpState, cost: Units, now: Moment) -> Decision {
        let (decision, after) = self.decide(state, cost, now);
        if decision.is_allowed() && cost > Units::ZERO {
            *state = after;
        }
        decision
    }

    fn standing(&self, state: &WarmUpState, now: Moment) -> Standing {
        self.stands(self.read(state, now), now)
    }

    fn charge(&self, state: &mut WarmUpState, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            *state = self.after(self.read(state, now), cost);
        }
    }

    /// Gives time back, at the rate of a warm one.
    fn refund(&self, state: &mut WarmUpState, cost: Units, now: Moment) {
        if cost == Units::ZERO {
            return;
        }
        *state = self.read(state, now);
        let drops = cost.parts().saturating_mul(self.part);
        let nanos = i128::try_from(drops / self.fresh).unwrap_or(FOREVER);
        // Not before now.
        let back = state.free.saturating_sub(nanos);
        state.free = back.max(i128::from(now.nanos()));
    }

    /// Keeps the ratio of the stored permits, and the promised starts.
    fn change(&self, next: &Self, state: &mut WarmUpState, now: Moment) {
        if state.free == NEVER_USED {
            return;
        }
        *state = self.read(state, now);
        state.stored = scaled(state.stored, next.full, self.full);
    }

    fn is_fresh(&self, state: &WarmUpState, now: Moment) -> bool {
        let reading = self.read(state, now);
        reading.stored == self.full && Self::delay(reading, now) == 0
    }
}
