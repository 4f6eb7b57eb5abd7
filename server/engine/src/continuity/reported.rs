//! The reports of all holders, and the part of each that is confirmed.
//!
//! A fresh master knows nothing, so it believes reports as long as all of them fit into the capacity. If they do
//! not, some are wrong, or the capacity was lowered. Then the capacity is divided max-min: a holder that is first, or
//! reports most, takes nothing from a holder that reports less than an equal part. Leases for a report that was cut are
//! short, so an early holder shrinks as soon as others have reported.
//!
//! A holder that was cut has less by now, and reports that. So its full report is remembered, and counts until it is
//! confirmed, or the holder wants less or has ended.
//!
//! Below the root the capacity is what the parent grants, which depends on the reports that went up. So a report counts
//! here once the parent has answered a request that contained it; until then it is reserved in full, and not cut.

use std::collections::BTreeMap;

use crate::amount::Amount;
use crate::claims::{Claim, ClaimIndex, Level, Subclients};
use crate::exact_sum::ExactSum;
use crate::holders::Slot;
use crate::rounding::SHORTFALL;

/// The reports of all holders that have something, by a hash of the holder's name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reported {
    reports: BTreeMap<u64, HolderReport>,
    /// The claims that count.
    index: ClaimIndex,
    /// The sum of the present reports. A report that was cut counts with its present amount.
    said: ExactSum,
    /// Reports that the parent has not answered yet, by their number.
    unanswered: BTreeMap<u64, u64>,
}

/// One holder's report.
#[derive(Clone, Copy, Debug, Default)]
struct HolderReport {
    counts: Option<Claim>,
    said: Amount,
    cut_from: Option<Amount>,
    unanswered: Option<Unanswered>,
    /// This mastership has granted the holder something.
    is_granted: bool,
}

/// A report that the parent has not answered yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unanswered {
    /// Its number: how many reports came before it.
    pub(crate) number: u64,
    /// The holder.
    pub(crate) slot: Slot,
    /// The reported amount, or what it was cut from.
    pub(crate) claim: Claim,
    /// The reported amount.
    pub(crate) said: Amount,
    /// The amount reserved for the holder before the report, by a grant of this mastership.
    pub(crate) held: Amount,
}

/// A report as a claim, of at least one client.
pub(crate) fn claim_of(report: Amount, clients: f64) -> Claim {
    Claim {
        wants: report,
        subclients: Subclients::new(clients.max(1.0)).unwrap_or(Subclients::MAX),
    }
}

/// The part of a claim that is confirmed at a level; all of it, to the bit, if that is above it.
pub(crate) fn part_of(claim: Claim, level: f64) -> Amount {
    if claim.ratio() <= level {
        return claim.wants;
    }
    Amount::from_computed(Level::At(level).share_of(claim))
}

impl Reported {
    /// A holder's report counts from now on, unless it reports nothing. It reports `said`; `claim` may be a larger
    /// amount, from which it was cut.
    pub(crate) fn count(&mut self, holder: u64, claim: Claim, said: Amount) {
        let report = self.reports.entry(holder).or_default();
        self.said.replace(report.said, said);
        report.said = said;
        if let Some(unanswered) = report.unanswered.take() {
            self.unanswered.remove(&unanswered.number);
        }
        let counts = Some(claim).filter(|claim| !claim.wants.is_zero());
        let before = std::mem::replace(&mut report.counts, counts);
        let is_nothing = counts.is_none() && report.cut_from.is_none();
        if before != counts {
            before.inspect(|claim| self.index.remove(*claim));
            counts.inspect(|claim| self.index.insert(*claim));
        }
        if is_nothing {
            self.reports.remove(&holder);
        }
    }

    /// A holder's report must be answered by the parent before it counts.
    pub(crate) fn wait_for_answer(&mut self, holder: u64, mut unanswered: Unanswered) {
        let report = self.reports.entry(holder).or_insert(HolderReport {
            is_granted: !unanswered.held.is_zero(),
            ..HolderReport::default()
        });
        if !report.is_granted {
            unanswered.held = Amount::ZERO;
        }
        if let Some(before) = report.unanswered.replace(unanswered) {
            self.unanswered.remove(&before.number);
            unanswered.held = unanswered.held.min(before.held);
            report.unanswered = Some(unanswered);
        }
        self.unanswered.insert(unanswered.number, holder);
    }

    /// The parent has answered that many reports. They count from now on, and are returned with their holders.
    pub(crate) fn answered(&mut self, reports: u64) -> Vec<(u64, Unanswered)> {
        let later = self.unanswered.split_off(&(reports + 1));
        let answered = std::mem::replace(&mut self.unanswered, later);
        let taken = answered.into_values().filter_map(|holder| {
            let report = self.reports.get_mut(&holder)?;
            Some((holder, report.unanswered.take()?))
        });
        let taken: Vec<_> = taken.collect();
        for (holder, unanswered) in &taken {
            self.count(*holder, unanswered.claim, unanswered.said);
        }
        taken
    }

    /// Notes a grant. `cut_from`: the report that was cut. None: all of the report was confirmed.
    pub(crate) fn note_granted(&mut self, holder: u64, cut_from: Option<Amount>) {
        if let Some(report) = self.reports.get_mut(&holder) {
            report.cut_from = cut_from;
            report.is_granted = true;
        }
    }

    /// Returns the full report of a holder that was cut.
    pub(crate) fn cut_from(&self, holder: u64) -> Option<Amount> {
        self.reports.get(&holder)?.cut_from
    }

    /// Returns the part of a holder's report that counts.
    pub(crate) fn counts(&self, holder: u64) -> Option<Claim> {
        self.reports.get(&holder)?.counts
    }

    /// Removes a holder that is gone, or whose name another process has.
    pub(crate) fn forget(&mut self, holder: u64) {
        let Some(report) = self.reports.remove(&holder) else {
            return;
        };
        self.said.subtract(report.said);
        if let Some(claim) = report.counts {
            self.index.remove(claim);
        }
        if let Some(unanswered) = report.unanswered {
            self.unanswered.remove(&unanswered.number);
        }
    }

    /// The limit for each client, if the counted reports do not fit into that capacity.
    pub(crate) fn level_for(&self, capacity: Amount) -> Option<f64> {
        match self.index.level_for(capacity.get()) {
            Level::AboveAll => None,
            Level::At(level) => Some(level),
        }
    }

    /// Whether the present reports fit into that capacity, except for rounding: holders that were cut have shrunk.
    pub(crate) fn said_fits(&self, capacity: Amount) -> bool {
        self.said.rounded_down() <= capacity.get() * (1.0 + SHORTFALL)
    }

    /// Returns the rest of `capacity` beside the present reports of all other holders.
    pub(crate) fn left_beside_others(&self, holder: u64, capacity: Amount) -> Amount {
        let mut others = self.said;
        if let Some(report) = self.reports.get(&holder) {
            others.subtract(report.said);
        }
        others.left_of(capacity)
    }

    /// Whether there are no reports.
    pub(crate) fn is_empty(&self) -> bool {
        self.reports.is_empty()
    }

    /// Asserts that what is kept agrees with itself. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If it does not.
    pub(crate) fn assert_consistent(&self, is_holder: impl Fn(u64) -> bool) {
        let counted = self
            .reports
            .values()
            .filter(|report| report.counts.is_some());
        assert_eq!(counted.count(), self.index.len(), "reports that count");
        let mut said = ExactSum::ZERO;
        self.reports
            .values()
            .for_each(|report| said.add(report.said));
        assert_eq!(said, self.said, "the sum of present reports");
        let waiting = self.reports.values().filter_map(|report| report.unanswered);
        assert_eq!(waiting.count(), self.unanswered.len(), "unanswered reports");
        for holder in self.reports.keys() {
            assert!(is_holder(*holder), "a report of a holder that has ended");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::Demand;
    use crate::division::{Bound, DecidedBy, KnownWhy};
    use crate::holders::{Holding, Lease, LeaseTable, Leases};
    use crate::id::{HolderId, HolderName};
    use crate::time::Time;

    fn amount(amount: f64) -> Amount {
        Amount::new(amount).unwrap()
    }

    fn claim(wants: f64) -> Claim {
        claim_of(amount(wants), 1.0)
    }

    fn slot() -> Slot {
        let lease = Lease {
            capacity: Amount::ZERO,
            expires_at: Time::from_secs(60),
        };
        let demand = Demand::Client {
            priority: 0,
            claim: claim(1.0),
        };
        let why = KnownWhy {
            decided_by: DecidedBy::Learning,
            bound: Bound::Share,
        };
        let id = HolderId::client(HolderName::new("a").unwrap(), None);
        let holding = Holding::new(id, demand, Leases::new(lease), why, Time::ZERO);
        LeaseTable::new(0).insert(holding)
    }

    fn unanswered(number: u64, held: f64) -> Unanswered {
        Unanswered {
            number,
            slot: slot(),
            claim: claim(50.0),
            said: amount(50.0),
            held: amount(held),
        }
    }

    #[test]
    fn reports_count_until_they_are_zero_or_their_holders_are_gone() {
        let mut reported = Reported::default();
        reported.count(1, claim(60.0), amount(60.0));
        reported.count(2, claim(60.0), amount(60.0));
        assert_eq!(reported.level_for(amount(100.0)), Some(50.0));
        assert!(!reported.said_fits(amount(119.0)) && reported.said_fits(amount(120.0)));
        assert_eq!(reported.left_beside_others(2, amount(100.0)), amount(40.0));
        assert_eq!(reported.left_beside_others(3, amount(130.0)), amount(10.0));
        reported.forget(1);
        assert!(reported.said_fits(amount(60.0)));
        assert_eq!(reported.left_beside_others(2, amount(100.0)), amount(100.0));
        reported.count(2, claim(0.0), Amount::ZERO);
        assert!(reported.is_empty() && reported.said_fits(Amount::ZERO));
        assert_eq!(claim_of(amount(5.0), 0.1).subclients, Subclients::ONE);
        assert_eq!(claim_of(amount(5.0), 7.0).subclients.get(), 7.0);
    }

    #[test]
    fn a_waiting_report_holds_what_was_granted_before_and_not_what_was_reported_before() {
        let held = |reported: &mut Reported, until| {
            let answered = reported.answered(until);
            assert_eq!(answered.len(), 1);
            answered[0].1.held.get()
        };
        let mut reported = Reported::default();
        // Two reports, one after the other: the first one reserved capacity without a grant.
        reported.wait_for_answer(1, unanswered(1, 0.0));
        reported.wait_for_answer(1, unanswered(2, 30.0));
        assert_eq!(held(&mut reported, 2), 0.0);
        // A grant had reserved the 10 before the first of the two.
        reported.wait_for_answer(2, unanswered(3, 10.0));
        reported.wait_for_answer(2, unanswered(4, 30.0));
        assert_eq!(held(&mut reported, 4), 10.0);
        // Its report counted already, and it was granted something since.
        reported.count(3, claim(5.0), amount(5.0));
        reported.note_granted(3, None);
        reported.wait_for_answer(3, unanswered(5, 7.0));
        assert_eq!(held(&mut reported, 5), 7.0);
    }
}
