//! Reports in learning mode, below the root: the mastership of this node that granted each lease decides whether the
//! parent's books contain the lease.
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
//! A child server reports the sum of its holders' leases, with the duration of the last one. Other leases may end
//! before. So of a report from before such a moment only the child's own lease counts, which lasts in full; for a child
//! without one, the report counts as 0. Once the child has reported again, the whole report counts.
//!
//! Reports only grow until learning is over: a holder that now has less than it reported tells nothing about the
//! others.

use std::collections::BTreeMap;

use crate::amount::Amount;
use crate::division::ParentTerms;
use crate::exact_sum::ExactSum;
use crate::id::MastershipId;
use crate::messages::ReportedLeases;
use crate::time::Time;

/// Number of masterships that are distinguished. Any further one counts as unknown, which is the safe side.
const ORIGINS_MAX: usize = 16;

/// The mastership that granted something. None: the holder does not report it.
pub(crate) type Origin = Option<MastershipId>;

/// The report of one holder.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReportedLease {
    /// The mastership that granted it.
    pub(crate) origin: Origin,
    /// The most that the holder may be using.
    pub(crate) amount: Amount,
    /// Earliest end of the last lease in it.
    pub(crate) until: Time,
    /// Latest time of the report.
    pub(crate) said: Time,
    /// The part that lasts in full, and its earliest end. None: the holder has no lease of its own.
    pub(crate) lasts: Option<(Amount, Time)>,
}

/// A report, and whether its holder is still there.
#[derive(Clone, Copy, Debug)]
struct Kept {
    report: ReportedLease,
    is_there: bool,
}

impl Kept {
    /// Returns the reported amount of a present holder.
    fn present(&self) -> Amount {
        match self.is_there {
            true => self.report.amount,
            false => Amount::ZERO,
        }
    }
}

/// The reports of holders, and the parent's books.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learned {
    /// By a hash of the holder's name.
    reports: BTreeMap<u64, Kept>,
    /// The sums for present holders, by granting mastership.
    there: BTreeMap<Origin, ExactSum>,
    books: Option<Box<Books>>,
}

/// The parent's books of earlier masterships of this node.
#[derive(Clone, Debug)]
struct Books {
    /// The masterships that it covers. Empty: all.
    accounted: Vec<MastershipId>,
    /// The mastership of the parent that sent it.
    parent: Option<MastershipId>,
    first: BookEntry,
    /// The smallest amount since.
    least: Option<BookEntry>,
}

/// One amount that the parent sent.
#[derive(Clone, Copy, Debug)]
struct BookEntry {
    at: Time,
    /// There was no report before.
    is_first: bool,
    amount: Amount,
    /// The reported part of it.
    reported: ExactSum,
}

impl Learned {
    /// Notes the report of a holder, by a hash of its name. Of several reports the first one decides the granting
    /// mastership, and the largest one the amount.
    pub(crate) fn note(&mut self, holder: u64, said: ReportedLease) {
        let known = self.there.len() < ORIGINS_MAX || self.there.contains_key(&said.origin);
        let origin = if known {
            said.origin
        } else {
            Some(MastershipId::NOBODY)
        };
        let nothing = ReportedLease {
            origin,
            amount: Amount::ZERO,
            lasts: None,
            ..said
        };
        self.reports.entry(holder).or_insert(Kept {
            report: nothing,
            is_there: false,
        });
        self.change(holder, |kept| {
            kept.report.add(&said);
            kept.is_there = true;
        });
    }

    /// Limits a holder's report to what is believed of it.
    pub(crate) fn lower(&mut self, holder: u64, most: Amount) {
        self.change(holder, |kept| kept.report.lower(most));
    }

    /// When the lease that a holder reported ends, unless it was extended since.
    pub(crate) fn until(&self, holder: u64) -> Option<Time> {
        self.reports.get(&holder).map(|kept| kept.report.until)
    }

    /// Notes that a holder is gone.
    pub(crate) fn note_gone(&mut self, holder: u64) {
        self.change(holder, |kept| kept.is_there = false);
    }

    fn change(&mut self, holder: u64, change: impl FnOnce(&mut Kept)) {
        let Some(kept) = self.reports.get_mut(&holder) else {
            return;
        };
        let before = *kept;
        change(kept);
        let there = self.there.entry(kept.report.origin).or_default();
        there.replace(before.present(), kept.present());
        if let Some(books) = &mut self.books {
            books.replace(&before.report, &kept.report);
        }
    }

    /// Takes the parent's books. Earlier masterships grant nothing more, so what was known stays known, even if a
    /// parent that has just begun does not know it. O(reports) if the parent sends less than before, which happens a
    /// few times.
    pub(crate) fn note_parent_books(
        &mut self,
        terms: &ParentTerms,
        by: Option<MastershipId>,
        now: Time,
    ) {
        let Some(amount) = terms.inherited else {
            return;
        };
        let entry = |is_first| BookEntry {
            at: now,
            is_first,
            amount,
            reported: ExactSum::ZERO,
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
                first: entry(true),
                least: None,
            };
            books.first.reported = self.reported_after(&books, &books.first);
            self.books = Some(Box::new(books));
            return;
        };
        // Between parents with complete books, the smaller amount counts.
        let speaks_of_same = books.parent == by || is_complete && books.accounted.is_empty();
        let least = books.least.map_or(books.first.amount, |least| least.amount);
        if speaks_of_same && amount < least {
            let mut least = entry(false);
            least.reported = self.reported_after(&books, &least);
            books.least = Some(least);
        }
        self.books = Some(books);
    }

    /// The reported part of it.
    fn reported_after(&self, books: &Books, entry: &BookEntry) -> ExactSum {
        let mut reported = ExactSum::ZERO;
        for Kept { report, .. } in self.reports.values() {
            if books.accounts_for(report.origin) {
                reported.add(entry.part_of(report));
            }
        }
        reported
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

    /// Replaces a report.
    fn replace(&mut self, before: &ReportedLease, after: &ReportedLease) {
        if !self.accounts_for(after.origin) {
            return;
        }
        for entry in std::iter::once(&mut self.first).chain(&mut self.least) {
            let part = entry.part_of(before);
            entry.reported.replace(part, entry.part_of(after));
        }
    }
}

impl ReportedLease {
    /// Adds a later report of the same holder.
    fn add(&mut self, said: &Self) {
        // A smaller report may omit leases that the larger one contained.
        if said.amount >= self.amount {
            self.said = self.said.max(said.said);
        }
        self.amount = self.amount.max(said.amount);
        self.until = self.until.max(said.until);
        self.lasts = match (self.lasts, said.lasts) {
            (Some((amount, until)), Some((more, longer))) => {
                Some((amount.max(more), until.max(longer)))
            }
            (one, other) => one.or(other),
        };
    }

    /// Limits the report to `most`.
    fn lower(&mut self, most: Amount) {
        self.amount = self.amount.min(most);
        self.lasts = self.lasts.map(|(amount, until)| (amount.min(most), until));
    }
}

impl BookEntry {
    /// Returns the part of a report whose leases lasted at the time of this entry.
    fn part_of(&self, report: &ReportedLease) -> Amount {
        let (amount, until) = match report.lasts {
            _ if report.said >= self.at => (report.amount, report.until),
            Some(lasts) => lasts,
            // No earlier amount of the parent is known.
            None if self.is_first => (report.amount, report.until),
            None => (Amount::ZERO, report.until),
        };
        if until > self.at {
            amount
        } else {
            Amount::ZERO
        }
    }

    fn unreported(&self) -> ExactSum {
        ExactSum::from(self.amount).without(&self.reported)
    }
}

#[cfg(test)]
mod tests;
