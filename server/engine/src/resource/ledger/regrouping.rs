//! All claims of a resource, put in other bands a few at a time.
//!
//! PRIORITY_BANDS keeps the claims of each priority apart, every other algorithm keeps all of them together. When a
//! template changes from the one to the other, each claim has to be put elsewhere, and with a million of them that
//! takes a good part of a second. So new bands grow beside those in use ([`Regrouping`]); a claim that changes
//! meanwhile changes in both. When all are there, the new bands take the place of the others.
//!
//! Until then the resource is divided by an algorithm that the bands in use allow ([`divides_by`]): all else of the
//! new template counts already, and no more is granted than there is. A capacity that is lowered meanwhile is divided
//! by that one as well, and stays so: whoever asks later keeps what goes together with what others were given by it.
//! PRIORITY_BANDS that stands in has the guarantees that it had before: its template is gone, and the new one has none.

use std::collections::BTreeMap;

use crate::bands::Bands;
use crate::demand::Demand;
use crate::lease_table::Slot;
use crate::resource::ledger::Ledger;
use crate::resource::ledger::claims::Claims;
use crate::template::AlgorithmKind;
use crate::time::Time;

/// Claims that are put in other bands at once.
const AT_ONCE: usize = 128;

/// Claims on their way into other bands. See the [module](self).
#[derive(Debug)]
pub(super) struct Regrouping {
    /// Those that are there, or on their way there.
    claims: Claims,
    /// Who is in a slot before this one is there.
    next: Slot,
    /// When to go on.
    due: Time,
    /// What priorities were guaranteed before. Empty if claims were together.
    former_min_shares: BTreeMap<i64, f64>,
}

impl Regrouping {
    /// Nothing is there yet.
    pub(super) fn begin(claims: Claims, former_min_shares: BTreeMap<i64, f64>, now: Time) -> Self {
        Self {
            claims,
            next: Slot::FIRST,
            due: now,
            former_min_shares,
        }
    }

    /// When to go on.
    pub(super) fn due(&self) -> Time {
        self.due
    }

    /// Those that are there.
    pub(super) fn claims(&self) -> &Claims {
        &self.claims
    }

    /// The same, for those who come, change and go.
    pub(super) fn claims_mut(&mut self) -> &mut Claims {
        &mut self.claims
    }

    /// The first slot of those who are not there.
    pub(super) fn next(&self) -> Slot {
        self.next
    }

    /// Whoever is in that slot is there.
    pub(super) fn has(&self, slot: Slot) -> bool {
        slot < self.next
    }

    /// Puts in who is in the next slot. Returns how many steps that took.
    pub(super) fn put_next(&mut self, slot: Slot, demand: Option<&Demand>) -> usize {
        self.next = slot.next();
        demand.map_or(0, |demand| self.claims.insert(demand)).max(1)
    }

    /// The rest is for later.
    pub(super) fn put_off(&mut self, now: Time) {
        self.due = now;
    }
}

impl Ledger {
    /// From now on, or as soon as they are there, claims are in bands as this algorithm has them. Until then, priorities
    /// have the guarantees of the former one. Returns how many were put elsewhere.
    pub(in crate::resource) fn change_kind(
        &mut self,
        kind: AlgorithmKind,
        former_min_shares: BTreeMap<i64, f64>,
        now: Time,
    ) -> usize {
        let regrouping = self.regrouping.as_ref();
        let claims = regrouping.map_or(&self.claims, |regrouping| &regrouping.claims);
        if kind == claims.kind() {
            return 0;
        }
        self.note_demand_changed();
        if kind.has_bands() == self.kind().has_bands() {
            self.claims.change_kind(kind);
            if let Some(given_up) = self.regrouping.take() {
                self.waste.push(given_up);
            }
            return 0;
        }
        if let Some(regrouping) = &mut self.regrouping {
            regrouping.claims.change_kind(kind);
            return 0;
        }
        let claims = self.claims.none_yet(kind);
        let regrouping = Regrouping::begin(claims, former_min_shares, now);
        self.regrouping = Some(Box::new(regrouping));
        self.regroup(AT_ONCE, now)
    }

    /// Puts up to so many claims more into other bands, if they are on their way. Returns how many.
    pub(in crate::resource) fn regroup(&mut self, steps_max: usize, now: Time) -> usize {
        let Some(mut regrouping) = self.regrouping.take() else {
            return 0;
        };
        let mut steps = 0;
        let mut places = self.table.places_from(regrouping.next());
        loop {
            if steps >= steps_max {
                regrouping.put_off(now);
                self.regrouping = Some(regrouping);
                return steps;
            }
            if !regrouping.claims.are_settled() {
                steps += regrouping.claims.settle(now, &mut self.waste);
            } else if let Some((slot, holding)) = places.next() {
                steps += regrouping.put_next(slot, holding.map(|holding| &holding.demand));
            } else {
                break;
            }
        }
        drop(places);
        let former = std::mem::replace(&mut self.claims, regrouping.claims);
        self.waste.push(Box::new(former));
        self.note_demand_changed();
        steps
    }

    /// While claims are on their way: what priorities were guaranteed before.
    pub(in crate::resource) fn former_min_shares(&self) -> Option<&BTreeMap<i64, f64>> {
        let regrouping = self.regrouping.as_ref();
        regrouping.map(|regrouping| &regrouping.former_min_shares)
    }

    /// By this, claims are in the bands that are in use.
    pub(in crate::resource) fn kind(&self) -> AlgorithmKind {
        self.claims.kind()
    }

    /// The bands that are to be in use, as far as they are there.
    pub(in crate::resource) fn bands_to_be(&self) -> &Bands {
        let regrouping = self.regrouping.as_ref();
        regrouping.map_or(self.bands(), |regrouping| regrouping.claims.bands())
    }

    /// Asserts that all claims are in other bands that are said to be. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If they are not.
    pub(super) fn assert_regrouped(&self) {
        let Some(regrouping) = &self.regrouping else {
            return;
        };
        let mut claims = 0;
        let all = self.table.places_from(Slot::FIRST);
        let there = all.filter(|(slot, _)| regrouping.has(*slot));
        for (_, holding) in there {
            let demand = holding.map(|holding| &holding.demand).into_iter();
            demand.for_each(|it| it.for_each_claim(regrouping.claims.kind(), |_, _| claims += 1));
        }
        assert_eq!(
            regrouping.claims.len_to_be(),
            claims,
            "claims in other bands"
        );
    }
}

/// By what a resource is divided that is to be divided by `wanted`, while its claims are in bands as `grouped` has
/// them.
///
/// Both that stand in promise the total, so there is never too much, whatever the one wanted promises.
pub(in crate::resource) fn divides_by(
    wanted: AlgorithmKind,
    grouped: AlgorithmKind,
) -> AlgorithmKind {
    match (wanted.has_bands(), grouped.has_bands()) {
        (true, false) => AlgorithmKind::FairShare,
        (false, true) => AlgorithmKind::PriorityBands,
        (true, true) | (false, false) => wanted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_in_can_be_solved_by_the_bands_in_use_and_promises_the_total() {
        for wanted in AlgorithmKind::ALL {
            for grouped in AlgorithmKind::ALL {
                let by = divides_by(wanted, grouped);
                assert_eq!(by.has_bands(), grouped.has_bands(), "{wanted} {grouped}");
                assert!(by == wanted || by.promises_total(), "{wanted} {grouped}");
            }
        }
    }
}
