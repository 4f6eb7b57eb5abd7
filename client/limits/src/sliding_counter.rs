//! Sliding counter: two numbers that approximate a sliding window.
//!
//! estimate = current + previous·(1 − position), where the position is the elapsed part of the present window. It
//! assumes that the use of the previous window was even. A take passes if ⌊estimate⌋ + cost ≤ limit. The estimate is
//! rounded down, so 6.5 of 7 and 49.5 of 50 let one more pass. Within any window's length, at most limit +
//! ⌈position·limit⌉ passes. Use of a window is forgotten after two windows. The state is two counters per key, whatever
//! the limit.
//!
//! With n parts of the window ([`SlidingCounter::in_parts`]), n + 1 counters estimate it: current, the n − 1 before it
//! in full, and the fading part of the oldest. So only the oldest part is assumed to be even.

use std::num::NonZeroU64;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Reason, Standing};
use crate::error::SettingsError;
use crate::moment::{Moment, span};
use crate::rate::Rate;

use crate::units::Units;
use crate::wide::{scaled_up, times_over};
use crate::window::length;

/// Counters for a sliding window of `N` parts: two for a window that is not divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingCounter<const N: usize = 1> {
    limit: Units,
    /// Length of a part of the window.
    part: NonZeroU64,
}

/// Counts of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, packed(8))]
pub struct SlidingCounterState<const N: usize = 1> {
    /// Count in the part of the latest change, in parts of a unit.
    current: u128,
    /// Counts in the parts before it, the latest first.
    earlier: [u128; N],
    /// Time of the latest change.
    at: Moment,
}

/// Counts at a moment.
#[derive(Clone, Copy, Debug)]
struct Reading<const N: usize> {
    current: u128,
    earlier: [u128; N],
    /// Elapsed nanoseconds of the part.
    position: u64,
    /// Delay of the clock behind the latest change.
    behind: u64,
}

impl<const N: usize> Reading<N> {
    /// Returns the count that is some parts old.
    #[inline]
    fn aged(&self, parts: usize) -> u128 {
        match parts.checked_sub(1) {
            None => self.current,
            Some(before) => self.earlier.get(before).copied().unwrap_or(0),
        }
    }

    /// Returns the sum of the counts that are fewer parts old.
    #[inline]
    fn younger(&self, parts: usize) -> u128 {
        (0..parts).fold(0, |sum: u128, age| sum.saturating_add(self.aged(age)))
    }

    fn is_zero(&self) -> bool {
        self.younger(N + 1) == 0
    }
}

impl SlidingCounter {
    /// Creates a limit of about the rate's amount in any of its periods.
    ///
    /// # Errors
    ///
    /// If the rate is by the calendar, whose windows do not slide.
    pub const fn new(rate: Rate) -> Result<Self, SettingsError> {
        Self::in_parts(rate)
    }
}

impl<const N: usize> SlidingCounter<N> {
    /// Creates the same with periods of `N` parts, at least one. A part is rounded up to a nanosecond.
    ///
    /// # Errors
    ///
    /// If the rate is by the calendar, whose windows do not slide.
    pub const fn in_parts(rate: Rate) -> Result<Self, SettingsError> {
        const { assert!(N > 0, "a window has one part at least") };
        match length(rate) {
            Ok(window) => Ok(Self {
                limit: rate.amount(),
                part: match NonZeroU64::new(window.get().div_ceil(N as u64)) {
                    Some(part) => part,
                    None => NonZeroU64::MIN,
                },
            }),
            Err(error) => Err(error),
        }
    }

    /// Returns the part of the window at a moment, counted from 1970, and its elapsed nanoseconds.
    #[inline]
    fn place(&self, now: Moment) -> (i128, u64) {
        let (now, window) = (i128::from(now.nanos()), i128::from(self.part.get()));
        let position = u64::try_from(now.rem_euclid(window)).unwrap_or(0);
        (now.div_euclid(window), position)
    }

    #[inline]
    fn read(&self, state: &SlidingCounterState<N>, now: Moment) -> Reading<N> {
        let latest = now.max(state.at);
        let ((window, position), (seen, _)) = (self.place(latest), self.place(state.at));
        let mut reading = Reading {
            current: state.current,
            earlier: state.earlier,
            position,
            behind: state.at.nanos_since(now),
        };
        if window != seen {
            let passed = usize::try_from(window - seen).unwrap_or(usize::MAX);
            let before = reading;
            let aged = |index: usize| before.aged((index + 1) - passed);
            reading.earlier = std::array::from_fn(|it| if it + 1 < passed { 0 } else { aged(it) });
            reading.current = 0;
        }
        reading
    }

    /// Returns the estimate in parts of a unit, rounded down.
    #[inline]
    fn estimate(&self, reading: &Reading<N>) -> u128 {
        let part = self.part.get();
        let left = u128::from(part - reading.position);
        let fading = times_over(reading.aged(N), left, u128::from(part)).0;
        reading.younger(N).saturating_add(fading)
    }

    /// If the estimate is above the limit: returns its new value and its present one, such that the debt keeps its
    /// amount.
    fn indebted(&self, reading: &Reading<N>, limit: u128, to: u128) -> Option<(u128, u128)> {
        let part = u128::from(self.part.get());
        let left = part - u128::from(reading.position);
        // In parts of a unit times the nanoseconds; without those if they do not fit.
        let exact = || {
            let fades = reading.aged(N).checked_mul(left)?;
            let estimate = reading.younger(N).checked_mul(part)?.checked_add(fades)?;
            Some((estimate, limit.checked_mul(part)?, to.checked_mul(part)?))
        };
        let (estimate, limit, to) = exact().unwrap_or((self.estimate(reading), limit, to));
        (estimate > limit).then(|| ((estimate - limit).saturating_add(to), estimate))
    }

    /// Returns the estimate in whole units, rounded down, as parts.
    #[inline]
    fn used(&self, reading: &Reading<N>) -> u128 {
        let unit = Units::ONE.parts();
        self.estimate(reading) / unit * unit
    }

    fn stands(&self, reading: &Reading<N>) -> Standing {
        let left = u128::from(self.part.get() - reading.position);
        // The estimate is 0 when the latest count is older than the window.
        let Some(age) = (0..=N).find(|age| reading.aged(*age) > 0) else {
            return self.unused();
        };
        let reset = left + u128::from(self.part.get()) * (N - age) as u128;
        Standing {
            remaining: Units::from_parts(self.limit.parts().saturating_sub(self.used(reading))),
            debt: Units::from_parts(self.used(reading).saturating_sub(self.limit.parts())),
            reset: span(reset + u128::from(reading.behind)),
        }
    }

    const fn unused(&self) -> Standing {
        Standing {
            remaining: self.limit,
            debt: Units::ZERO,
            reset: std::time::Duration::ZERO,
        }
    }

    /// Returns the time until the estimate is so low that the cost passes.
    fn wait(&self, reading: &Reading<N>, cost: Units) -> Decision {
        let part = u128::from(self.part.get());
        let unit = Units::ONE.parts();
        // The estimate must be below this.
        let room = self.limit.saturating_sub(cost).parts() / unit + 1;
        let room = room.saturating_mul(unit);
        // Returns the position from which the cost passes, if `stays` never fades and `fades` does.
        let position = |stays: u128, fades: u128| {
            let left = room.checked_sub(stays).filter(|left| *left > 0)?;
            let lasts = match fades {
                0 => part,
                fades => scaled_up(left, part, fades) - 1,
            };
            (lasts > 0).then(|| part.saturating_sub(lasts))
        };
        // The part, after a number of others, in which so much has faded; and the place in it.
        let mut parts = (0..=N).rev().enumerate();
        let place = parts.find_map(|(later, oldest)| {
            let position = position(reading.younger(oldest), reading.aged(oldest))?;
            Some(part * later as u128 + position)
        });
        let place = place.unwrap_or(part * (N as u128 + 1));
        let until = place.saturating_sub(u128::from(reading.position));
        Decision::After(span(until + u128::from(reading.behind)))
    }

    fn decide(&self, reading: &mut Reading<N>, cost: Units) -> Decision {
        if cost > self.limit {
            return Decision::Never(Reason::CostAboveLimit);
        }
        if self.used(reading).saturating_add(cost.parts()) > self.limit.parts() {
            return self.wait(reading, cost);
        }
        reading.current += cost.parts();
        Decision::Allowed(self.stands(reading).allowed())
    }

    /// Scales all counts, rounded up.
    fn scale(state: &mut SlidingCounterState<N>, by: u128, of: u128) {
        state.current = scaled_up(state.current, by, of);
        state.earlier = state.earlier.map(|count| scaled_up(count, by, of));
    }

    /// Sets the counts.
    fn set(state: &mut SlidingCounterState<N>, reading: &Reading<N>, now: Moment) {
        state.current = reading.current;
        state.earlier = reading.earlier;
        state.at = state.at.max(now);
    }
}

impl<const N: usize> Algorithm for SlidingCounter<N> {
    type State = SlidingCounterState<N>;

    fn limit(&self) -> Units {
        self.limit
    }

    fn fills(&self) -> u64 {
        self.part.get().saturating_mul(N as u64)
    }

    fn fresh(&self) -> SlidingCounterState<N> {
        SlidingCounterState {
            current: 0,
            earlier: [0; N],
            at: Moment::FIRST,
        }
    }

    #[inline]
    fn take(&self, state: &mut SlidingCounterState<N>, cost: Units, now: Moment) -> Decision {
        let mut reading = self.read(state, now);
        let decision = self.decide(&mut reading, cost);
        if decision.is_allowed() && cost > Units::ZERO {
            Self::set(state, &reading, now);
        }
        decision
    }

    fn standing(&self, state: &SlidingCounterState<N>, now: Moment) -> Standing {
        self.stands(&self.read(state, now))
    }

    fn charge(&self, state: &mut SlidingCounterState<N>, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let mut reading = self.read(state, now);
            reading.current = reading.current.saturating_add(cost.parts());
            Self::set(state, &reading, now);
        }
    }

    fn refund(&self, state: &mut SlidingCounterState<N>, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let mut reading = self.read(state, now);
            let back = cost.parts();
            let counts = std::iter::once(&mut reading.current).chain(&mut reading.earlier);
            counts.fold(back, |back, count| {
                let more = back.saturating_sub(*count);
                *count = count.saturating_sub(back);
                more
            });
            Self::set(state, &reading, now);
        }
    }

    fn change(&self, next: &Self, state: &mut SlidingCounterState<N>, now: Moment) {
        let reading = self.read(state, now);
        Self::set(state, &reading, now);
        let (limit, to) = (self.limit.parts(), next.limit.parts());
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
        if next.part != self.part {
            // The use counts as if it had just come, so that nothing bursts.
            let counts = state.earlier.into_iter();
            state.current = counts.fold(state.current, u128::saturating_add);
            state.earlier = [0; N];
        }
    }

    fn is_fresh(&self, state: &SlidingCounterState<N>, now: Moment) -> bool {
        self.read(state, now).is_zero()
    }
}
