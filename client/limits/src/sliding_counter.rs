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
use crate::grains::{COUNT_MAX, Grains, Scaling, coarser};
use crate::moment::{Moment, span};
use crate::rate::Rate;

use crate::units::Units;
use crate::wide::{scaled_up, times_over};
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
    grains: Grains,
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

    /// If the estimate is above the limit: what it is to become, and what it is, so that the debt stays.
    fn indebted(&self, reading: &Reading, limit: u128, to: u128) -> Option<(u128, u128)> {
        let window = u128::from(self.window.get());
        let left = window - u128::from(reading.position);
        // In parts of a grain of which a window's nanoseconds are one; in grains if those do not fit.
        let exact = || {
            let fades = reading.previous.checked_mul(left)?;
            let estimate = reading.current.checked_mul(window)?.checked_add(fades)?;
            Some((
                estimate,
                limit.checked_mul(window)?,
                to.checked_mul(window)?,
            ))
        };
        let (estimate, limit, to) = exact().unwrap_or((self.estimate(reading), limit, to));
        (estimate > limit).then(|| ((estimate - limit).saturating_add(to), estimate))
    }

    /// The estimate in whole units, rounded down, as parts.
    #[inline]
    fn used(&self, reading: &Reading) -> u128 {
        let unit = Units::ONE.parts();
        self.estimate(reading) / reading.grains / unit * unit
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
        let room = room.saturating_mul(unit).saturating_mul(reading.grains);
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

    fn apply(state: &mut SlidingCounterState, scaling: Scaling) {
        let (current, previous) = (scaling.of(state.current), scaling.of(state.previous));
        let (common, grains) = coarser(scaling.grains, [current, previous]);
        state.current = current / common;
        state.previous = previous / common;
        state.grains = grains;
    }

    /// So much is counted from now on.
    fn set(state: &mut SlidingCounterState, reading: &Reading, now: Moment) {
        state.current = reading.current.min(COUNT_MAX);
        state.previous = reading.previous;
        state.at = state.at.max(now);
        if (reading.current, reading.previous) == (0, 0) {
            state.grains = Grains::MIN;
        }
    }
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
            grains: Grains::MIN,
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
                .saturating_add(cost.parts().saturating_mul(reading.grains));
            Self::set(state, &reading, now);
        }
    }

    fn refund(&self, state: &mut SlidingCounterState, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let mut reading = self.read(state, now);
            let back = cost.parts().saturating_mul(reading.grains);
            let more = back.saturating_sub(reading.current);
            reading.current = reading.current.saturating_sub(back);
            reading.previous = reading.previous.saturating_sub(more);
            Self::set(state, &reading, now);
        }
    }

    fn change(&self, next: &Self, state: &mut SlidingCounterState, now: Moment) {
        let reading = self.read(state, now);
        Self::set(state, &reading, now);
        let most = self.limit.max(next.limit).parts();
        if let Some(scaling) = Scaling::to_parts(state.grains, most) {
            Self::apply(state, scaling);
        }
        let reading = self.read(state, now);
        let (limit, to) = (self.limit.parts(), next.limit.parts());
        let largest = state.current.max(state.previous);
        let scaling = |by, of| Scaling::new(state.grains, by, of, largest, most);
        if limit == to {
            // Nothing changes.
        } else if let Some((by, of)) =
            self.indebted(&reading, limit * reading.grains, to * reading.grains)
        {
            Self::apply(state, scaling(by, of));
        } else if limit == 0 {
            // Nothing was available, and nothing is.
            state.current = to;
        } else {
            Self::apply(state, scaling(to, limit));
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
