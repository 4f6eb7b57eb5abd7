//! How long it takes until all is at rest after a shift: a change, at one instant, of demand or
//! capacity by more than a twentieth of the capacity.
//!
//! At rest means: no further from the ideal than 1 % of what can be used, beyond what the distance
//! is on average anyway, since under a demand that never rests nobody is at rest either.

use std::time::Duration;

use doorward_engine::time::Time;

/// What makes a shift, as a part of the capacity.
const SHIFT: f64 = 0.05;

/// What is at rest, as a part of what can be used.
const REST: f64 = 0.01;

/// How fast the average forgets, per sample.
const FORGETS: f64 = 0.1;

#[derive(Debug, Default)]
pub(super) struct Convergence {
    /// What has changed at the present instant.
    instant: Option<(Time, f64)>,
    pending: Option<Time>,
    /// The mean distance from the ideal when nothing is pending, as a part of what can be used.
    usual: f64,
    pub(super) shifts: usize,
    pub(super) total: Duration,
    /// The longest, and when it began.
    pub(super) longest: (Duration, Time),
}

impl Convergence {
    pub(super) fn note_change(&mut self, change: f64, capacity: f64, now: Time) {
        let (at, sum) = self.instant.get_or_insert((now, 0.0));
        if *at != now {
            (*at, *sum) = (now, 0.0);
        }
        *sum += change;
        if *sum > SHIFT * capacity {
            // One that comes while another is pending begins anew: the first has no end of its own.
            self.pending = Some(now);
        }
    }

    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    pub(super) fn note_unfairness(&mut self, unfair: f64, usable: f64) {
        if self.pending.is_none() && usable > 0.0 {
            self.usual += FORGETS * (unfair / usable - self.usual);
        }
    }

    /// Whether all is at rest at that distance from the ideal.
    pub(super) fn is_rest(&self, unfair: f64, usable: f64) -> bool {
        unfair <= (REST + self.usual.min(0.05)) * usable
    }

    pub(super) fn settle(&mut self, unfair: f64, usable: f64, counts: bool, now: Time) {
        let Some(since) = self.pending else { return };
        if !self.is_rest(unfair, usable) {
            return;
        }
        self.pending = None;
        if counts {
            let took = now.since(since);
            self.shifts += 1;
            self.total += took;
            if took > self.longest.0 {
                self.longest = (took, since);
            }
        }
    }

    /// Since when it has been pending, if it still is.
    pub(super) fn unfinished(&self) -> Option<Time> {
        self.pending
    }
}
