//! Fixed window: a limit in each minute, hour or day of the clock.
//!
//! Windows are aligned to 1970 in UTC, as in envoyproxy/ratelimit. It is the cheapest algorithm and easy to understand, but
//! around a boundary twice the limit passes within any time, however short. A charge beyond the
//! limit ends with its window; a refund lowers the window in which it arrives.

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Reason, Standing};
use crate::moment::{Moment, span};
use crate::rate::Rate;
use crate::timeline::step_max;
use crate::units::Units;
use crate::wide::scaled;
use crate::window::{nanos_until, of_moment, start};

/// A limit in each window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    rate: Rate,
}

/// Use in the latest window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, packed(8))]
pub struct FixedWindowState {
    /// In parts of a unit.
    used: u128,
    window: i64,
}

impl FixedWindow {
    /// Creates a limit of the rate's amount in each of its periods.
    pub const fn new(rate: Rate) -> Self {
        Self { rate }
    }

    /// Returns the window that counts, and its use. It is the present window, or a later one that was seen. After a
    /// large step back, the present window has the use of the later one.
    #[inline]
    fn used(&self, state: &FixedWindowState, now: Moment) -> (i64, u128) {
        let window = of_moment(self.rate.period(), now);
        if window > state.window {
            (window, 0)
        } else if window < state.window && self.is_set_back(state.window, now) {
            (window, state.used)
        } else {
            (state.window, state.used)
        }
    }

    #[cold]
    fn is_set_back(&self, seen: i64, now: Moment) -> bool {
        let start = start(self.rate.period(), seen);
        nanos_until(start, now) > u128::from(step_max(self.rate.period().get()))
    }

    /// Returns the end of a window, in nanoseconds.
    #[inline]
    fn end(&self, window: i64) -> i128 {
        start(self.rate.period(), window) + i128::from(self.rate.period().get())
    }

    #[inline]
    fn stands(&self, window: i64, used: u128, now: Moment) -> Standing {
        let reset = span(nanos_until(self.end(window), now));
        Standing::of_used(used, self.limit(), reset)
    }

    /// Sets the use of a window.
    #[inline]
    fn set(state: &mut FixedWindowState, window: i64, used: u128) {
        state.window = window;
        state.used = used;
    }
}

impl Algorithm for FixedWindow {
    type State = FixedWindowState;

    fn limit(&self) -> Units {
        self.rate.amount()
    }

    /// Windows are aligned anew to a clock that is set back.
    fn fills(&self) -> u64 {
        u64::MAX
    }

    fn fresh(&self) -> FixedWindowState {
        FixedWindowState {
            used: 0,
            window: i64::MIN,
        }
    }

    #[inline]
    fn take(&self, state: &mut FixedWindowState, cost: Units, now: Moment) -> Decision {
        if cost > self.limit() {
            return Decision::Never(Reason::CostAboveLimit);
        }
        let (window, used) = self.used(state, now);
        let after = used.saturating_add(cost.parts());
        if after > self.limit().parts() {
            if window < state.window {
                Self::set(state, window, used);
            }
            return Decision::After(span(nanos_until(self.end(window), now)));
        }
        if cost > Units::ZERO {
            Self::set(state, window, after);
        }
        Decision::Allowed(self.stands(window, after, now).allowed())
    }

    fn standing(&self, state: &FixedWindowState, now: Moment) -> Standing {
        let (window, used) = self.used(state, now);
        self.stands(window, used, now)
    }

    fn charge(&self, state: &mut FixedWindowState, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let (window, used) = self.used(state, now);
            Self::set(state, window, used.saturating_add(cost.parts()));
        }
    }

    fn refund(&self, state: &mut FixedWindowState, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let (window, used) = self.used(state, now);
            Self::set(state, window, used.saturating_sub(cost.parts()));
        }
    }

    fn change(&self, next: &Self, state: &mut FixedWindowState, now: Moment) {
        let (window, used) = self.used(state, now);
        let (limit, to) = (self.limit().parts(), next.limit().parts());
        let used = match limit.checked_sub(used) {
            Some(there) => to - scaled(there, to, limit),
            // A debt keeps its amount.
            None => to.saturating_add(used - limit),
        };
        Self::set(state, window, used);
        if next.rate.period() != self.rate.period() {
            // Not before the window that was already seen.
            let seen = i64::try_from(start(self.rate.period(), window)).unwrap_or(i64::MIN);
            let now = now.max(Moment::from_nanos(seen));
            state.window = of_moment(next.rate.period(), now);
        }
    }

    fn is_fresh(&self, state: &FixedWindowState, now: Moment) -> bool {
        self.used(state, now).1 == 0
    }
}
