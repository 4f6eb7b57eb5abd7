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
mod tests {
    use super::*;

    fn at(tenths: u64) -> Time {
        Time::ZERO + Duration::from_millis(100 * tenths)
    }

    fn spans(tenths: [u64; 2]) -> (Duration, Duration) {
        let [total, longest] = tenths.map(|tenths| Duration::from_millis(100 * tenths));
        (total, longest)
    }

    #[test]
    fn shifts_that_overlap_are_one_that_began_with_the_first() {
        let mut convergence = Convergence::new(Time::ZERO);
        // Every two seconds another, and never at rest in between.
        for shift in 1..=10 {
            convergence.note_change(60.0, 100.0, at(20 * shift));
            convergence.settle(17.0, 100.0, at(20 * shift + 10));
        }
        convergence.settle(1.0, 100.0, at(230));
        let found = (convergence.total, convergence.longest.0);
        assert_eq!((convergence.shifts, found), (1, spans([210, 210])));
        assert_eq!(convergence.longest.1, at(20));
        // One for itself.
        convergence.note_change(60.0, 100.0, at(300));
        convergence.settle(0.0, 100.0, at(305));
        let found = (convergence.total, convergence.longest.0);
        assert_eq!((convergence.shifts, found), (2, spans([215, 210])));
    }

    #[test]
    fn what_lasts_does_not_excuse_itself() {
        let mut convergence = Convergence::new(Time::ZERO);
        convergence.note_change(6.0, 100.0, at(10));
        for tenth in 11..600 {
            convergence.settle(1.5, 100.0, at(tenth));
        }
        assert!(convergence.is_pending());
        convergence.finish(at(600));
        let (total, longest) = spans([590, 590]);
        assert_eq!((convergence.total, convergence.longest.0), (total, longest));
        assert_eq!(convergence.unfinished, Some(longest));
    }

    #[test]
    fn what_is_before_all_is_settled_does_not_count() {
        let mut convergence = Convergence::new(at(100));
        convergence.note_change(60.0, 100.0, at(0));
        convergence.settle(0.0, 100.0, at(90));
        assert_eq!((convergence.shifts, convergence.total), (0, Duration::ZERO));
        convergence.note_change(60.0, 100.0, at(95));
        convergence.settle(0.0, 100.0, at(105));
        let found = (convergence.total, convergence.longest.0);
        assert_eq!((convergence.shifts, found), (1, spans([5, 5])));
    }

    #[test]
    fn a_twentieth_of_the_capacity_at_one_instant_is_a_shift() {
        let mut convergence = Convergence::new(Time::ZERO);
        convergence.note_change(3.0, 100.0, at(1));
        convergence.note_change(3.0, 100.0, at(2));
        assert!(!convergence.is_pending());
        convergence.note_change(3.0, 100.0, at(2));
        assert!(convergence.is_pending());
        // At the end it had no time: that says nothing.
        convergence.finish(at(2));
        assert_eq!((convergence.shifts, convergence.unfinished), (0, None));
    }
}
