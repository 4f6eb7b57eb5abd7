//! Recovery of one resource, and its end.
//!
//! A new master confirms reports until the leases of its predecessors have ended (*learning mode*). At the root, the
//! templates determine that time. Below the root, the parent does, with its first answer. Recovery begins again in one
//! case only: the old algorithm promised no total, so there was nothing to learn, and the new one promises a total.
//!
//! A root that knows the mark of its predecessor does not learn. It keeps what is not reported yet. Once all holders have
//! had the time to report, those that have not are taken for dead, and the rest of the capacity is divided without them.
//! If the mark cannot be right, because reports exceed the mark, or more may be in use than the capacity, it learns.

use std::time::Duration;

use crate::amount::Amount;
use crate::continuity::Situation;
use crate::continuity::learned::Learned;
use crate::continuity::reported::Reported;
use crate::continuity::unreported::Unreported;
use crate::division::{Bound, Grant};
use crate::exact_sum::ExactSum;
use crate::holders::HolderAsk;
use crate::time::Time;

/// Knowledge of a resource about earlier masterships, and its gaps. Dropped when their leases are over.
#[derive(Debug, Default)]
pub(crate) struct Recovery {
    /// Its end.
    pub(crate) ends: Ends,
    /// The holders' reports.
    pub(super) reported: Reported,
    /// At the root: the amount of the predecessor's mark that is not reported yet. None: the amount is unknown.
    pub(super) unreported: Option<Unreported>,
    /// At the root: when the last live holder reports. None: that time is over, or the amount is unknown.
    hears_until: Option<Time>,
    /// Below the root: the masterships that granted the reported leases.
    pub(super) learned: Learned,
    /// Below the root: number of reports that exceed what this server knew.
    pub(super) made: u64,
    /// Number of them in requests to the parent.
    pub(super) sent: u64,
    /// Whether the last request to the parent said how much is not reported yet.
    pub(super) said_unreported: bool,
    /// Number of them in requests that the parent has answered.
    pub(super) answered: u64,
    /// Below the root: the parent has refused this process since, because another one of its node lives.
    pub(crate) was_refused: bool,
    /// End of the last lease of a predecessor, as far as the parent knows.
    pub(super) inherited_until: Option<Time>,
}

/// The end of recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ends {
    /// Below the root, before the parent's first answer: the time is unknown.
    #[default]
    Undecided,
    /// The first timeout after this time.
    At(Time),
}

impl Ends {
    /// Returns the end after a changed algorithm. `before`: the end with the old one, or none if recovery was over.
    /// `anew`: the end with the new one. `promised_total`: the old one did. `is_fixed`: predecessors' leases do not
    /// depend on the algorithm any more. None: recovery is over.
    ///
    /// If the old one promised no total, recovery begins. Otherwise the change may end it, but never makes it longer.
    pub(crate) fn after_change(
        before: Option<Self>,
        promised_total: bool,
        is_fixed: bool,
        anew: Option<Time>,
    ) -> Option<Self> {
        match (before, promised_total) {
            (Some(Self::Undecided), _) => before,
            (_, false) => anew.map(Self::At),
            (_, true) if is_fixed => before,
            (Some(Self::At(before)), true) => anew.map(|anew| Self::At(before.min(anew))),
            (None, true) => None,
        }
    }

    /// Returns the end by the parent's first answer. `by_algorithm`: the end by the algorithm in it. Recovery lasts at
    /// least as long as leases that may be in use (`out_until`). If the parent knows when the last lease of our
    /// predecessors ends (`inherited_until`), that time counts alone. None: recovery is over.
    pub(super) fn by_parent(
        by_algorithm: Option<Time>,
        out_until: Time,
        inherited_until: Option<Time>,
    ) -> Option<Self> {
        let by_algorithm = by_algorithm.map(|until| until.max(out_until));
        inherited_until.or(by_algorithm).map(Self::At)
    }
}

/// Prospects of holders while recovery goes on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outlook {
    /// Time until it ends.
    pub(crate) remaining: Duration,
    /// The most that is confirmed for each client, if the reports exceed the capacity.
    pub(crate) level: Option<f64>,
    /// Whether capacity beyond the grants to predecessors may be granted.
    pub(crate) grows: bool,
}

impl Recovery {
    /// Returns when it ends. None: that is undecided.
    pub(crate) fn ends_at(&self) -> Option<Time> {
        match self.ends {
            Ends::At(until) => Some(until),
            Ends::Undecided => None,
        }
    }

    /// Whether it should end now.
    pub(crate) fn is_due(&self, now: Time) -> bool {
        self.ends_at().is_some_and(|until| until <= now)
    }

    /// Returns the remaining time. None: it is over, or undecided.
    pub(crate) fn remaining(&self, now: Time) -> Option<Duration> {
        let until = self.ends_at().filter(|until| *until > now);
        until.map(|until| until.since(now))
    }

    /// Returns the prospects of holders. None: it is over, or the parent's first answer decides.
    ///
    /// The parent's record says how much predecessors were granted; the rest is free. A parent that learns too grants
    /// nothing beyond it, except for rounding. While a predecessor may live, it may still grant capacity. If holders
    /// report more than the capacity, nothing is free either.
    pub(crate) fn outlook(&self, s: &Situation<'_>) -> Option<Outlook> {
        let level = self.confirmed_level(s);
        let terms = s.supply.terms.as_ref();
        let is_settled =
            terms.is_some_and(|terms| !terms.learning && terms.predecessor_for.is_none());
        let knows_sum = is_settled && self.learned.has_books() || self.is_bounded();
        Some(Outlook {
            remaining: self.remaining(s.now)?,
            level,
            grows: level.is_none() && knows_sum,
        })
    }

    /// Returns recovery of a root until leases of predecessors have ended, if nothing is known of them.
    pub(crate) fn of_root(ends: Time) -> Box<Self> {
        Box::new(Self {
            ends: Ends::At(ends),
            ..Self::default()
        })
    }

    /// Returns the same, if the predecessors' leases are at most a mark. Live holders report until `hears_until`.
    pub(crate) fn of_mark(ends: Time, mark: Amount, hears_until: Time) -> Box<Self> {
        Box::new(Self {
            unreported: Some(Unreported::of_mark(mark)),
            hears_until: Some(hears_until),
            ..*Self::of_root(ends)
        })
    }

    /// When [`Recovery::stop_waiting`] changes something, or recovery ends.
    pub(crate) fn next_change(&self) -> Option<Time> {
        self.hears_until.into_iter().chain(self.ends_at()).min()
    }

    /// Notes that all live holders have reported, if the time for that is over. Returns whether it is over just now.
    pub(crate) fn stop_waiting(&mut self, now: Time) -> bool {
        let is_over = self.hears_until.is_some_and(|until| until <= now);
        if is_over {
            self.hears_until = None;
        }
        is_over
    }

    /// Returns the part of the capacity to divide among the holders that have reported: all of it, as long as others may
    /// report. A smaller part would take from the first ones what they should keep.
    pub(crate) fn divisible(&self, capacity: Amount) -> Amount {
        match &self.unreported {
            Some(unreported) if self.hears_until.is_none() => unreported.left().left_of(capacity),
            _ => capacity,
        }
    }

    /// Whether this is the root, and knows the most that leases of predecessors may have in use.
    pub(crate) fn is_bounded(&self) -> bool {
        self.unreported.is_some()
    }

    /// Returns why a holder does not have its share, although the capacity is large enough.
    pub(crate) fn others_hold(&self) -> Bound {
        match self.is_bounded() && !self.unreported().is_zero() {
            true => Bound::Unreported,
            false => Bound::OthersHold,
        }
    }

    /// Learns from now on, and until `ends` at least: below it, servers may have learned only a part meanwhile.
    pub(crate) fn become_unbounded(&mut self, ends: Time) {
        if self.unreported.take().is_some() {
            self.hears_until = None;
            self.ends = Ends::At(self.ends_at().map_or(ends, |before| before.max(ends)));
        }
    }

    /// Returns the most that holders may be using that have not reported yet.
    pub(crate) fn unreported(&self) -> ExactSum {
        match &self.unreported {
            Some(unreported) => *unreported.left(),
            None => self.learned.unreported(),
        }
    }

    /// Notes a grant, and the report that it was cut from.
    pub(crate) fn note_granted(&mut self, s: &Situation<'_>, ask: &HolderAsk<'_>, grant: &Grant) {
        let holder = s.table.name_hash(ask.holder());
        self.reported.note_granted(holder, grant.cut_from);
    }

    /// Drops the reports of the process that had the name of this one.
    pub(crate) fn forget_report(&mut self, s: &Situation<'_>, ask: &HolderAsk<'_>) {
        self.reported.forget(s.table.name_hash(ask.holder()));
    }

    /// Notes that a holder is gone.
    pub(crate) fn note_gone(&mut self, holder: u64) {
        self.reported.forget(holder);
        self.learned.note_gone(holder);
        if let Some(unreported) = &mut self.unreported {
            unreported.note_gone(holder);
        }
    }

    /// Asserts that what is kept agrees with itself. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub(crate) fn assert_consistent(&self, is_holder: impl Fn(u64) -> bool) {
        self.reported.assert_consistent(is_holder);
    }
}

#[cfg(test)]
mod tests {
    use super::Ends::Undecided;
    use super::*;

    const NOW: Time = Time::from_secs(100);

    fn at(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    fn until(seconds: u64) -> Ends {
        Ends::At(at(seconds))
    }

    #[test]
    fn the_first_answer_of_the_parent_decides() {
        for (by_algorithm, out_until, inherited, after) in [
            (Some(160), 100, None, Some(until(160))),
            (Some(160), 170, None, Some(until(170))),
            (None, 170, None, None),
            (Some(160), 170, Some(110), Some(until(110))),
            // The server learned during the whole wait for the answer.
            (None, 100, Some(90), Some(until(90))),
        ] {
            let found = Ends::by_parent(by_algorithm.map(at), at(out_until), inherited.map(at));
            assert_eq!(found, after, "{by_algorithm:?} {out_until} {inherited:?}");
        }
    }

    #[test]
    fn another_algorithm_ends_learning_and_starts_it_only_if_there_was_nothing_to_learn() {
        for (before, promised_total, is_fixed, anew, after) in [
            (Some(Undecided), false, false, Some(160), Some(Undecided)),
            (Some(Undecided), true, false, None, Some(Undecided)),
            (Some(until(130)), false, false, Some(160), Some(until(160))),
            (None, false, true, Some(160), Some(until(160))),
            (Some(until(130)), false, true, None, None),
            (Some(until(130)), true, false, Some(160), Some(until(130))),
            (Some(until(130)), true, false, Some(110), Some(until(110))),
            (Some(until(130)), true, false, None, None),
            (None, true, false, Some(160), None),
            (Some(until(130)), true, true, Some(110), Some(until(130))),
            (None, true, true, Some(110), None),
        ] {
            let found = Ends::after_change(before, promised_total, is_fixed, anew.map(at));
            assert_eq!(
                found, after,
                "{before:?} {promised_total} {is_fixed} {anew:?}"
            );
        }
    }

    #[test]
    fn recovery_lasts_until_its_end_is_handled() {
        let left = |seconds| Some(Duration::from_secs(seconds));
        for (ends, is_due, remaining) in [
            (Undecided, false, None),
            (until(130), false, left(30)),
            (until(100), true, None),
        ] {
            let recovery = Recovery {
                ends,
                ..Recovery::default()
            };
            assert_eq!(recovery.is_due(NOW), is_due, "{ends:?}");
            assert_eq!(recovery.remaining(NOW), remaining, "{ends:?}");
        }
    }
}
