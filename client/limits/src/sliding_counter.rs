//! Sliding counter: two numbers that stand for a sliding window.
//!
//! estimate = current + previous·(1 − position), where the position is how much of the present window is over: as if
//! what the window before used had come evenly. A take passes if ⌊estimate⌋ + cost ≤ limit. Rounded down, so that 6.5 of 7
//! and 49.5 of 50 let one more pass. What passes within any window's length is at most limit + ⌈position·limit⌉; a
//! window later, all is forgotten. Two counters a key, whatever the limit.

use std::num::NonZeroU64;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Reason, Standing};
use crate::error::SettingsError;
use crate::flow::gcd;
use crate::moment::{Moment, span};
use crate::rate::Rate;
use crate::rest::{scaled_up, times_over};
use crate::units::Units;
use crate::window::length;

/// Two counters for a sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingCounter {
    limit: Units,
    window: NonZeroU64,
}

/// What was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingCounterState {
    /// In the window of the latest change, in grains.
    current: u128,
    /// In the window before.
    previous: u128,
    /// The latest change.
    at: Moment,
    /// Grains that are one part of a unit: more than 1 if a change of limit led to fractions.
    grains: NonZeroU64,
}

/// Counts at a moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    current: u128,
    previous: u128,
    /// Nanoseconds of the window that are over.
    position: u64,
    grains: u128,
    /// How far the clock is behind the latest change.
    behind: u64,
}

/// Grains of a part at most, so that counts with them fit.
const GRAINS_MAX: u128 = 1 << 30;

/// What is counted at most, in grains: a debt that no window can hold.
const COUNT_MAX: u128 = 1 << 126;

impl SlidingCounter {
    /// The rate's amount in about any of its periods.
    ///
    /// # Errors
    ///
    /// If the rate is by the calendar, whose windows do not slide.
    pub const fn new(rate: Rate) -> Result<Self, SettingsError> {
        match length(rate) {
            Ok(window) => Ok(Self {
                limit: rate.amount(),
                window,
            }),
            Err(error) => Err(error),
        }
    }

    /// The window of a moment, counted from 1970, and how much of it is over.
    #[inline]
    fn place(&self, now: Moment) -> (i128, u64) {
        let (now, window) = (i128::from(now.nanos()), i128::from(self.window.get()));
        let position = u64::try_from(now.rem_euclid(window)).unwrap_or(0);
        (now.div_euclid(window), position)
    }

    #[inline]
    fn read(&self, state: &SlidingCounterState, now: Moment) -> Reading {
        let latest = now.max(state.at);
        let ((window, position), (seen, _)) = (self.place(latest), self.place(state.at));
        let (current, previous) = match window - seen {
            0 => (state.current, state.previous),
            1 => (0, state.current),
            _ => (0, 0),
        };
        Reading {
            current,
            previous,
            position,
            grains: u128::from(state.grains.get()),
            behind: state.at.nanos_since(now),
        }
    }

    /// The estimate in grains, rounded down.
    #[inline]
    fn estimate(&self, reading: &Reading) -> u128 {
        let window = self.window.get();
        let left = u128::from(window - reading.position);
        reading
            .current
            .saturating_add(times_over(reading.previous, left, u128::from(window)).0)
    }

    /// The estimate in whole units, rounded down, as parts.
    #[inline]
    fn used(&self, reading: &Reading) -> u128 {
        let unit = Units::ONE.parts();
        self.estimate(reading) / (unit * reading.grains) * unit
    }

    fn stands(&self, reading: &Reading) -> Standing {
        let left = u128::from(self.window.get() - reading.position);
        // The estimate is 0 when the counts are two windows old.
        let reset = match (reading.current, reading.previous) {
            (0, 0) => return self.unused(),
            (0, _) => left,
            _ => left + u128::from(self.window.get()),
        };
        Standing {
            remaining: Units::from_parts(self.limit.parts().saturating_sub(self.used(reading))),
            reset: span(reset + u128::from(reading.behind)),
        }
    }

    const fn unused(&self) -> Standing {
        Standing {
            remaining: self.limit,
            reset: std::time::Duration::ZERO,
        }
    }

    /// How long until the estimate is so low that the cost passes.
    fn wait(&self, reading: &Reading, cost: Units) -> Decision {
        let window = u128::from(self.window.get());
        let unit = Units::ONE.parts();
        // The estimate must be below this, in grains.
        let room = self.limit.saturating_sub(cost).parts() / unit + 1;
        let room = room.saturating_mul(unit * reading.grains);
        // From which position on, if so much counts for ever and so much fades.
        let position = |stays: u128, fades: u128| {
            let left = room.checked_sub(stays).filter(|left| *left > 0)?;
            let lasts = match fades {
                0 => window,
                fades => scaled_up(left, window, fades) - 1,
            };
            (lasts > 0).then(|| window.saturating_sub(lasts))
        };
        let in_window = u128::from(reading.position);
        let until = match position(reading.current, reading.previous) {
            Some(position) => position.saturating_sub(in_window),
            None => {
                let next = position(0, reading.current).unwrap_or(window);
                (window - in_window) + next
            }
        };
        Decision::After(span(until + u128::from(reading.behind)))
    }

    fn decide(&self, reading: &mut Reading, cost: Units) -> Decision {
        if cost > self.limit {
            return Decision::Never(Reason::CostAboveLimit);
        }
        if self.used(reading).saturating_add(cost.parts()) > self.limit.parts() {
            return self.wait(reading, cost);
        }
        reading.current += cost.parts() * reading.grains;
        Decision::Allowed(self.stands(reading).allowed())
    }

    /// So much is counted from now on.
    fn set(state: &mut SlidingCounterState, reading: &Reading, now: Moment) {
        state.current = reading.current.min(COUNT_MAX);
        state.previous = reading.previous;
        state.at = state.at.max(now);
        if (reading.current, reading.previous) == (0, 0) {
            state.grains = NonZeroU64::MIN;
        }
    }
}

/// Both counts times `by`/`of`, in grains that are fine enough; rounded up if there is no such grain.
fn scale(state: &mut SlidingCounterState, by: u128, of: u128) {
    let common = gcd(by, of).max(1);
    let (by, of) = (by / common, of / common);
    let grains = u128::from(state.grains.get());
    let finer = (
        grains * of.min(GRAINS_MAX + 1),
        state.current.checked_mul(by),
        state.previous.checked_mul(by),
    );
    if let (grains @ 1.., Some(current), Some(previous)) = finer {
        let common = gcd(gcd(current, previous), grains).max(1);
        let (current, previous, grains) = (current / common, previous / common, grains / common);
        if of <= GRAINS_MAX && grains <= GRAINS_MAX && current.max(previous) <= COUNT_MAX {
            (state.current, state.previous) = (current, previous);
            state.grains = u64::try_from(grains)
                .ok()
                .and_then(NonZeroU64::new)
                .unwrap_or(NonZeroU64::MIN);
            return;
        }
    }
    state.current = scaled_up(state.current, by, of).min(COUNT_MAX);
    state.previous = scaled_up(state.previous, by, of).min(COUNT_MAX);
}

impl Algorithm for SlidingCounter {
    type State = SlidingCounterState;

    fn limit(&self) -> Units {
        self.limit
    }

    fn fresh(&self) -> SlidingCounterState {
        SlidingCounterState {
            current: 0,
            previous: 0,
            at: Moment::FIRST,
            grains: NonZeroU64::MIN,
        }
    }

    #[inline]
    fn take(&self, state: &mut SlidingCounterState, cost: Units, now: Moment) -> Decision {
        let mut reading = self.read(state, now);
        let decision = self.decide(&mut reading, cost);
        if decision.is_allowed() && cost > Units::ZERO {
            Self::set(state, &reading, now);
        }
        decision
    }

    fn standing(&self, state: &SlidingCounterState, now: Moment) -> Standing {
        self.stands(&self.read(state, now))
    }

    fn charge(&self, state: &mut SlidingCounterState, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let mut reading = self.read(state, now);
            reading.current = reading
                .current
                .saturating_add(cost.parts() * reading.grains);
            Self::set(state, &reading, now);
        }
    }

    fn refund(&self, state: &mut SlidingCounterState, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let mut reading = self.read(state, now);
            let back = cost.parts() * reading.grains;
            let more = back.saturating_sub(reading.current);
            reading.current = reading.current.saturating_sub(back);
            reading.previous = reading.previous.saturating_sub(more);
            Self::set(state, &reading, now);
        }
    }

    fn change(&self, next: &Self, state: &mut SlidingCounterState, now: Moment) {
        let reading = self.read(state, now);
        Self::set(state, &reading, now);
        let (limit, to) = (self.limit.parts(), next.limit.parts());
        let estimate = self.estimate(&reading);
        let grains = u128::from(state.grains.get());
        match (limit * grains, to * grains) {
            (limit, to) if limit == to => {}
            // A debt, of an amount that stays.
            (limit, to) if estimate > limit => scale(state, to + (estimate - limit), estimate),
            // Nothing was available, and nothing is.
            (0, to) => state.current = to,
            (limit, to) => scale(state, to, limit),
        }
        if next.window != self.window {
            // What counted counts as if it had just come, so that nothing bursts.
            state.current = state.current.saturating_add(state.previous).min(COUNT_MAX);
            state.previous = 0;
        }
    }

    fn is_fresh(&self, state: &SlidingCounterState, now: Moment) -> bool {
        let reading = self.read(state, now);
        (reading.current, reading.previous) == (0, 0)
    }
}
