//! Measures grants beyond the capacity.
//!
//! NO_ALGORITHM and STATIC promise no total, so they cannot exceed one. With `shrink: immediate`
//! the server keeps to a total but does not promise it at every instant: this checker measures an
//! excess and does not count it as a violation (see `immediate`).
//!
//! After the capacity is lowered, or after a total begins to count, old leases may stay valid until
//! the last of them ends. An excess is allowed up to that instant and is a violation after it, even
//! if nothing happens at that time. The root's clock decides the instant: the root reserves a grant
//! until the lease has ended by its own clock, and no lease below outlives the lease it was cut
//! from. So all points in time in this file are as the root's clock shows them.

use std::time::Duration;

use doorward_engine::templates::{Algorithm, AlgorithmKind, Shrink, Template};
use doorward_engine::time::Time;

use crate::checker::{Extreme, ROUNDING};
use crate::local_clock::LocalClock;
use crate::recording::part;

/// Promise on the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Total {
    #[default]
    Free,
    Kept,
    Promised,
}

impl Total {
    fn of(algorithm: &Algorithm) -> Self {
        match (algorithm.kind, algorithm.shrink) {
            (AlgorithmKind::NoAlgorithm | AlgorithmKind::Static, _) => Self::Free,
            (_, Shrink::Immediate) => Self::Kept,
            (_, Shrink::Acknowledged) => Self::Promised,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Overshoot {
    pub(super) capacity: f64,
    /// Largest capacity so far.
    most: f64,
    total: Total,
    /// Clock of the root.
    pub(super) clock: LocalClock,
    /// Total that old leases may still use, and until when, by the root's clock.
    former: Option<(f64, Time)>,
    /// End of the last lease by an earlier template, by the root's clock. Earlier templates may
    /// have had longer leases.
    pub(super) former_leases_end: Time,
    /// Largest ratio of grants to the allowance.
    pub(super) peak: f64,
    /// Largest ratio of grants and use without a lease to the allowance.
    pub(super) peak_with_fallback: f64,
    /// Largest ratio of grants while the total was promised, and when.
    pub(super) worst: Extreme<f64>,
    over_since: Option<Time>,
    pub(super) over_for: Duration,
}

impl Overshoot {
    pub(super) fn new(template: &Template) -> Self {
        let capacity = template.capacity.get();
        Self {
            capacity,
            most: capacity,
            total: Total::of(&template.algorithm),
            ..Self::default()
        }
    }

    /// Returns whether all clients share one capacity.
    pub(super) fn has_total(&self) -> bool {
        self.total != Total::Free
    }

    /// Returns whether a total counts but is not promised at every instant.
    pub(super) fn is_kept(&self) -> bool {
        self.total == Total::Kept
    }

    /// Notes another template, or none. Leases had the length `had` until now. The caller has
    /// counted the time until now.
    pub(super) fn note_template(&mut self, template: Option<&Template>, had: Duration, now: Time) {
        let (before, total) = (self.capacity, self.total);
        let mut has = had;
        if let Some(template) = template {
            self.capacity = template.capacity.get();
            self.total = Total::of(&template.algorithm);
            has = template.algorithm.lease_length;
        } else {
            self.capacity = 0.0;
        }
        self.most = self.most.max(self.capacity);
        let local = self.clock.shows(now);
        self.former_leases_end = self.former_leases_end.max(local + had);
        // Old leases shrink as holders refresh, at the latest when they end.
        let from = match self.total > total {
            // Any amount may be granted and on its way.
            true => Some(f64::INFINITY),
            false if self.capacity < before => Some(self.allowed(now).max(before)),
            false => None,
        };
        if let Some(from) = from {
            let until = self.former_leases_end.max(local + has);
            self.former = Some((from, until));
        }
    }

    /// Notes that a new master of the root starts learning mode.
    pub(super) fn note_learning(&mut self, algorithm: &Algorithm, now: Time) {
        // The new master does not know earlier templates. It learns from the holders what they have
        // and confirms it with leases that begin now. If these amounts are from before the capacity
        // was lowered, they have another lease length to come down.
        let local = self.clock.shows(now);
        if let Some((_, until)) = &mut self.former
            && local <= *until
        {
            *until = (*until).max(local + algorithm.lease_length);
        }
    }

    /// Notes a decision of the root by a template that the operator has replaced.
    pub(super) fn note_known_late(&mut self, former: &Template, now: Time) {
        let capacity = former.capacity.get();
        let local = self.clock.shows(now);
        let until = local + former.algorithm.lease_length;
        let until = self.former_leases_end.max(until);
        self.former_leases_end = until;
        if self.total > Total::of(&former.algorithm) {
            self.former = Some((f64::INFINITY, until));
        } else if capacity > self.capacity {
            self.former = Some((self.allowed(now).max(capacity), until));
        } else if let Some((_, runs)) = &mut self.former
            && local <= *runs
        {
            *runs = (*runs).max(until);
        }
    }

    /// Returns the largest total allowed at a time.
    pub(super) fn allowed(&self, now: Time) -> f64 {
        match self.former {
            Some((from, until)) if self.clock.shows(now) <= until => from.max(self.capacity),
            _ => self.capacity,
        }
    }

    /// Checks the moment at which old leases had to be gone, if it has passed since the last
    /// change. Every change calls it first.
    pub(super) fn pass(&mut self, now: Time, sums: impl FnOnce() -> (f64, f64)) {
        if let Some((_, until)) = self.former
            && self.clock.shows(now) > until
        {
            self.former = None;
            let (leases, fallback) = sums();
            self.look(leases, fallback, self.clock.when(until));
        }
    }

    /// Returns whether the servers account for everything that may be in use.
    pub(super) fn is_accounted(&self, now: Time) -> bool {
        // While grants from before a total may be in use, any amount is allowed.
        self.total == Total::Promised && self.allowed(now).is_finite()
    }

    /// Checks the sum of all leases, and of use without a lease.
    pub(super) fn look(&mut self, leases: f64, fallback: f64, now: Time) {
        let allowed = self.allowed(now);
        let is_over = self.has_total() && leases > allowed * (1.0 + ROUNDING);
        match (is_over, self.over_since) {
            (true, None) => self.over_since = Some(now),
            (false, Some(since)) => {
                self.over_for += now.since(since);
                self.over_since = None;
            }
            _ => {}
        }
        if !self.has_total() {
            return;
        }
        let part = self.part(leases, allowed);
        self.peak = self.peak.max(part);
        let with_fallback = self.part(leases + fallback, allowed);
        self.peak_with_fallback = self.peak_with_fallback.max(with_fallback);
        if self.total == Total::Promised {
            self.worst.note(part, now);
        }
    }

    /// Returns the ratio of a sum to the allowance. If nothing is allowed, the excess counts
    /// relative to the largest capacity so far.
    fn part(&self, sum: f64, allowed: f64) -> f64 {
        match sum > 0.0 {
            true => part(sum, allowed, 1.0 + part(sum, self.most, 1.0)),
            false => 0.0,
        }
    }

    pub(super) fn finish(&mut self, now: Time) {
        if let Some(since) = self.over_since.take() {
            self.over_for += now.since(since);
        }
    }
}
