//! Sliding counter: two numbers that approximate a sliding window.
//!
//! estimate = current + previous·(1 − position), where the position is the elapsed part of the present window. It
//! assumes that the use of the previous window was even. A take passes if ⌊estimate⌋ + cost ≤ limit. The estimate is
//! rounded down, so 6.5 of 7 and 49.5 of 50 let one more pass. Within any window's length, at most limit +
//! ⌈position·limit⌉ passes. Use of a window is forgotten after two windows. The state is two counters per key, whatever
//! the limit.

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Reason, Standing};
use crate::moment::{Moment, span};
use crate::rate::Rate;

use crate::units::Units;
use crate::wide::{scaled_up, times_over};

/// Two counters for a sliding window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingCounter {
    rate: Rate,
}

/// Counts of one key, in parts of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, packed(8))]
pub struct SlidingCounterState {
    /// Count in the window of the latest change.
    current: u128,
    /// Count in the window before it.
    previous: u128,
    /// Time of the latest change.
    at: Moment,
}

/// Counts at a moment.
#[derive(Clone, Copy, Debug)]
struct Reading {
    current: u128,
    previous: u128,
    /// Elapsed nanoseconds of the window.
    position: u64,
    /// Delay of the clock behind the latest change.
    behind: u64,
}

impl SlidingCounter {
    /// Creates a limit of about the rate's amount in any of its periods.
    pub const fn new(rate: Rate) -> Self {
        Self { rate }
    }

    /// Returns the window of a moment, counted from 1970, and its elapsed nanoseconds.
    #[inline]
    fn place(&self, now: Moment) -> (i128, u64) {
        let window = i128::from(self.rate.period().get());
        let now = i128::from(now.nanos());
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
            behind: state.at.nanos_since(now),
        }
    }

    /// Returns the estimate in parts of a unit, rounded down.
    #[inline]
    fn estimate(&self, reading: &Reading) -> u128 {
        let window = self.rate.period().get();
        let left = u128::from(window - reading.position);
        let fading = times_over(reading.previous, left, u128::from(window)).0;
        reading.current.saturating_add(fading)
    }

    /// If the estimate is above the limit: returns its new value and its present one, such that the debt keeps its
    /// amount.
    fn indebted(&self, reading: &Reading, limit: u128, to: u128) -> Option<(u128, u128)> {
        let window = u128::from(self.rate.period().get());
        let left = window - u128::from(reading.position);
        // In parts of a unit times the nanoseconds; without those if they do not fit.
        let exact = || {
            let fades = reading.previous.checked_mul(left)?;
            let estimate = reading.current.checked_mul(window)?.checked_add(fades)?;
            let [limit, to] = [limit.checked_mul(window)?, to.checked_mul(window)?];
            Some((estimate, limit, to))
        };
        let (estimate, limit, to) = exact().unwrap_or((self.estimate(reading), limit, to));
        (estimate > limit).then(|| ((estimate - limit).saturating_add(to), estimate))
    }

    /// Returns the estimate in whole units, rounded down, as parts.
    #[inline]
    fn used(&self, reading: &Reading) -> u128 {
        let unit = Units::ONE.parts();
        self.estimate(reading) / unit * unit
    }

    fn stands(&self, reading: &Reading) -> Standing {
        let left = u128::from(self.rate.period().get() - reading.position);
        let left = left + u128::from(reading.behind);
        // The estimate is 0 when the counts are two windows old.
        let reset = match (reading.current, reading.previous) {
            (0, 0) => 0,
            (0, _) => left,
            _ => left + u128::from(self.rate.period().get()),
        };
        Standing::of_used(self.used(reading), self.limit(), span(reset))
    }

    /// Returns the time until the estimate is so low that the cost passes.
    fn wait(&self, reading: &Reading, cost: Units) -> Decision {
        let window = u128::from(self.rate.period().get());
        let unit = Units::ONE.parts();
        // The estimate must be below this.
        let room = self.limit().saturating_sub(cost).parts() / unit + 1;
        let room = room.saturating_mul(unit);
        // Returns the position from which the cost passes, if `stays` never fades and `fades` does.
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
        if cost > self.limit() {
            return Decision::Never(Reason::CostAboveLimit);
        }
        if self.used(reading).saturating_add(cost.parts()) > self.limit().parts() {
            return self.wait(reading, cost);
        }
        reading.current += cost.parts();
        Decision::Allowed(self.stands(reading).allowed())
    }

    /// Scales both counts, rounded up.
    fn scale(state: &mut SlidingCounterState, by: u128, of: u128) {
        state.current = scaled_up(state.current, by, of);
        state.previous = scaled_up(state.previous, by, of);
    }

    /// Sets the counts.
    fn set(state: &mut SlidingCounterState, reading: &Reading, now: Moment) {
        state.current = reading.current;
        state.previous = reading.previous;
        state.at = state.at.max(now);
    }
}

impl Algorithm for SlidingCounter {
    type State = SlidingCounterState;

    fn limit(&self) -> Units {
        self.rate.amount()
    }

    fn fills(&self) -> u64 {
        self.rate.period().get()
    }

    fn fresh(&self) -> SlidingCounterState {
        SlidingCounterState {
            current: 0,
            previous: 0,
            at: Moment::FIRST,
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
            reading.current = reading.current.saturating_add(cost.parts());
            Self::set(state, &reading, now);
        }
    }

    fn refund(&self, state: &mut SlidingCounterState, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let mut reading = self.read(state, now);
            let back = cost.parts();
            let more = back.saturating_sub(reading.current);
            reading.current = reading.current.saturating_sub(back);
            reading.previous = reading.previous.saturating_sub(more);
            Self::set(state, &reading, now);
        }
    }

    fn change(&self, next: &Self, state: &mut SlidingCounterState, now: Moment) {
        let reading = self.read(state, now);
        Self::set(state, &reading, now);
        let (limit, to) = (self.limit().parts(), next.limit().parts());
        if limit == to {
            // The limit is the same.
        } else if let Some((by, of)) = self.indebted(&reading, limit, to) {
            Self::scale(state, by, of);
        } else if limit == 0 {
            // Nothing was available, and nothing is.
            state.current = to;
        } else {
            Self::scale(state, to, limit);
        }
        if next.rate.period() != self.rate.period() {
            // The use counts as if it had just come, so that nothing bursts.
            state.current = state.current.saturating_add(state.previous);
            state.previous = 0;
        }
    }

    fn is_fresh(&self, state: &SlidingCounterState, now: Moment) -> bool {
        let reading = self.read(state, now);
        (reading.current, reading.previous) == (0, 0)
    }
}
