//! For whom there is something, by priority: who has nothing is starved only if there is something
//! for it.
//!
//! With PRIORITY_BANDS those with a higher priority may take all. What is left for each priority
//! follows from what each wants together, so it is known at every instant without going over all
//! clients.

use std::collections::BTreeMap;

use doorward_engine::amount::Amount;
use doorward_engine::exact_sum::ExactSum;
use doorward_engine::template::{Algorithm, AlgorithmKind};
use doorward_engine::time::Time;

use crate::checker::ROUNDING;

#[derive(Debug, Default)]
struct Band {
    wants: ExactSum,
    /// Since when there is something for it.
    since: Option<Time>,
}

#[derive(Debug, Default)]
pub(super) struct Bands {
    bands: BTreeMap<i64, Band>,
}

impl Bands {
    /// Somebody of that priority wants something else.
    pub(super) fn note_wants(&mut self, priority: i64, before: Amount, after: Amount) {
        let band = self.bands.entry(priority).or_default();
        band.wants.replace(before, after);
    }

    /// Since when there is something for those of that priority.
    pub(super) fn since(&self, priority: i64) -> Option<Time> {
        self.bands.get(&priority)?.since
    }

    /// What is wanted, or there, has changed. Returns the priorities for which there is nothing any
    /// more, and since when there was.
    pub(super) fn look(
        &mut self,
        algorithm: &Algorithm,
        capacity: f64,
        now: Time,
    ) -> Vec<(i64, Time)> {
        let by_priority = algorithm.kind == AlgorithmKind::PriorityBands;
        let is_unlimited = algorithm.kind == AlgorithmKind::NoAlgorithm;
        let sure = |priority: i64| {
            let part = algorithm.min_shares.get(&priority).copied();
            part.unwrap_or(0.0) * capacity
        };
        let mut left = capacity;
        if by_priority {
            for (priority, band) in &self.bands {
                left -= band.wants.rounded_down().min(sure(*priority));
            }
        }
        let mut gone = Vec::new();
        for (priority, band) in self.bands.iter_mut().rev() {
            let sure = if by_priority { sure(*priority) } else { 0.0 };
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
