//! The claims on a resource by priority band: one index for each.
//!
//! Only PRIORITY_BANDS looks at priorities; for every other algorithm all claims are in one band.

use std::collections::BTreeMap;

use crate::amount::Amount;
use crate::claim::Claim;
use crate::claim_index::{ClaimIndex, EmptiedTree};
use crate::rounding::is_enough;
use crate::template::AlgorithmKind;

/// Claim indexes by band, sorted. A band without claims is not there.
#[derive(Clone, Debug, Default)]
pub struct Bands {
    /// The band of priority 0: of most resources the only one.
    only: ClaimIndex,
    /// All others.
    #[expect(clippy::box_collection, reason = "without it, it takes one word")]
    others: Option<Box<BTreeMap<i64, ClaimIndex>>>,
}

/// What another demand of a holder does to its claims.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ClaimChange {
    /// That claim of that band is there no more.
    Goes(i64, Claim),
    /// That claim of that band is new.
    Comes(i64, Claim),
}

impl Bands {
    /// The band of algorithms that do not look at priorities.
    pub(crate) const ONLY: i64 = 0;

    /// All claims of an algorithm that does not look at priorities.
    pub fn only(&self) -> &ClaimIndex {
        debug_assert!(self.others.is_none());
        &self.only
    }

    /// The claims in a band, if there are any.
    pub fn get(&self, band: i64) -> Option<&ClaimIndex> {
        if band == Self::ONLY {
            return Some(&self.only).filter(|only| !only.is_empty());
        }
        self.others.as_ref()?.get(&band)
    }

    /// Bands by rising priority.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &ClaimIndex)> {
        let others = self.others.iter().flat_map(|others| others.iter());
        self.with_only(others, |band| band > Self::ONLY)
    }

    /// Bands by falling priority.
    pub(crate) fn iter_falling(&self) -> impl Iterator<Item = (i64, &ClaimIndex)> {
        let others = self.others.iter().flat_map(|others| others.iter().rev());
        self.with_only(others, |band| band < Self::ONLY)
    }

    /// Merges the band that is kept by itself into the others: it comes just before the first band that `is_behind` it.
    fn with_only<'a>(
        &'a self,
        mut others: impl Iterator<Item = (&'a i64, &'a ClaimIndex)>,
        is_behind: impl Fn(i64) -> bool,
    ) -> impl Iterator<Item = (i64, &'a ClaimIndex)> {
        let mut only = self.get(Self::ONLY).map(|only| (Self::ONLY, only));
        // The first of those behind it.
        let mut next = None;
        std::iter::from_fn(move || {
            if next.is_some() {
                return next.take();
            }
            match others.next().map(|(band, index)| (*band, index)) {
                Some(other) if only.is_some() && is_behind(other.0) => {
                    next = Some(other);
                    only.take()
                }
                None => only.take(),
                other => other,
            }
        })
    }

    /// How many bands have claims.
    pub fn len(&self) -> usize {
        let others = self.others.as_ref().map_or(0, |others| others.len());
        others + usize::from(!self.only.is_empty())
    }

    /// Whether nobody claims anything.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts a claim in.
    pub fn insert(&mut self, band: i64, claim: Claim) {
        self.index_mut(band).insert(claim);
    }

    /// Takes a claim out that was put in. Returns the tree of the band that is empty now, if it was a large one.
    pub fn remove(&mut self, band: i64, claim: Claim) -> Option<EmptiedTree> {
        if band == Self::ONLY {
            return self.only.remove(claim);
        }
        let others = self.others.as_mut()?;
        let index = others.get_mut(&band)?;
        let emptied = index.remove(claim);
        if index.is_empty() {
            others.remove(&band);
        }
        if others.is_empty() {
            self.others = None;
        }
        emptied
    }

    /// Takes a claim out that was put in, and puts another one in, in the same band.
    pub fn replace(&mut self, band: i64, before: Claim, after: Claim) {
        self.index_mut(band).replace(before, after);
    }

    /// A claim that was put in goes, or another one comes. Returns the tree of the band that is empty now, if it was a
    /// large one.
    pub(crate) fn change(&mut self, change: ClaimChange) -> Option<EmptiedTree> {
        match change {
            ClaimChange::Goes(band, claim) => self.remove(band, claim),
            ClaimChange::Comes(band, claim) => {
                self.insert(band, claim);
                None
            }
        }
    }

    /// Whether the capacity is enough for all bands together.
    pub(crate) fn are_satisfied_by(&self, capacity: Amount) -> bool {
        let others = self.others.iter().flat_map(|others| others.values());
        let others: f64 = others.map(ClaimIndex::total_wants).sum();
        is_enough(capacity.get(), self.only.total_wants() + others)
    }

    /// Σ subclients of all bands.
    pub fn total_subclients(&self) -> f64 {
        let others = self.others.iter().flat_map(|others| others.values());
        self.only.total_subclients() + others.map(ClaimIndex::total_subclients).sum::<f64>()
    }

    /// Bytes of memory behind it.
    pub fn memory_bytes(&self) -> usize {
        let others = self.others.iter().flat_map(|others| others.values());
        let bytes = |index: &ClaimIndex| size_of::<(i64, ClaimIndex)>() + index.memory_bytes();
        self.only.memory_bytes() + others.map(bytes).sum::<usize>()
    }

    fn index_mut(&mut self, band: i64) -> &mut ClaimIndex {
        if band == Self::ONLY {
            return &mut self.only;
        }
        let others = self.others.get_or_insert_default();
        others.entry(band).or_default()
    }
}

/// The band a claim of that priority is kept in: its own for PRIORITY_BANDS, one for all else.
pub fn band_of(kind: AlgorithmKind, priority: i64) -> i64 {
    match kind {
        AlgorithmKind::PriorityBands => priority,
        _ => Bands::ONLY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bands(wants: &[(i64, f64)]) -> Bands {
        let mut bands = Bands::default();
        for (band, wants) in wants {
            bands.insert(*band, Claim::of_client(Amount::new(*wants).unwrap()));
        }
        bands
    }

    #[test]
    fn a_capacity_a_rounding_below_what_all_bands_want_is_enough_and_one_below_that_is_not() {
        let cases: [&[(i64, f64)]; 5] = [
            &[(0, 0.3)],
            &[(-3, 0.3)],
            &[(1, 0.1), (2, 0.2)],
            &[(-1, 0.1), (0, 0.2)],
            &[(-1, 3.0), (0, 1e6), (0, 7.0), (5, 0.1)],
        ];
        for wants in cases {
            let bands = bands(wants);
            let total: f64 = wants.iter().map(|(_, wants)| wants).sum();
            for (capacity, is_enough) in [
                (2.0 * total, true),
                (total, true),
                (total.next_down().next_down(), true),
                (total * (1.0 - 1e-12), false),
                (0.0, false),
            ] {
                let capacity = Amount::new(capacity).unwrap();
                let found = bands.are_satisfied_by(capacity);
                assert_eq!(found, is_enough, "{capacity:?} for {wants:?}");
            }
        }
        assert!(bands(&[]).are_satisfied_by(Amount::ZERO), "nobody");
    }

    #[test]
    fn bands_come_in_order_whichever_of_them_have_claims() {
        for present in [
            &[][..],
            &[0],
            &[-5],
            &[3],
            &[-5, -2, 0, 3],
            &[-5, 3],
            &[0, 3],
            &[-2, 0],
        ] {
            let claims: Vec<_> = present.iter().map(|band| (*band, 1.0)).collect();
            let bands = bands(&claims);
            let rising: Vec<i64> = bands.iter().map(|(band, _)| band).collect();
            assert_eq!(rising, present);
            let falling = bands.iter_falling().map(|(band, _)| band);
            assert!(falling.eq(present.iter().copied().rev()), "{present:?}");
        }
    }

    #[test]
    fn the_clients_of_all_bands_are_counted() {
        let bands = bands(&[(-2, 1.0), (0, 1.0), (0, 2.0), (7, 1.0)]);
        assert_eq!(bands.total_subclients(), 4.0);
        assert_eq!(Bands::default().total_subclients(), 0.0);
    }
}
