//! What is granted beyond what there is.
//!
//! Of NO_ALGORITHM and STATIC no total is promised, so there is nothing to go beyond. With `shrink:
//! immediate` one is kept to, and not promised at every instant: what goes beyond is measured, and no
//! violation here (see `immediate`).
//!
//! Where the capacity is lowered, or a total begins to be kept, what is out runs down until the last
//! lease from before has ended. Until then it is allowed, and from that very instant on it is not,
//! whether anything happens then or not. The root's clock says when that is: the root reserves what
//! it has granted until the lease has ended by its own clock, and no lease below outlives the one it
//! was cut from. So all points in time that are kept here are as the root's clock shows them.

use std::time::Duration;

use doorward_engine::template::{Algorithm, AlgorithmKind, Shrink, Template};
use doorward_engine::time::Time;

use crate::checker::ROUNDING;
use crate::planted::{self, Blunt};
use crate::recording::Checker;
use crate::world::clock::LocalClock;

/// What is promised of the total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Total {
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

#[derive(Debug)]
pub(super) struct Overshoot {
    pub(super) capacity: f64,
    /// The most that there ever was.
    most: f64,
    total: Total,
    /// The root's.
    clock: LocalClock,
    /// What may still be in use from before, and until when, by the root's clock.
    former: Option<(f64, Time)>,
    /// When the last lease ends, by the root's clock, that may be out by an earlier template, which had
    /// longer ones perhaps.
    former_leases_end: Time,
    /// The largest part of what there was that was granted.
    pub(super) peak: f64,
    /// The largest part that was granted or used without a lease.
    pub(super) peak_with_fallback: f64,
    /// The largest part of what there was that was granted while no more was promised, and when.
    pub(super) worst: (f64, Time),
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
            clock: LocalClock::TRUE,
            former: None,
            former_leases_end: Time::ZERO,
            peak: 0.0,
            peak_with_fallback: 0.0,
            worst: (0.0, Time::ZERO),
            over_since: None,
            over_for: Duration::ZERO,
        }
    }

    /// Whether all share one capacity.
    pub(super) fn has_total(&self) -> bool {
        self.total != Total::Free
    }

    /// The root's clock is another one from now on. What happened until now has been looked at.
    pub(super) fn note_clock(&mut self, clock: LocalClock) {
        self.clock = clock;
    }

    /// Whether a total is kept to, and not promised at every instant.
    pub(super) fn is_kept(&self) -> bool {
        self.total == Total::Kept
    }

    /// What the root's clock shows.
    pub(super) fn local(&self, now: Time) -> Time {
        self.clock.shows(now)
    }

    /// When the last lease ends that may be out by an earlier template, by the root's clock.
    pub(super) fn former_leases_end(&self) -> Time {
        self.former_leases_end
    }

    /// Another template is in force, or none; until now there were leases of this length. What
    /// happened until now has been looked at.
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
        // What is out comes down as holders refresh, at the latest when its leases end.
        let from = match self.total > total {
            // Any amount may be out, and on its way.
            true => Some(f64::INFINITY),
            false if planted::is(Blunt::OvershootForgivenByEdits) => Some(f64::INFINITY),
            false if self.capacity < before => Some(self.allowed(now).max(before)),
            false => None,
        };
        if let Some(from) = from {
            let mut until = self.former_leases_end.max(local + has);
            if planted::is(Blunt::OvershootAfterEditsAllowed) {
                until = until + has;
            }
            self.former = Some((from, until));
        }
    }

    /// Another root was elected, which begins to learn.
    pub(super) fn note_learning(&mut self, algorithm: &Algorithm, now: Time) {
        // It does not know what was in force before: it learns from the holders what is out, and
        // confirms it, for leases that begin now. If that is still what was out before the capacity
        // was lowered, it has the length of another lease to come down.
        let local = self.clock.shows(now);
        if planted::is(Blunt::OvershootOfLearnersAllowed) {
            self.former = Some((f64::INFINITY, local + algorithm.lease_length));
        }
        if let Some((_, until)) = &mut self.former
            && local <= *until
        {
            *until = (*until).max(local + algorithm.lease_length);
        }
    }

    /// The root does not go by the template in force: until then, by its clock, it may grant by this
    /// one.
    pub(super) fn note_known_late(&mut self, former: &Template, granted_until: Time, now: Time) {
        let capacity = former.capacity.get();
        let local = self.clock.shows(now);
        self.former_leases_end = self
            .former_leases_end
            .max(granted_until + former.algorithm.lease_length);
        let until = self.former_leases_end;
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

    /// What may be granted at a time, at most.
    pub(super) fn allowed(&self, now: Time) -> f64 {
        match self.former {
            Some((from, until)) if self.clock.shows(now) <= until => from.max(self.capacity),
            _ => self.capacity,
        }
    }

    /// Before anything changes now: if what was from before had to be gone since the last change, it
    /// is looked whether it was.
    pub(super) fn pass(&mut self, now: Time, sums: impl FnOnce() -> (f64, f64)) {
        if let Some((_, until)) = self.former
            && self.clock.shows(now) > until
        {
            self.former = None;
            if planted::is(Blunt::OvershootBetweenChangesUnseen) {
                return;
            }
            let (leases, fallback) = sums();
            self.look(leases, fallback, self.clock.when(until));
        }
    }

    /// Whether all that may be in use is accounted for by those who handed it out.
    pub(super) fn is_accounted(&self, now: Time) -> bool {
        let was_free = self
            .former
            .is_some_and(|(from, until)| from.is_infinite() && self.clock.shows(now) <= until);
        self.total == Total::Promised && !was_free
    }

    /// Looks at the sum of all leases, and of what is used besides.
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
        let is_promised = self.total == Total::Promised && planted::sees(Checker::Overshoot, now);
        if is_promised && part > self.worst.0 {
            self.worst = (part, now);
        }
    }

    /// What part of what is allowed this is. Of nothing there are no parts: what is beyond it counts
    /// as a part of the most there ever was.
    fn part(&self, sum: f64, allowed: f64) -> f64 {
        if allowed > 0.0 {
            sum / allowed
        } else if sum > 0.0 && self.most > 0.0 {
            1.0 + sum / self.most
        } else if sum > 0.0 {
            2.0
        } else {
            0.0
        }
    }

    pub(super) fn finish(&mut self, now: Time) {
        if let Some(since) = self.over_since.take() {
            self.over_for += now.since(since);
        }
    }
}
