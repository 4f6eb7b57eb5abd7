//! At the root: the amount that holders may use by leases of earlier masters, and have not reported to this one.
//!
//! It begins as the mark of the last master. A report moves its amount from there to the holder's own reserve, so both
//! together stay the same, and nothing that may be in use counts as free. Until a holder has a lease of this master, its
//! newest report counts: an old request that arrives late may say more than the holder still has. From then on its
//! leases are known, and what it gives back is free.

use std::collections::BTreeMap;

use crate::amount::Amount;
use crate::exact_sum::ExactSum;
use crate::rounding::SHORTFALL;

/// Amount that is not reported yet.
#[derive(Clone, Debug)]
pub(crate) struct Unreported {
    left: ExactSum,
    /// Reported amounts, by a hash of the holder's name, and whether the holder has gone since.
    reported: BTreeMap<u64, (Amount, bool)>,
}

impl Unreported {
    /// Returns the amount of a mark, without any report.
    pub(crate) fn of_mark(amount: Amount) -> Self {
        Self {
            left: ExactSum::from(amount),
            reported: BTreeMap::new(),
        }
    }

    /// Returns the amount.
    pub(crate) fn left(&self) -> &ExactSum {
        &self.left
    }

    /// Returns the report of a holder, as far as it counts.
    pub(crate) fn reported(&self, holder: u64) -> Amount {
        self.reported.get(&holder).map_or(Amount::ZERO, |it| it.0)
    }

    /// Notes that a holder is gone: what it reported is free.
    pub(crate) fn note_gone(&mut self, holder: u64) {
        if let Some((_, is_gone)) = self.reported.get_mut(&holder) {
            *is_gone = true;
        }
    }

    /// Counts a holder's report in place of the one before. A holder that went has given its amount back, which remains
    /// free. Returns whether the report fits. If not, nothing changes: a holder reports too much, or etcd was restored to
    /// an older state.
    #[must_use]
    pub(crate) fn count(&mut self, holder: u64, report: Amount) -> bool {
        let (before, is_gone) = self.reported.get(&holder).copied().unwrap_or_default();
        let report = if is_gone { report.max(before) } else { report };
        if report == before {
            return true;
        }
        let mut there = self.left;
        there.add(before);
        if report.get() > there.rounded_down() * (1.0 + SHORTFALL) {
            return false;
        }
        let report = report.min(Amount::from_computed(there.rounded_down()));
        there.subtract(report);
        self.left = there;
        self.reported.insert(holder, (report, is_gone));
        true
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;

    fn amount(amount: f64) -> Amount {
        Amount::new(amount).unwrap()
    }

    #[test]
    fn what_is_reported_and_what_is_not_add_up_to_the_mark() {
        let mut unreported = Unreported::of_mark(amount(100.0));
        for (holder, report, fits, left) in [
            (1, 30.0, true, 70.0),
            (2, 70.0, true, 0.0),
            (3, 0.0, true, 0.0),
            (3, 1.0, false, 0.0),
            // It says less than in a request that came late.
            (1, 10.0, true, 20.0),
            (1, 40.0, false, 20.0),
            (1, 30.0, true, 0.0),
        ] {
            assert_eq!(unreported.count(holder, amount(report)), fits, "{holder}");
            assert_eq!(unreported.left().rounded_down(), left, "{holder}");
        }
        assert_eq!(unreported.reported.len(), 2, "none for a report of nothing");
        // It comes again with nothing, after others have got what it had.
        unreported.note_gone(1);
        assert!(unreported.count(1, amount(0.0)));
        assert_eq!(unreported.left().rounded_down(), 0.0);
    }
}
