//! The claims on a resource by priority band: one index for each.
//!
//! Only PRIORITY_BANDS divides by priority. For every other algorithm all claims are in one band.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::amount::Amount;
use crate::claim::Claim;
use crate::claim_index::{ClaimIndex, EmptiedTree};
use crate::rounding::is_enough;
use crate::template::AlgorithmKind;

/// Claim indexes by band, sorted. A band without claims has no entry.
#[derive(Clone, Debug, Default)]
pub struct Bands {
    /// Band of priority 0: the only one of most resources.
    only: ClaimIndex,
    /// All other bands.
    #[expect(clippy::box_collection, reason = "without it, it takes one word")]
    others: Option<Box<BTreeMap<i64, ClaimIndex>>>,
}

/// Change of a holder's claims when its demand changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ClaimChange {
    /// The claim leaves the band.
    Goes(i64, Claim),
    /// The claim joins the band.
    Comes(i64, Claim),
}

impl Bands {
    /// Band for algorithms without priorities.
    pub(crate) const ONLY: i64 = 0;

    /// Returns all claims, for an algorithm without priorities.
    pub fn only(&self) -> &ClaimIndex {
        debug_assert!(self.others.is_none());
        &self.only
    }

    /// Returns the claims in a band, if there are any.
    pub fn get(&self, band: i64) -> Option<&ClaimIndex> {
        if band == Self::ONLY {
            return Some(&self.only).filter(|only| !only.is_empty());
        }
        self.others.as_ref()?.get(&band)
    }

    /// Iterates over the bands by rising priority.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &ClaimIndex)> {
        let others = self.others.iter().flat_map(|others| others.iter());
        self.with_only(others, |band| band > Self::ONLY)
    }

    /// Iterates over the bands by falling priority.
    pub(crate) fn iter_falling(&self) -> impl Iterator<Item = (i64, &ClaimIndex)> {
        let others = self.others.iter().flat_map(|others| others.iter().rev());
        self.with_only(others, |band| band < Self::ONLY)
    }

    /// Merges the separate band 0 into the others: it comes just before the first band that `is_behind` it.
    fn with_only<'a>(
        &'a self,
        mut others: impl Iterator<Item = (&'a i64, &'a ClaimIndex)>,
        is_behind: impl Fn(i64) -> bool,
    ) -> impl Iterator<Item = (i64, &'a ClaimIndex)> {
        let mut only = self.get(Self::ONLY).map(|only| (Self::ONLY, only));
        // The first band behind it, once band 0 was returned.
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

    /// Returns the band with the lowest priority above `band`, or the lowest of all without it.
    pub(crate) fn next_after(&self, band: Option<i64>) -> Option<(i64, &ClaimIndex)> {
        let from = band.map_or(Bound::Unbounded, Bound::Excluded);
        let others = self.others.as_ref();
        let next = others.and_then(|others| others.range((from, Bound::Unbounded)).next());
        let only = band.is_none_or(|band| band < Self::ONLY);
        let only = self.get(Self::ONLY).filter(|_| only);
        let only = only.map(|only| (Self::ONLY, only));
        let next = next.map(|(band, index)| (*band, index));
        next.into_iter().chain(only).min_by_key(|(band, _)| *band)
    }

    /// Number of bands with claims.
    pub fn len(&self) -> usize {
        let others = self.others.as_ref().map_or(0, |others| others.len());
        others + usize::from(!self.only.is_empty())
    }

    /// Whether there are no claims.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Inserts a claim.
    pub fn insert(&mut self, band: i64, claim: Claim) {
        self.index_mut(band).insert(claim);
    }

    /// Removes a claim that was inserted. Returns the tree of the band if the band is now empty and the tree was large.
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

    /// Replaces a claim that was inserted by another one in the same band.
    pub fn replace(&mut self, band: i64, before: Claim, after: Claim) {
        self.index_mut(band).replace(before, after);
    }

    /// Applies a change. Returns the tree of the band if the band is now empty and the tree was large.
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

    /// Bytes of memory that the indexes use.
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

/// Returns the band for a claim of that priority: its own band with PRIORITY_BANDS, else the one band for all.
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
    fn a_capacity_a_rounding_below_the_wants_is_enough_and_a_lower_one_is_not() {
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
        assert!(bands(&[]).are_satisfied_by(Amount::ZERO), "no claims");
    }

    #[test]
    fn bands_come_in_order_for_every_set_of_bands() {
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
