//! The claims on a resource by priority band: one index for each.
//!
//! Only PRIORITY_BANDS looks at priorities; for every other algorithm all claims are in one band.

use std::collections::BTreeMap;

use crate::amount::Amount;
use crate::claim::Claim;
use crate::claim_index::{ClaimIndex, Level};
use crate::planted::{self, Bug};
use crate::rounding::ENOUGH;
use crate::template::AlgorithmKind;

/// Claim indexes by band, sorted. A band without claims is not there.
#[derive(Clone, Debug, Default)]
pub struct Bands {
    bands: BTreeMap<i64, ClaimIndex>,
    /// Stands in for the only band as long as nobody claims anything.
    empty: ClaimIndex,
}

impl Bands {
    /// The band of algorithms that do not look at priorities.
    pub(crate) const ONLY: i64 = 0;

    /// All claims of an algorithm that does not look at priorities.
    pub fn only(&self) -> &ClaimIndex {
        debug_assert!(self.bands.keys().all(|band| *band == Self::ONLY));
        self.get(Self::ONLY).unwrap_or(&self.empty)
    }

    /// The claims in a band, if there are any.
    pub fn get(&self, band: i64) -> Option<&ClaimIndex> {
        self.bands.get(&band)
    }

    /// Bands by rising priority.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (i64, &ClaimIndex)> {
        self.bands.iter().map(|(band, index)| (*band, index))
    }

    /// How many bands have claims.
    pub fn len(&self) -> usize {
        self.bands.len()
    }

    /// Whether nobody claims anything.
    pub fn is_empty(&self) -> bool {
        self.bands.is_empty()
    }

    /// Puts a claim in.
    pub fn insert(&mut self, band: i64, claim: Claim) {
        self.bands.entry(band).or_default().insert(claim);
    }

    /// Takes a claim out that was put in.
    pub fn remove(&mut self, band: i64, claim: Claim) {
        if let Some(index) = self.bands.get_mut(&band) {
            index.remove(claim);
            if index.is_empty() {
                self.bands.remove(&band);
            }
        }
    }

    /// Whether the capacity is enough for all bands together.
    pub(crate) fn are_satisfied_by(&self, capacity: Amount) -> bool {
        let mut bands = self.bands.values();
        match (bands.next(), bands.next()) {
            (None, _) => true,
            (Some(only), None) => only.level_for(capacity.get()) == Level::AboveAll,
            _ => {
                let wants: f64 = self.bands.values().map(ClaimIndex::total_wants).sum();
                capacity.get() >= wants * ENOUGH
            }
        }
    }

    /// Σ subclients of all bands.
    pub fn total_subclients(&self) -> f64 {
        self.bands.values().map(ClaimIndex::total_subclients).sum()
    }

    /// Bytes of memory behind it.
    pub fn memory_bytes(&self) -> usize {
        self.bands.values().map(ClaimIndex::memory_bytes).sum()
    }
}

/// The band a claim of that priority is kept in: its own for PRIORITY_BANDS, one for all else.
pub fn band_of(kind: AlgorithmKind, priority: i64) -> i64 {
    match kind {
        AlgorithmKind::PriorityBands if !planted::is(Bug::PrioritiesForgotten) => priority,
        _ => Bands::ONLY,
    }
}
