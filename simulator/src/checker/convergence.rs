//! Measures the time until clients are at rest after a shift: a change of demand or capacity, at one
//! instant, by more than 5 % of the capacity.
//!
//! Clients are at rest when their distance from the ideal is at most 1 % of what can be used,
//! whatever the usual distance is. A shift that comes before an earlier one is over belongs to it:
//! the time counts from the first shift to the rest after the last. A run that never comes to rest
//! therefore counts in full, and more shifts hide nothing.

use std::time::Duration;

use doorward_engine::time::Time;

use crate::checker::extreme::Extreme;

/// Smallest change that is a shift, as a part of the capacity.
const SHIFT: f64 = 0.05;

/// Largest distance at rest, as a part of what can be used.
const REST: f64 = 0.01;

/// Returns whether clients at that distance from the ideal are at rest.
pub(super) fn is_rest(unfair: f64, usable: f64) -> bool {
    unfair <= REST * usable
}

#[derive(Debug, Default)]
pub(super) struct Convergence {
    /// Start of the judged time.
    pub(super) settled_after: Time,
    /// Sum of the changes at the present instant.
    instant: Option<(Time, f64)>,
    /// Time of the first shift that is not over.
    pub(super) pending: Option<Time>,
    /// Number of finished shifts; overlapping ones count once.
    pub(super) shifts: usize,
    pub(super) total: Duration,
    /// Longest convergence, and when it began.
    pub(super) longest: Extreme<Duration>,
    /// Duration so far of the shift that was not over at the end.
    pub(super) unfinished: Duration,
}

impl Convergence {
    pub(super) fn note_change(&mut self, change: f64, capacity: f64, now: Time) {
        let (at, sum) = self.instant.get_or_insert((now, 0.0));
        if *at != now {
            (*at, *sum) = (now, 0.0);
        }
        *sum += change;
        if *sum > SHIFT * capacity {
            self.pending.get_or_insert(now);
        }
    }

    /// Notes the distance of all clients from the ideal.
    pub(super) fn settle(&mut self, unfair: f64, usable: f64, now: Time) {
        if let Some(since) = self.pending
            && is_rest(unfair, usable)
        {
            self.pending = None;
            self.count(since, now);
        }
    }

    /// Ends the run. A shift that is not over counts with the time so far.
    pub(super) fn finish(&mut self, now: Time) {
        let Some(since) = self.pending.take().filter(|since| now > *since) else {
            return;
        };
        self.count(since, now);
        self.unfinished = now.since(since.max(self.settled_after));
    }

    fn count(&mut self, since: Time, now: Time) {
        if now < self.settled_after {
            return;
        }
        let since = since.max(self.settled_after);
        let took = now.since(since);
        self.shifts += 1;
        self.total += took;
        self.longest.note(took, since);
    }
}

#[cfg(test)]
mod tests;
