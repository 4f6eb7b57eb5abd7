//! Amounts that holders may keep after the capacity was lowered below the sum of the leases.
//!
//! Each lowering divides the lowered capacity among the claims of that moment. A holder that asks for the first time
//! since then keeps at most its share of that division. A holder that has missed several lowerings keeps at most its
//! share by the strictest. The first of them promised that within a lease length the leases would fit its capacity, and
//! a parent that got this promise relies on it.

use std::collections::VecDeque;

use crate::amount::Amount;
use crate::division::Rule;
use crate::holders::Holding;
use crate::rounding::KEPT;

/// Largest number of separate lowerings. A holder that has missed more counts as having missed the strictest of them.
const HISTORY_MAX: usize = 8;

/// Lowerings since all leases last fitted the capacity.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lowerings {
    /// Number of lowerings, over all time.
    number: u32,
    /// By rising number: the strictest rule of this lowering and all later ones. Few resources have any.
    #[expect(clippy::box_collection, reason = "without it, it takes one word")]
    strictest: Option<Box<VecDeque<(u32, Rule)>>>,
}

impl Lowerings {
    /// Number of lowerings.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// Adds a lowering. `is_first`: all leases fitted before it.
    pub(crate) fn add(&mut self, rule: &Rule, is_first: bool) {
        self.number = self.number.wrapping_add(1);
        let strictest = self.strictest.get_or_insert_default();
        if is_first {
            strictest.clear();
        }
        for (_, earlier) in strictest.iter_mut() {
            *earlier = earlier.stricter(rule);
        }
        if strictest.len() == HISTORY_MAX {
            // The previous one is stricter.
            strictest.pop_back();
        }
        strictest.push_back((self.number, rule.clone()));
    }

    /// Returns the amount that a holder may keep, if it has not asked since the last lowering.
    pub(crate) fn kept(&self, holding: &Holding) -> Option<Amount> {
        if holding.lowering == self.number {
            return None;
        }
        let missed = holding.lowering.wrapping_add(1);
        // The last rule that covers all that it missed. Leases from before the first one fitted together.
        let covers = |(number, _): &&(u32, Rule)| number.wrapping_sub(missed).cast_signed() <= 0;
        let strictest = self.strictest.as_ref()?;
        let rule = strictest.iter().rev().find(covers);
        let (_, rule) = rule.or_else(|| strictest.front())?;
        let share = rule.share_of(&holding.demand);
        // Older leases run out. They are never made longer.
        Some(Amount::from_computed(share.get() * KEPT).min(holding.newest().capacity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claims::{Claim, Demand};
    use crate::division::{Bound, DecidedBy, KnownWhy};
    use crate::holders::{Lease, Leases};
    use crate::id::{HolderId, HolderName};
    use crate::time::Time;

    fn holding(lowering: u32) -> Holding {
        let amount = Amount::new(100.0).unwrap();
        let lease = Lease {
            capacity: amount,
            expires_at: Time::from_secs(60),
        };
        let why = KnownWhy {
            decided_by: DecidedBy::Division,
            bound: Bound::Share,
        };
        let demand = Demand::Client {
            priority: 0,
            claim: Claim::of_client(amount),
        };
        let id = HolderId::client(HolderName::new("a").unwrap(), None);
        let mut holding = Holding::new(id, demand, Leases::new(lease), why, Time::ZERO);
        holding.lowering = lowering;
        holding
    }

    #[track_caller]
    fn check(lowerings: &Lowerings, since: u32, kept: Option<f64>) {
        let got = lowerings.kept(&holding(since)).map(Amount::get);
        match (got, kept) {
            (Some(got), Some(kept)) => assert!((got - kept).abs() < 1e-9, "{got}, not {kept}"),
            (got, kept) => assert_eq!(got, kept),
        }
    }

    #[test]
    fn a_holder_that_missed_several_keeps_its_share_by_the_strictest() {
        let mut lowerings = Lowerings::default();
        check(&lowerings, 0, None);
        lowerings.add(&Rule::Level(10.0), true);
        lowerings.add(&Rule::Level(40.0), false);
        lowerings.add(&Rule::Level(20.0), false);
        check(&lowerings, 0, Some(10.0));
        check(&lowerings, 1, Some(20.0));
        check(&lowerings, 2, Some(20.0));
        check(&lowerings, 3, None);
        // All leases fitted in between.
        lowerings.add(&Rule::Level(70.0), true);
        check(&lowerings, 0, Some(70.0));
        check(&lowerings, 3, Some(70.0));
    }

    #[test]
    fn an_older_larger_lease_is_not_made_longer() {
        let mut lowerings = Lowerings::default();
        lowerings.add(&Rule::Level(50.0), true);
        let mut holding = holding(0);
        let shrunk = Lease {
            capacity: Amount::new(30.0).unwrap(),
            expires_at: Time::from_secs(70),
        };
        let mut leases = Leases::new(holding.newest());
        leases.grant(shrunk);
        holding = Holding::new(
            holding.holder(),
            holding.demand,
            leases,
            holding.why,
            Time::ZERO,
        );
        assert_eq!(holding.reserved().get(), 100.0);
        assert_eq!(lowerings.kept(&holding).unwrap().get(), 30.0);
    }

    #[test]
    fn a_holder_that_missed_some_of_many_lowerings_never_keeps_too_much() {
        let mut lowerings = Lowerings::default();
        let levels: Vec<f64> = (0..50_u32).map(|n| f64::from(n * 37 % 50) + 1.0).collect();
        for (number, level) in levels.iter().enumerate() {
            lowerings.add(&Rule::Level(*level), number == 0);
        }
        for since in 0..50 {
            let strictest = levels[since..]
                .iter()
                .copied()
                .fold(f64::INFINITY, f64::min);
            let kept = lowerings.kept(&holding(since as u32)).unwrap().get();
            assert!(kept <= strictest, "{since}: {kept} of {strictest}");
        }
    }
}
