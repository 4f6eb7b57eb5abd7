//! Sliding log: a limit within any window, exactly.
//!
//! Every request is stored for one window, [t, t + window), and the sum of the stored requests never exceeds the limit.
//! So no window, wherever it begins, has more. The price is memory: 8 bytes for a request of cost 1, 24 if costs
//! differ. Charges beyond the limit take no more memory than requests up to it, or than a thousand requests. Use it for
//! small limits whose exactness matters, such as log-ins.

use std::collections::VecDeque;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Reason, Standing};
use crate::moment::{Moment, span};
use crate::rate::Rate;
use crate::units::Units;
use crate::wide::scaled_up;
use crate::window::nanos_until;

/// A limit within any window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingLog {
    rate: Rate,
}

/// Stored requests of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlidingLogState {
    entries: Entries,
    /// Time of the latest change.
    at: Moment,
}

/// Number of entries up to which a log in debt keeps all of them.
const OWED_MAX: usize = 1_024;

/// Cost of a usual request, in parts.
const ONE: u128 = Units::ONE.parts();

/// Requests, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entries {
    times: VecDeque<Moment>,
    /// Costs in parts of a unit, one for each time; empty if every cost is 1.
    costs: VecDeque<u128>,
    sum: u128,
}

impl SlidingLog {
    /// Creates a limit of the rate's amount within any of its periods.
    pub const fn new(rate: Rate) -> Self {
        Self { rate }
    }

    /// Returns the time from which a request of `time` no longer counts.
    #[inline]
    fn end_of(&self, time: Moment) -> i128 {
        i128::from(time.nanos()) + i128::from(self.rate.period().get())
    }

    /// Returns the number of the oldest entries that no longer count.
    fn over(&self, state: &SlidingLogState, now: Moment) -> usize {
        let now = i128::from(now.max(state.at).nanos());
        let times = &state.entries.times;
        // Usually few are over, so the search begins at the oldest.
        match times.front() {
            Some(time) if self.end_of(*time) <= now => {
                times.partition_point(|time| self.end_of(*time) <= now)
            }
            _ => 0,
        }
    }

    /// Returns the sum without the oldest `over` entries.
    fn used(state: &SlidingLogState, over: usize) -> u128 {
        if over == state.entries.times.len() {
            return 0;
        }
        let gone: u128 = (0..over).map(|it| state.entries.cost(it)).sum();
        state.entries.sum.saturating_sub(gone)
    }

    fn stands(&self, used: u128, last: Option<Moment>, now: Moment) -> Standing {
        let reset = last.map_or(0, |time| nanos_until(self.end_of(time), now));
        Standing::of_used(used, self.limit(), span(reset))
    }

    /// Returns the time until an excess above the limit is over.
    fn wait(&self, state: &SlidingLogState, over: usize, excess: u128, now: Moment) -> Decision {
        let mut freed = 0_u128;
        for (index, time) in state.entries.times.iter().enumerate().skip(over) {
            freed = freed.saturating_add(state.entries.cost(index));
            if freed >= excess {
                return Decision::After(span(nanos_until(self.end_of(*time), now)));
            }
        }
        // Only a cost above the limit gets here, and that was already refused.
        Decision::Never(Reason::CostAboveLimit)
    }

    /// Returns the decision, and the number of entries that are over.
    fn decide(&self, state: &SlidingLogState, cost: Units, now: Moment) -> (Decision, usize) {
        let over = self.over(state, now);
        if cost > self.limit() {
            return (Decision::Never(Reason::CostAboveLimit), over);
        }
        let used = Self::used(state, over).saturating_add(cost.parts());
        if used > self.limit().parts() {
            let excess = used - self.limit().parts();
            return (self.wait(state, over, excess, now), over);
        }
        let last = match cost {
            Units::ZERO => state.entries.times.back().copied(),
            _ => Some(now.max(state.at)),
        };
        let last = last.filter(|_| used > 0);
        let allowed = self.stands(used, last, now).allowed();
        (Decision::Allowed(allowed), over)
    }

    /// Removes the entries that are over, before a change.
    fn prune(state: &mut SlidingLogState, over: usize, now: Moment) {
        state.entries.forget(over);
        state.at = state.at.max(now);
    }

    fn log(&self, state: &mut SlidingLogState, cost: Units) {
        let most = usize::try_from(self.limit().floor()).unwrap_or(usize::MAX);
        state.entries.add(state.at, cost.parts(), most);
    }
}

impl Entries {
    const NONE: Self = Self {
        times: VecDeque::new(),
        costs: VecDeque::new(),
        sum: 0,
    };

    fn cost(&self, index: usize) -> u128 {
        self.costs.get(index).copied().unwrap_or(ONE)
    }

    fn add(&mut self, time: Moment, cost: u128, most: usize) {
        if cost != ONE {
            self.list_costs();
        }
        if cost != ONE || !self.costs.is_empty() {
            self.costs.push_back(cost);
        }
        // Grows by a quarter, and not beyond the limit, so that little memory is wasted.
        let (count, room) = (self.times.len(), self.times.capacity());
        if count == room {
            let more = (count / 4 + 4).min(most.saturating_sub(count)).max(1);
            self.times.reserve_exact(more);
        }
        self.times.push_back(time);
        self.sum = self.sum.saturating_add(cost);
    }

    /// Lists the costs, of which every one may have been 1.
    fn list_costs(&mut self) {
        if self.costs.is_empty() {
            self.costs = self.times.iter().map(|_| ONE).collect();
        }
    }

    /// Removes the oldest entries.
    fn forget(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let gone: u128 = (0..count).map(|it| self.cost(it)).sum();
        self.sum = self.sum.saturating_sub(gone);
        self.times.drain(..count.min(self.times.len()));
        self.costs.drain(..count.min(self.costs.len()));
        if self.times.is_empty() {
            *self = Self::NONE;
        } else if self.times.len() < self.times.capacity() / 4 {
            self.times.shrink_to(self.times.len() * 2);
            self.costs.shrink_to(self.costs.len() * 2);
        }
    }

    /// Merges the oldest entries of a long log in debt: those without which the rest is in debt as well, so that no
    /// request passes before the rest ends. Only a refund can show the difference: the merged ones stay until the
    /// newest of them ends.
    fn merge_owed(&mut self, limit: u128) {
        while self.times.len() > OWED_MAX {
            let oldest = self.cost(0);
            let both = oldest.saturating_add(self.cost(1));
            if self.sum.saturating_sub(both) <= limit {
                break;
            }
            self.list_costs();
            self.times.pop_front();
            self.costs.pop_front();
            if let Some(cost) = self.costs.front_mut() {
                *cost = cost.saturating_add(oldest);
            }
        }
    }

    /// Removes an amount from the newest entries.
    fn refund(&mut self, mut parts: u128) {
        while parts > 0
            && let Some(time) = self.times.pop_back()
        {
            let cost = self.costs.pop_back().unwrap_or(ONE);
            self.sum = self.sum.saturating_sub(cost);
            if cost > parts {
                self.add(time, cost - parts, 0);
            }
            parts = parts.saturating_sub(cost);
        }
    }

    /// Scales all entries. The sum of those that remain after any number of the oldest have left is rounded up.
    fn scale(&mut self, by: u128, of: u128) {
        let (mut sum, mut scaled_sum) = (0_u128, 0);
        let mut costs = VecDeque::with_capacity(self.times.len());
        for index in (0..self.times.len()).rev() {
            sum = sum.saturating_add(self.cost(index));
            let scaled = scaled_up(sum, by, of);
            costs.push_front(scaled - scaled_sum);
            scaled_sum = scaled;
        }
        (self.costs, self.sum) = (costs, scaled_sum);
    }
}

impl Algorithm for SlidingLog {
    type State = SlidingLogState;

    fn limit(&self) -> Units {
        self.rate.amount()
    }

    fn fills(&self) -> u64 {
        self.rate.period().get()
    }

    fn fresh(&self) -> SlidingLogState {
        SlidingLogState {
            entries: Entries::NONE,
            at: Moment::FIRST,
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
            state.entries.merge_owed(self.limit().parts());
        }
    }

    fn refund(&self, state: &mut SlidingLogState, cost: Units, now: Moment) {
        if cost > Units::ZERO {
            Self::prune(state, self.over(state, now), now);
            state.entries.refund(cost.parts());
        }
    }

    fn change(&self, next: &Self, state: &mut SlidingLogState, now: Moment) {
        Self::prune(state, self.over(state, now), now);
        let (limit, to) = (self.limit().parts(), next.limit().parts());
        let (used, entries) = (state.entries.sum, &mut state.entries);
        if limit == to {
            // The limit is the same.
        } else if used > limit {
            // A debt keeps its amount.
            entries.scale(to.saturating_add(used - limit), used);
        } else if limit == 0 {
            // Nothing was available, and nothing is.
            entries.add(state.at, to, 0);
        } else {
            entries.scale(to, limit);
        }
    }

    fn is_fresh(&self, state: &SlidingLogState, now: Moment) -> bool {
        Self::used(state, self.over(state, now)) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_log_in_debt_keeps_no_more_entries_than_decide() {
        let log = SlidingLog::new("2000/h".parse().unwrap());
        let (mut state, mut all) = (log.fresh(), VecDeque::new());
        for second in 0..3_000 {
            for _ in 0..10 {
                log.charge(&mut state, Units::ONE, at(second));
                all.push_back(at(second));
            }
        }
        let entries = &state.entries;
        assert!(entries.times.len() <= 2_003, "{}", entries.times.len());
        let standing = log.standing(&state, at(3_000));
        assert_eq!(standing.debt, Units::whole(28_000));
        // The wait is exact: the request passes when the newest 1,999 remain.
        let last = all[all.len() - 2_000];
        let wait = span(nanos_until(log.end_of(last), at(3_000)));
        let take = |state: &SlidingLogState, now| log.peek(state, Units::ONE, now);
        assert_eq!(take(&state, at(3_000)), Decision::After(wait));
        assert!(take(&state, at(3_000).after(wait)).is_allowed());
    }
}
