//! Measures how long clients have no lease although there is capacity for their priority.
//!
//! With PRIORITY_BANDS the clients of higher priority may take the whole capacity. The rest for
//! each priority follows from the total wants of each, so it is known at every instant without a
//! loop over all clients.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::exact_sum::ExactSum;
use doorward_engine::templates::{Algorithm, AlgorithmKind};
use doorward_engine::time::Time;

use crate::checker::{Extreme, ROUNDING, Watched};

#[derive(Debug, Default)]
struct Band {
    wants: ExactSum,
    /// Start of the time in which this priority can get something.
    since: Option<Time>,
}

#[derive(Debug, Default)]
pub(super) struct Starvation {
    pub(super) settled_after: Time,
    bands: BTreeMap<i64, Band>,
    /// Longest time without a lease, and when it ended.
    pub(super) longest: Extreme<Duration>,
}

impl Starvation {
    /// Notes changed wants of a client of that priority.
    pub(super) fn note_wants(&mut self, priority: i64, before: Amount, after: Amount) {
        let band = self.bands.entry(priority).or_default();
        band.wants.replace(before, after);
    }

    /// Returns the start of the time in which clients of that priority can get something.
    pub(super) fn since(&self, priority: i64) -> Option<Time> {
        self.bands.get(&priority)?.since
    }

    /// Notes that a client of that priority had no lease since `since`.
    pub(super) fn note(&mut self, since: Time, priority: i64, now: Time) {
        if let Some(something_since) = self.since(priority) {
            self.note_longest(since.max(something_since), now);
        }
    }

    fn note_longest(&mut self, since: Time, now: Time) {
        let lasted = now.since(since.max(self.settled_after));
        self.longest.note(lasted, now);
    }

    /// Recomputes which priorities can get something. Returns those that no longer can, and since
    /// when they could.
    fn look(&mut self, algorithm: &Algorithm, capacity: f64, now: Time) -> Vec<(i64, Time)> {
        let by_priority = algorithm.kind == AlgorithmKind::PriorityBands;
        let is_unlimited = algorithm.kind == AlgorithmKind::NoAlgorithm;
        let sure = |priority: &i64| {
            let part = algorithm.min_shares.get(priority).filter(|_| by_priority);
            part.copied().unwrap_or(0.0) * capacity
        };
        let mut left = capacity;
        for (priority, band) in &self.bands {
            left -= band.wants.rounded_down().min(sure(priority));
        }
        let mut gone = Vec::new();
        for (priority, band) in self.bands.iter_mut().rev() {
            let sure = sure(priority);
            let has_something = is_unlimited || left > capacity * ROUNDING || sure > 0.0;
            if by_priority {
                left -= (band.wants.rounded_down() - sure).max(0.0);
            }
            match (has_something, band.since) {
                (true, None) => band.since = Some(now),
                (false, Some(since)) => {
                    band.since = None;
                    gone.push((*priority, since));
                }
                _ => {}
            }
        }
        gone
    }
}

impl Watched {
    /// Recomputes which priorities can get something.
    pub(super) fn look_at_bands(&mut self, now: Time) {
        let capacity = self.capacity();
        for (priority, since) in self.starvation.look(&self.algorithm, capacity, now) {
            // Their clients still have nothing, but no longer count as starved. The loop runs only
            // if one of them may set a new maximum.
            if now.since(since.max(self.settled_after)) <= self.starvation.longest.value {
                continue;
            }
            let all = self.standings.iter().zip(self.accounts.iter());
            let of = all.filter(|(standing, _)| standing.wish.priority == priority);
            let first = of.filter_map(|(_, account)| account.hungry_since).min();
            if let Some(first) = first {
                self.starvation.note_longest(first.max(since), now);
            }
        }
    }
}
