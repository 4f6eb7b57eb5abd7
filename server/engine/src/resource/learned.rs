//! What holders report in learning mode, below the root: which mastership of this node granted their leases, and
//! so whether the parent's books contain them.
//!
//! Leases of earlier masterships were cut from what the parent had granted them. If the parent sends how much that
//! is at most (`inherited`), then capacity granted above it is free: it may be granted at once, and only what is not
//! reported yet must be kept for its holders. If the parent was learning when this node first asked, it knows only the
//! masterships that have asked it. Leases of other masterships are added: reports of them go up, and the parent adds
//! them.
//!
//! The parent's amount shrinks, because it covers what is still valid at that moment. A lease that had ended by then is
//! not part of it, though its holder may have reported more before. So each smaller amount counts by itself, with the
//! reports that outlast that moment, beside the first one with all reports; the smallest remainder of them is kept.
//!
//! Reports only grow until learning is over: that one holder has less than it reported says nothing about the others.

use std::collections::BTreeMap;

use crate::amount::Amount;
use crate::exact_sum::ExactSum;
use crate::id::MastershipId;
use crate::planted::{self, Bug};
use crate::request::server::ReportedLeases;
use crate::supply::ParentTerms;
use crate::time::Time;

/// How many masterships are distinguished. Any further one counts as unknown, which is the safe side.
const ORIGINS_MAX: usize = 16;

/// The mastership that granted something. None: the holder does not report it.
pub(crate) type Origin = Option<MastershipId>;

/// The report of one holder.
#[derive(Clone, Copy, Debug)]
struct ReportedLease {
    origin: Origin,
    amount: Amount,
    /// When the reported lease ends, at the earliest.
    until: Time,
    is_there: bool,
}

/// The reports of holders, and the parent's books.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learned {
    /// By a hash of the holder's name.
    reports: BTreeMap<u64, ReportedLease>,
    /// The sums for present holders, by granting mastership.
    there: BTreeMap<Origin, ExactSum>,
    books: Option<Books>,
}

/// What the parent has in its books for earlier masterships of this node.
#[derive(Clone, Debug)]
struct Books {
    /// The masterships that it covers. Empty: all.
    accounted: Vec<MastershipId>,
    /// The mastership of the parent that sent it.
    parent: Option<MastershipId>,
    first: BookEntry,
    /// The least since.
    least: Option<BookEntry>,
}

/// One amount that the parent sent.
#[derive(Clone, Copy, Debug)]
struct BookEntry {
    at: Time,
    amount: Amount,
    /// The reported part of it.
    reported: ExactSum,
}

impl Learned {
    /// A holder, by a hash of its name, reports that it may be using an amount until then. Its first report counts for
    /// who granted it, and its largest report for how much.
    pub(crate) fn note(&mut self, holder: u64, origin: Origin, amount: Amount, until: Time) {
        if planted::is(Bug::LearnedForgotten) {
            return;
        }
        let known = self.there.len() < ORIGINS_MAX || self.there.contains_key(&origin);
        let origin = if known {
            origin
        } else {
            Some(MastershipId::NOBODY)
        };
        let report = self.reports.entry(holder).or_insert(ReportedLease {
            origin,
            amount: Amount::ZERO,
            until,
            is_there: false,
        });
        let there = self.there.entry(report.origin).or_insert(ExactSum::ZERO);
        if report.is_there {
            there.subtract(report.amount);
        }
        let before = *report;
        report.amount = report.amount.max(amount);
        report.until = report.until.max(until);
        report.is_there = true;
        there.add(report.amount);
        let after = *report;
        if let Some(books) = &mut self.books {
            books.replace(&before, &after);
        }
    }

    /// Limits a holder's report to what is believed of it.
    pub(crate) fn lower(&mut self, holder: u64, most: Amount) {
        let Some(report) = self.reports.get_mut(&holder) else {
            return;
        };
        let before = *report;
        report.amount = report.amount.min(most);
        let after = *report;
        if let Some(there) = self.there.get_mut(&after.origin).filter(|_| after.is_there) {
            there.replace(before.amount, after.amount);
        }
        if let Some(books) = &mut self.books {
            books.replace(&before, &after);
        }
    }

    /// When the lease that a holder reported ends, unless it was extended since.
    pub(crate) fn until(&self, holder: u64) -> Option<Time> {
        self.reports.get(&holder).map(|report| report.until)
    }

    /// A holder is gone.
    pub(crate) fn note_gone(&mut self, holder: u64) {
        if let Some(report) = self
            .reports
            .get_mut(&holder)
            .filter(|report| report.is_there)
        {
            report.is_there = false;
            if let Some(there) = self.there.get_mut(&report.origin) {
                there.subtract(report.amount);
            }
        }
    }

    /// Takes the parent's books. Earlier masterships grant nothing more, so what was known stays known, even if a parent
    /// that has just begun does not know it. O(reports) if the parent sends less than before, which happens a few times.
    pub(crate) fn note_parent_books(
        &mut self,
        terms: &ParentTerms,
        by: Option<MastershipId>,
        now: Time,
    ) {
        let Some(amount) = terms.inherited else {
            return;
        };
        let is_complete = terms.accounted.is_empty();
        let known = self.books.take();
        let goes_on = known.as_ref().is_some_and(|known| {
            let same_books = known.parent == by && known.accounted == terms.accounted;
            same_books || known.accounted.is_empty()
        });
        let knows_more = known.as_ref().is_some_and(|known| {
            known.parent != by && (known.accounted.is_empty() || !is_complete)
        });
        let Some(mut books) = known.filter(|_| goes_on || knows_more) else {
            let mut books = Books {
                accounted: terms.accounted.clone(),
                parent: by,
                first: BookEntry {
                    at: now,
                    amount,
                    reported: ExactSum::ZERO,
                },
                least: None,
            };
            books.first.reported = self.reported_after(&books, now);
            self.books = Some(books);
            return;
        };
        // Between parents with complete books, the smaller amount counts.
        let speaks_of_same = books.parent == by || is_complete && books.accounted.is_empty();
        let least = books.least.map_or(books.first.amount, |least| least.amount);
        if speaks_of_same && amount < least {
            books.least = Some(BookEntry {
                at: now,
                amount,
                reported: self.reported_after(&books, now),
            });
        }
        self.books = Some(books);
    }

    /// The sum of reported leases that outlast that moment.
    fn reported_after(&self, books: &Books, now: Time) -> ExactSum {
        let mut reported = ExactSum::ZERO;
        for report in self.reports.values() {
            if report.until > now && books.accounts_for(report.origin) {
                reported.add(report.amount);
            }
        }
        reported
    }

    /// Learning is over.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether there are no reports.
    pub(crate) fn is_empty(&self) -> bool {
        self.reports.is_empty()
    }

    /// Whether the parent has sent its books.
    pub(crate) fn has_books(&self) -> bool {
        self.books.is_some()
    }

    /// The part of the parent's books that is not reported yet, at most.
    pub(crate) fn unreported(&self) -> ExactSum {
        let Some(books) = &self.books else {
            return ExactSum::ZERO;
        };
        let first = books.first.unreported();
        books
            .least
            .map_or(first, |least| first.min(least.unreported()))
    }

    /// The reports of present holders, by granting mastership.
    pub(crate) fn reported(&self) -> Vec<ReportedLeases> {
        let part = |(origin, there): (&Origin, &ExactSum)| ReportedLeases {
            granted_by: *origin,
            capacity: there.rounded_up(),
        };
        self.there.iter().map(part).collect()
    }
}

impl Books {
    fn accounts_for(&self, origin: Origin) -> bool {
        self.accounted.is_empty() || origin.is_none_or(|origin| self.accounted.contains(&origin))
    }

    /// A report has changed.
    fn replace(&mut self, before: &ReportedLease, after: &ReportedLease) {
        if !self.accounts_for(after.origin) {
            return;
        }
        for entry in std::iter::once(&mut self.first).chain(&mut self.least) {
            if before.until > entry.at {
                entry.reported.subtract(before.amount);
            }
            if after.until > entry.at {
                entry.reported.add(after.amount);
            }
        }
    }
}

impl BookEntry {
    fn unreported(&self) -> ExactSum {
        ExactSum::from(self.amount).without(&self.reported)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(amount: f64) -> Amount {
        Amount::new(amount).unwrap()
    }

    fn id(bits: u64) -> Origin {
        Some(MastershipId::new(bits))
    }

    const NOW: Time = Time::from_secs(100);
    const LATER: Time = Time::from_secs(160);

    fn told(inherited: f64, accounted: &[u64]) -> ParentTerms {
        ParentTerms {
            inherited: Some(amount(inherited)),
            accounted: accounted
                .iter()
                .map(|bits| MastershipId::new(*bits))
                .collect(),
            ..ParentTerms::default()
        }
    }

    #[track_caller]
    fn check(learned: &Learned, expected: f64) {
        let left = learned.unreported().rounded_down();
        assert!((left - expected).abs() < 1e-9, "{left}, not {expected}");
    }

    #[test]
    fn what_is_not_reported_yet_is_kept_for_its_holders() {
        let mut learned = Learned::default();
        learned.note_parent_books(&told(60.0, &[]), id(1), NOW);
        check(&learned, 60.0);
        learned.note(1, id(5), amount(20.0), LATER);
        check(&learned, 40.0);
        // Again, with more, from another mastership by now, and when it is gone.
        learned.note(1, id(5), amount(10.0), LATER);
        check(&learned, 40.0);
        learned.note(1, id(6), amount(25.0), LATER);
        check(&learned, 35.0);
        learned.note_gone(1);
        check(&learned, 35.0);
        learned.note(1, id(5), amount(25.0), LATER);
        check(&learned, 35.0);
        learned.note(2, None, amount(40.0), LATER);
        check(&learned, 0.0);
    }

    #[test]
    fn what_the_parent_has_not_heard_of_leaves_no_less_for_the_others() {
        for (accounted, left) in [(&[5, 6][..], 40.0), (&[], 10.0)] {
            let mut learned = Learned::default();
            learned.note(1, id(5), amount(20.0), LATER);
            learned.note_parent_books(&told(60.0, accounted), id(1), NOW);
            learned.note(2, id(7), amount(30.0), LATER);
            check(&learned, left);
        }
    }

    #[test]
    fn a_lease_that_was_over_is_no_part_of_what_lasts_on() {
        let soon = Time::from_secs(105);
        let mut learned = Learned::default();
        // Before the parent answers, and over by then.
        learned.note(1, id(5), amount(9.0), Time::from_secs(99));
        learned.note_parent_books(&told(80.0, &[]), id(1), NOW);
        check(&learned, 80.0);
        learned.note(2, id(5), amount(70.0), soon);
        check(&learned, 10.0);
        // What lasts on is less, and not that of the second holder.
        learned.note_parent_books(&told(50.0, &[]), id(1), Time::from_secs(106));
        check(&learned, 10.0);
        learned.note(3, id(5), amount(5.0), LATER);
        check(&learned, 5.0);
        learned.note_parent_books(&told(2.0, &[]), id(1), Time::from_secs(110));
        check(&learned, 0.0 + 2.0 - 2.0);
    }

    #[test]
    fn a_lease_that_was_made_longer_lasts_on_and_none_becomes_shorter_by_a_word() {
        let soon = Time::from_secs(105);
        for untils in [[soon, LATER], [LATER, soon]] {
            let mut learned = Learned::default();
            assert!(learned.is_empty());
            for until in untils {
                learned.note(1, id(5), amount(20.0), until);
            }
            assert!(!learned.is_empty());
            assert_eq!(learned.until(1), Some(LATER));
            learned.note_parent_books(&told(60.0, &[]), id(1), Time::from_secs(106));
            check(&learned, 40.0);
        }
        // It ends just when the parent says what lasts on.
        let mut learned = Learned::default();
        learned.note(1, id(5), amount(20.0), NOW);
        learned.note_parent_books(&told(60.0, &[]), id(1), NOW);
        check(&learned, 60.0);
        learned.note(2, id(5), amount(20.0), NOW);
        check(&learned, 60.0);
    }

    #[test]
    fn what_is_not_believed_of_a_word_is_unheard_again() {
        let there = |learned: &Learned| learned.reported()[0].capacity.get();
        let mut learned = Learned::default();
        learned.note_parent_books(&told(60.0, &[]), id(1), NOW);
        learned.note(1, id(5), amount(20.0), LATER);
        for (most, left) in [(50.0, 40.0), (5.0, 55.0), (6.0, 55.0)] {
            learned.lower(1, amount(most));
            check(&learned, left);
            assert_eq!(there(&learned), 60.0 - left);
        }
        learned.note_gone(1);
        learned.lower(1, amount(2.0));
        assert_eq!(there(&learned), 0.0);
        learned.lower(7, amount(2.0));
    }

    #[test]
    fn the_least_counts_from_when_it_was_said_first() {
        let mut learned = Learned::default();
        learned.note_parent_books(&told(60.0, &[]), id(1), NOW);
        learned.note(1, id(5), amount(30.0), Time::from_secs(110));
        learned.note_parent_books(&told(40.0, &[]), id(1), Time::from_secs(106));
        check(&learned, 10.0);
        learned.note_parent_books(&told(40.0, &[]), id(1), Time::from_secs(111));
        check(&learned, 10.0);
    }

    #[test]
    fn what_was_known_of_predecessors_stays_known_when_the_parent_begins_anew() {
        let silent = ParentTerms::default();
        for (what, first, second, expected) in [
            ("it says nothing", told(60.0, &[]), silent.clone(), 60.0),
            ("it has just begun", told(60.0, &[]), told(0.0, &[9]), 60.0),
            (
                "both have just begun",
                told(30.0, &[5, 9]),
                told(0.0, &[9]),
                30.0,
            ),
            ("it knows all", told(30.0, &[5, 9]), told(70.0, &[]), 70.0),
            ("it runs down", told(60.0, &[]), told(40.0, &[]), 40.0),
        ] {
            let mut learned = Learned::default();
            learned.note_parent_books(&first, id(1), NOW);
            learned.note_parent_books(&second, id(2), NOW);
            assert!(learned.has_books());
            let left = learned.unreported().rounded_down();
            assert_eq!(left, expected, "{what}");
        }
        // The same mastership of the parent.
        for (what, first, second, expected) in [
            (
                "it says more",
                told(30.0, &[5, 9]),
                told(40.0, &[5, 9]),
                30.0,
            ),
            (
                "it has heard of more",
                told(30.0, &[5]),
                told(40.0, &[5, 9]),
                40.0,
            ),
            ("it knew all", told(60.0, &[]), told(70.0, &[9]), 60.0),
        ] {
            let mut learned = Learned::default();
            learned.note_parent_books(&first, id(1), NOW);
            learned.note_parent_books(&second, id(1), NOW);
            check(&learned, expected);
            learned.forget();
            assert!(!learned.has_books(), "{what}");
        }
        let mut learned = Learned::default();
        learned.note_parent_books(&silent, None, NOW);
        assert!(!learned.has_books());
        learned.note_parent_books(&told(30.0, &[5, 9]), id(1), NOW);
        learned.note_parent_books(&told(10.0, &[5, 9]), id(1), NOW);
        check(&learned, 10.0);
    }

    #[test]
    fn reports_of_present_holders_go_up() {
        let mut learned = Learned::default();
        learned.note(1, id(5), amount(20.0), LATER);
        learned.note(2, None, amount(30.0), LATER);
        learned.note(3, id(5), amount(2.0), LATER);
        let told = |learned: &Learned| {
            let part = |it: ReportedLeases| (it.granted_by, it.capacity.get());
            learned.reported().into_iter().map(part).collect::<Vec<_>>()
        };
        assert_eq!(told(&learned), [(None, 30.0), (id(5), 22.0)]);
        learned.note_gone(2);
        learned.note_gone(3);
        assert_eq!(told(&learned), [(None, 0.0), (id(5), 20.0)]);
    }

    #[test]
    fn more_masterships_than_can_be_told_apart_are_known_to_nobody() {
        let mut learned = Learned::default();
        learned.note_parent_books(&told(200.0, &[1, 99]), id(1), NOW);
        for number in 1..100 {
            learned.note(number, id(number), amount(1.0), LATER);
        }
        assert!(learned.there.len() <= ORIGINS_MAX + 1);
        check(&learned, 199.0);
    }
}
