//! Sliding log: so many within any window, exactly.
//!
//! Every request is remembered for one window, [t, t + window): the sum of what is remembered never exceeds the limit.
//! No window, wherever it begins, sees more; the price is the memory: 8 bytes a request of cost 1, 24 if costs differ.
//! So it is for small limits whose exactness matters, such as log-ins.

use std::collections::VecDeque;
use std::num::NonZeroU64;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Reason, Standing};
use crate::error::SettingsError;
use crate::moment::{Moment, span};
use crate::rate::Rate;
use crate::rest::scaled_up;
use crate::units::Units;
use crate::window::{length, nanos_until};

/// So many within any window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingLog {
    limit: Units,
    window: NonZeroU64,
}

/// What is remembered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlidingLogState {
    entries: Entries,
    /// The latest change.
    at: Moment,
    /// What the entries were before the limit changed, and by which limit, until something else happens.
    before: Option<Box<(Units, Entries)>>,
}

/// Requests, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Entries {
    times: VecDeque<Moment>,
    /// As long as the times, or empty if every cost is 1.
    costs: VecDeque<u128>,
    sum: u128,
}

impl SlidingLog {
    /// The rate's amount within any of its periods.
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

    /// When a request of that time no longer counts.
    #[inline]
    fn end_of(&self, time: Moment) -> i128 {
        i128::from(time.nanos()) + i128::from(self.window.get())
    }

    /// How many of the oldest entries no longer count.
    fn over(&self, state: &SlidingLogState, now: Moment) -> usize {
        let now = i128::from(now.max(state.at).nanos());
        let times = &state.entries.times;
        // Mostly few are over: look at the oldest first.
        match times.front() {
            Some(time) if self.end_of(*time) <= now => {
                times.partition_point(|time| self.end_of(*time) <= now)
            }
            _ => 0,
        }
    }

    /// What counts, once so many of the oldest entries do not.
    fn used(state: &SlidingLogState, over: usize) -> u128 {
        if over == state.entries.times.len() {
            return 0;
        }
        let gone: u128 = (0..over).map(|it| state.entries.cost(it)).sum();
        state.entries.sum.saturating_sub(gone)
    }

    fn stands(&self, used: u128, last: Option<Moment>, now: Moment) -> Standing {
        Standing {
            remaining: Units::from_parts(self.limit.parts().saturating_sub(used)),
            reset: last.map_or_else(Default::default, |time| {
                span(nanos_until(self.end_of(time), now))
            }),
        }
    }

    /// When so much more than the limit is used, how long until it is not.
    fn wait(&self, state: &SlidingLogState, over: usize, excess: u128, now: Moment) -> Decision {
        let mut freed = 0_u128;
        for (index, time) in state.entries.times.iter().enumerate().skip(over) {
            freed = freed.saturating_add(state.entries.cost(index));
            if freed >= excess {
                return Decision::After(span(nanos_until(self.end_of(*time), now)));
            }
        }
        // The cost alone is above the limit, and that was refused before.
        Decision::Never(Reason::CostAboveLimit)
    }

    /// What is answered, and how many entries are over.
    fn decide(&self, state: &SlidingLogState, cost: Units, now: Moment) -> (Decision, usize) {
        let over = self.over(state, now);
        if cost > self.limit {
            return (Decision::Never(Reason::CostAboveLimit), over);
        }
        let used = Self::used(state, over).saturating_add(cost.parts());
        if used > self.limit.parts() {
            let excess = used - self.limit.parts();
            return (self.wait(state, over, excess, now), over);
        }
        let last = if cost > Units::ZERO {
            Some(now.max(state.at))
        } else {
            state.entries.times.back().copied()
        };
        let last = last.filter(|_| used > 0);
        (
            Decision::Allowed(self.stands(used, last, now).allowed()),
            over,
        )
    }

    /// Something is to change: what is over goes.
    fn prune(state: &mut SlidingLogState, over: usize, now: Moment) {
        state.entries.forget(over);
        state.at = state.at.max(now);
        state.before = None;
    }

    fn log(&self, state: &mut SlidingLogState, cost: Units) {
        let most = usize::try_from(self.limit.floor()).unwrap_or(usize::MAX);
        state.entries.add(state.at, cost.parts(), most);
    }
}

impl Entries {
    fn cost(&self, index: usize) -> u128 {
        self.costs.get(index).copied().unwrap_or(Units::ONE.parts())
    }

    fn add(&mut self, time: Moment, cost: u128, most: usize) {
        let costs_differ = cost != Units::ONE.parts();
        if costs_differ && self.costs.is_empty() {
            let ones = self.times.iter().map(|_| Units::ONE.parts());
            self.costs = ones.collect();
        }
        if costs_differ || !self.costs.is_empty() {
            self.costs.push_back(cost);
        }
        // A quarter more at a time, and no more than the limit takes, so that little is reserved for nothing.
        let (count, room) = (self.times.len(), self.times.capacity());
        if count == room {
            let more = (count / 4 + 4).min(most.saturating_sub(count)).max(1);
            self.times.reserve_exact(more);
        }
        self.times.push_back(time);
        self.sum = self.sum.saturating_add(cost);
    }

    /// So many of the oldest go.
    fn forget(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let gone: u128 = (0..count).map(|it| self.cost(it)).sum();
        self.sum = self.sum.saturating_sub(gone);
        self.times.drain(..count.min(self.times.len()));
        self.costs.drain(..count.min(self.costs.len()));
        if self.times.is_empty() {
            *self = Self::default();
        } else if self.times.len() < self.times.capacity() / 4 {
            self.times.shrink_to(self.times.len() * 2);
            self.costs.shrink_to(self.costs.len() * 2);
        }
    }

    /// Takes so much from the newest.
    fn refund(&mut self, mut parts: u128) {
        while parts > 0
            && let Some(time) = self.times.pop_back()
        {
            let cost = self.costs.pop_back().unwrap_or(Units::ONE.parts());
            self.sum = self.sum.saturating_sub(cost);
            if cost > parts {
                self.add(time, cost - parts, 0);
            }
            parts = parts.saturating_sub(cost);
        }
    }

    /// All times `by`/`of`. What is left of them as the oldest go is rounded up, whenever that is.
    fn scaled(mut self, by: u128, of: u128) -> Self {
        let (mut sum, mut scaled_sum) = (0_u128, 0);
        let mut costs = VecDeque::with_capacity(self.times.len());
        for index in (0..self.times.len()).rev() {
            sum = sum.saturating_add(self.cost(index));
            let scaled = scaled_up(sum, by, of);
            costs.push_front(scaled - scaled_sum);
            scaled_sum = scaled;
        }
        self.costs = costs;
        self.sum = scaled_sum;
        self
    }
}

impl Algorithm for SlidingLog {
    type State = SlidingLogState;

    fn limit(&self) -> Units {
        self.limit
    }

    fn fresh(&self) -> SlidingLogState {
        SlidingLogState {
            entries: Entries::default(),
            at: Moment::FIRST,
            before: None,
        }
    }

    fn take(&self, state: &mut SlidingLogState, cost: Units, now: Moment) -> Decision {
        let (decision, over) = self.decide(state, cost, now);
        if decision.is_allowed() && cost > Units::ZERO {
            Self::prune(state, over, now);
            self.log(state, cost);
        }
        decision
    }

    fn peek(&self, state: &SlidingLogState, cost: Units, now: Moment) -> Decision {
        self.decide(state, cost, now).0
    }

    fn standing(&self, state: &SlidingLogState, now: Moment) -> Standing {
        let used = Self::used(state, self.over(state, now));
        let last = state.entries.times.back().filter(|_| used > 0);
        self.stands(used, last.copied(), now)
    }

    fn charge(&self, state: &mut SlidingLogState, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            Self::prune(state, self.over(state, now), now);
            self.log(state, cost);
        }
    }

    fn refund(&self, state: &mut SlidingLogState, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            Self::prune(state, self.over(state, now), now);
            state.entries.refund(cost.parts());
        }
    }

    fn change(&self, next: &Self, state: &mut SlidingLogState, now: Moment) {
        let over = self.over(state, now);
        state.entries.forget(over);
        state.at = state.at.max(now);
        let entries = std::mem::take(&mut state.entries);
        let before = match state.before.take() {
            Some(mut before) => {
                before.1.forget(over);
                before
            }
            None => Box::new((self.limit, entries)),
        };
        let (limit, of) = (before.0.parts(), before.1.sum);
        let to = next.limit.parts();
        if to == limit {
            state.entries = before.1;
        } else if of > limit {
            // A debt, of an amount that stays.
            let by = to.saturating_add(of - limit);
            state.entries = before.1.clone().scaled(by, of);
            state.before = Some(before);
        } else if limit == 0 {
            // Nothing was available, and nothing is.
            state.entries.add(state.at, to, 0);
        } else if to > 0 {
            state.entries = before.1.clone().scaled(to, limit);
            state.before = Some(before);
        }
    }

    fn is_fresh(&self, state: &SlidingLogState, now: Moment) -> bool {
        Self::used(state, self.over(state, now)) == 0
    }
}
