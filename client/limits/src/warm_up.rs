//! Warm-up: after a rest, slowly first.
//!
//! What lies behind may be cold after a rest: caches empty, connections closed. So permits that are stored while
//! nothing comes cost more time than fresh ones, the more, the more are stored. Guava's `SmoothWarmingUp` by its
//! formulae: with the interval s = 1/rate, a warm-up of w and a cold factor of f, half of w/s permits cost s each, and
//! 2·w/(s + f·s) above those cost from s up to f·s. From the top, those take w together.
//!
//! Any cost passes at once if nobody is in front; who comes next waits for it. So there is no *never*, there is nothing
//! that remains, and a wait of up to `wait_max` is accepted. What starts in any span, its last one left out, is
//! at most rate·span and a nanosecond's worth.
//!
//! Permits are counted in drops ([`crate::flow`]), exactly. Time is rounded up to a nanosecond a take; the area under
//! the slope is computed in floating point, to some 15 digits, and nothing of that is carried on.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::algorithm::Algorithm;
use crate::decision::{Allowed, Decision, Standing};
use crate::error::SettingsError;
use crate::moment::{Moment, span};
use crate::rate::Rate;
use crate::rest::Rest;
use crate::units::Units;
use crate::wide::gcd;
use crate::window::length;

/// A rate that is reached after a warm-up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WarmUp {
    /// Drops a part of a unit.
    part: u128,
    /// Drops of fresh permits a nanosecond.
    fresh: u128,
    /// Drops that are stored in a nanosecond.
    refill: u128,
    /// Drops that are stored at most.
    full: u128,
    /// Drops up to which stored permits cost no more than fresh ones.
    threshold: u128,
    /// The nanoseconds that all above the threshold cost more than fresh ones.
    slope: Fraction,
    /// The longest wait, in nanoseconds.
    wait_max: u128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fraction {
    above: u128,
    below: u128,
}

/// What is stored, and when the next one may start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarmUpState {
    /// Drops that were stored then; none before the first operation: all that fits.
    stored: Option<u128>,
    rest: Rest,
    /// When all that was accepted is done, in nanoseconds.
    free: i128,
}

/// The most of each number above, so that products fit.
const DROPS_MAX: u128 = 1 << 100;

/// What time is cut to.
const FOREVER: i128 = 1 << 120;

/// What is stored and the instant of the next start, brought up to now.
#[derive(Clone, Copy, Debug)]
struct Reading {
    stored: u128,
    free: i128,
}

impl WarmUp {
    /// A rate that is reached after so long, coming from a rate that is `cold_factor` times lower.
    ///
    /// # Errors
    ///
    /// If the rate is 0 or by the calendar, the cold factor below 1, or if exact numbers would not fit.
    pub fn new(
        rate: Rate,
        warm_up: Duration,
        cold_factor: Units,
        wait_max: Duration,
    ) -> Result<Self, SettingsError> {
        let period = length(rate)?;
        if rate.amount() == Units::ZERO {
            return Err(SettingsError::RateIsZero { rate });
        }
        if cold_factor < Units::ONE {
            return Err(SettingsError::ColdFactor { cold_factor });
        }
        let too_fine = SettingsError::TooFine {
            size: rate.amount(),
            rate,
        };
        let numbers = Self::exact(rate.amount(), period, warm_up.as_nanos(), cold_factor);
        let warm_up = numbers.ok_or(too_fine)?;
        Ok(Self {
            wait_max: wait_max.as_nanos(),
            ..warm_up
        })
    }

    /// With the rate a/p parts a nanosecond and the cold factor f = k/one: a drop is 1/(2p·(one + k)) of a part, and
    /// all else is whole. The threshold is a/p·w/2, and above it fits 2·a/p·w/(1 + f).
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
            slope: Fraction {
                above: warm_up.checked_mul(k.checked_sub(one)?)?,
                below: scale,
            },
            wait_max: 0,
        })
    }

    /// How many permits are stored now: all that fits is as cold as can be.
    pub fn stored(&self, state: &WarmUpState, now: Moment) -> Units {
        Units::from_parts(self.read(state, now).stored / self.part)
    }

    fn read(&self, state: &WarmUpState, now: Moment) -> Reading {
        let now = i128::from(now.nanos());
        let Some(stored) = state.stored else {
            return Reading {
                stored: self.full,
                free: now,
            };
        };
        let idle = u128::try_from(now - state.free).unwrap_or(0);
        let came = self.refill.saturating_mul(idle);
        Reading {
            stored: stored.saturating_add(came).min(self.full),
            free: state.free.max(now),
        }
    }

    /// How long until the next start.
    fn delay(reading: Reading, now: Moment) -> u128 {
        u128::try_from(reading.free - i128::from(now.nanos())).unwrap_or(0)
    }

    /// The nanoseconds that so many drops cost, while so many are stored, rounded up.
    fn time_for(&self, drops: u128, stored: u128) -> u128 {
        let (whole, left) = (drops / self.fresh, drops % self.fresh);
        let above = self.full - self.threshold;
        let high = stored.saturating_sub(self.threshold);
        let taken = drops.min(high);
        if taken == 0 || above == 0 {
            return whole + u128::from(left > 0);
        }
        // The part of the area above the threshold that is taken, of 1.
        let (high, taken) = (high as f64 / above as f64, taken as f64 / above as f64);
        let part = taken * (2.0 * high - taken);
        // A hair less, so that what is exactly whole is not rounded up.
        let slope = part * (self.slope.above as f64 / self.slope.below as f64);
        let more = left as f64 / self.fresh as f64 + slope * (1.0 - 4.0 * f64::EPSILON);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "it is positive, and cut at the most there is"
        )]
        let more = more.ceil() as u128;
        whole.saturating_add(more)
    }

    /// What is so after a cost.
    fn after(&self, reading: Reading, cost: Units) -> Reading {
        let drops = cost.parts().saturating_mul(self.part);
        let nanos = i128::try_from(self.time_for(drops, reading.stored)).unwrap_or(FOREVER);
        Reading {
            stored: reading.stored.saturating_sub(drops),
            free: reading.free.saturating_add(nanos).min(FOREVER),
        }
    }

    fn set(state: &mut WarmUpState, reading: Reading, is_full: bool) {
        state.stored = Some(reading.stored);
        state.free = reading.free;
        if is_full || reading.stored == 0 {
            state.rest.clear();
        }
    }

    /// The answer, and what is so if it is allowed.
    fn decide(&self, state: &WarmUpState, cost: Units, now: Moment) -> (Decision, Reading) {
        let reading = self.read(state, now);
        let delay = Self::delay(reading, now);
        if delay > self.wait_max {
            return (Decision::After(span(delay - self.wait_max)), reading);
        }
        let after = self.after(reading, cost);
        let allowed = Allowed {
            remaining: self.remaining(after, now),
            reset: span(Self::delay(after, now)),
            delay: span(delay),
            warn: false,
        };
        (Decision::Allowed(allowed), after)
    }

    /// Any cost passes, or none.
    fn remaining(&self, reading: Reading, now: Moment) -> Units {
        if Self::delay(reading, now) > self.wait_max {
            Units::ZERO
        } else {
            Units::MAX
        }
    }
}

impl Algorithm for WarmUp {
    type State = WarmUpState;

    fn limit(&self) -> Units {
        Units::MAX
    }

    fn fresh(&self) -> WarmUpState {
        WarmUpState {
            stored: None,
            rest: Rest::NONE,
            free: 0,
        }
    }

    fn take(&self, state: &mut WarmUpState, cost: Units, now: Moment) -> Decision {
        let (decision, after) = self.decide(state, cost, now);
        if decision.is_allowed() && cost > Units::ZERO {
            let was_full = self.read(state, now).stored == self.full;
            Self::set(state, after, was_full);
        }
        decision
    }

    fn peek(&self, state: &WarmUpState, cost: Units, now: Moment) -> Decision {
        self.decide(state, cost, now).0
    }

    fn standing(&self, state: &WarmUpState, now: Moment) -> Standing {
        let reading = self.read(state, now);
        Standing {
            remaining: self.remaining(reading, now),
            reset: span(Self::delay(reading, now)),
        }
    }

    fn charge(&self, state: &mut WarmUpState, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let reading = self.read(state, now);
            Self::set(
                state,
                self.after(reading, cost),
                reading.stored == self.full,
            );
        }
    }

    /// Gives time back, at the rate of a warm one.
    fn refund(&self, state: &mut WarmUpState, cost: Units, now: Moment) {
        if cost == Units::ZERO {
            return;
        }
        let mut reading = self.read(state, now);
        let drops = cost.parts().saturating_mul(self.part);
        let nanos = i128::try_from(drops / self.fresh).unwrap_or(FOREVER);
        // Not before now.
        reading.free = (reading.free - nanos).max(i128::from(now.nanos()));
        Self::set(state, reading, reading.stored == self.full);
    }

    /// What is stored keeps its ratio; what is promised stays.
    fn change(&self, next: &Self, state: &mut WarmUpState, now: Moment) {
        if state.stored.is_none() {
            return;
        }
        let mut reading = self.read(state, now);
        Self::set(state, reading, reading.stored == self.full);
        let stored = state.rest.scale(reading.stored, next.full, self.full);
        reading.stored = stored.min(next.full);
        state.stored = Some(reading.stored);
    }

    fn is_fresh(&self, state: &WarmUpState, now: Moment) -> bool {
        let reading = self.read(state, now);
        reading.stored == self.full && Self::delay(reading, now) == 0
    }
}
