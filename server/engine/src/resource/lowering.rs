//! What a holder may keep when the capacity is lowered below what is out.
//!
//! Each lowering divides the lowered capacity among the claims of its moment; a holder that asks
//! for the first time since keeps no more than its share by that. A holder that has missed several
//! keeps no more than its share by the strictest: the first of them promised that within a lease
//! length no more than its capacity would be out, and a parent that heard so relies on it.

use std::collections::VecDeque;

use crate::algorithm::Rule;
use crate::amount::Amount;
use crate::lease_table::Holding;
use crate::rounding::KEPT;

/// Lowerings that are kept apart. Who has missed more is treated as having missed the strictest of them.
const HISTORY_MAX: usize = 8;

/// The lowerings since all that is out last fitted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lowerings {
    /// Counts them, over all time.
    number: u32,
    /// By rising number: the strictest of this lowering and all after it. Hardly any resource has one.
    #[expect(clippy::box_collection, reason = "without it, it takes one word")]
    strictest: Option<Box<VecDeque<(u32, Rule)>>>,
}

impl Lowerings {
    /// How many there have been.
    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    /// One more; the first one since all that is out fitted, or on top of others.
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
            // The one before is stricter.
            strictest.pop_back();
        }
        strictest.push_back((self.number, rule.clone()));
    }

    /// What a holder may keep, if it has not asked since the last lowering.
    pub(crate) fn kept(&self, holding: &Holding) -> Option<Amount> {
        if holding.lowering == self.number {
            return None;
        }
        let missed = holding.lowering.wrapping_add(1);
        // The last one that covers all it missed; what is from before them all fitted once.
        let covers = |(number, _): &&(u32, Rule)| number.wrapping_sub(missed).cast_signed() <= 0;
        let strictest = self.strictest.as_ref()?;
        let rule = strictest.iter().rev().find(covers);
        let (_, rule) = rule.or_else(|| strictest.front())?;
        let share = rule.share_of(&holding.demand).amount;
        // Older leases run out; they are never made longer.
        Some(Amount::from_computed(share.get() * KEPT).min(holding.newest().capacity))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algorithm::{Bound, Reason, Why};
    use crate::claim::Claim;
    use crate::demand::Demand;
    use crate::id::{HolderId, HolderName};
    use crate::lease::{Lease, Leases};
    use crate::time::Time;

    fn holding(lowering: u32) -> Holding {
        let amount = Amount::new(100.0).unwrap();
        let lease = Lease {
            capacity: amount,
            expires_at: Time::from_secs(60),
        };
        let why = Why {
            reason: Reason::EnoughForAll,
            bound: Bound::Share,
        };
        let demand = Demand::Client {
            priority: 0,
            claim: Claim::of_client(amount),
        };
        let id = HolderId::client(HolderName::new("a").unwrap());
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
    fn who_missed_several_keeps_what_the_strictest_leaves() {
        let mut lowerings = Lowerings::default();
        check(&lowerings, 0, None);
        lowerings.add(&Rule::Level(10.0), true);
        lowerings.add(&Rule::Level(40.0), false);
        lowerings.add(&Rule::Level(20.0), false);
        check(&lowerings, 0, Some(10.0));
        check(&lowerings, 1, Some(20.0));
        check(&lowerings, 2, Some(20.0));
        check(&lowerings, 3, None);
        // Everything fitted in between.
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
            holding.why.shown(Some(Reason::EnoughForAll)),
            Time::ZERO,
        );
        assert_eq!(holding.reserved().get(), 100.0);
        assert_eq!(lowerings.kept(&holding).unwrap().get(), 30.0);
    }

    #[test]
    fn of_many_lowerings_who_missed_some_never_keeps_too_much() {
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
