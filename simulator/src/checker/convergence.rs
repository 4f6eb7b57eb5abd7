//! How long it takes until all is at rest after a shift: a change, at one instant, of demand or
//! capacity by more than a twentieth of the capacity.
//!
//! At rest means: no further from the ideal than 1 % of what can be used, however far that usually
//! is. A shift that comes while an earlier one is not over belongs to it: the time counts from the
//! first to the rest after the last. So what never comes to rest counts for as long as it lasts, and
//! nothing is forgotten because more happens.

use std::time::Duration;

use doorward_engine::time::Time;

use crate::planted::{self, Blunt};
use crate::recording::Checker;

/// What makes a shift, as a part of the capacity.
const SHIFT: f64 = 0.05;

/// What is at rest, as a part of what can be used.
const REST: f64 = 0.01;

/// Whether all is at rest at that distance from the ideal.
pub(super) fn is_rest(unfair: f64, usable: f64) -> bool {
    unfair <= REST * usable
}

#[derive(Debug)]
pub(super) struct Convergence {
    /// What lies before this does not count.
    settled_after: Time,
    /// What has changed at the present instant.
    instant: Option<(Time, f64)>,
    /// When the first shift was that is not over.
    pending: Option<Time>,
    /// Those that are over; those that overlap are one.
    pub(super) shifts: usize,
    pub(super) total: Duration,
    /// The longest, and when it began.
    pub(super) longest: (Duration, Time),
    /// How long the last one had lasted when everything ended, if it was not over.
    pub(super) unfinished: Option<Duration>,
}

impl Convergence {
    pub(super) fn new(settled_after: Time) -> Self {
        Self {
            settled_after,
            instant: None,
            pending: None,
            shifts: 0,
            total: Duration::ZERO,
            longest: (Duration::ZERO, Time::ZERO),
            unfinished: None,
        }
    }

    pub(super) fn note_change(&mut self, change: f64, capacity: f64, now: Time) {
        let (at, sum) = self.instant.get_or_insert((now, 0.0));
        if *at != now {
            (*at, *sum) = (now, 0.0);
        }
        *sum += change;
        if *sum > SHIFT * capacity {
            if planted::is(Blunt::ConvergenceBeginsAnew) {
                self.pending = None;
            }
            self.pending.get_or_insert(now);
        }
    }

    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    /// All are that far from the ideal.
    pub(super) fn settle(&mut self, unfair: f64, usable: f64, now: Time) {
        if let Some(since) = self.pending
            && is_rest(unfair, usable)
        {
            self.pending = None;
            self.count(since, now);
        }
    }

    /// It is over. What is not at rest counts with the time it has had.
    pub(super) fn finish(&mut self, now: Time) {
        let Some(since) = self.pending.take().filter(|since| now > *since) else {
            return;
        };
        self.count(since, now);
        self.unfinished = Some(now.since(since.max(self.settled_after)));
    }

    fn count(&mut self, since: Time, now: Time) {
        if now < self.settled_after {
            return;
        }
        let (since, now) = planted::seen(Checker::Convergence, since, now);
        let since = since.max(self.settled_after);
        let took = now.since(since);
        self.shifts += 1;
        self.total += took;
        if took > self.longest.0 {
            self.longest = (took, since);
        }
    }
}

#[cfg(test)]
mod tests;
