//! PRIORITY_BANDS: higher priorities first, with guaranteed minimums.
//!
//! Each band p first gets what it is guaranteed, min(Qₚ, gₚ·C). What is left goes to the bands
//! from the highest priority number down until their Qₚ. Inside a band, FAIR_SHARE. A guarantee
//! that its band does not need is not kept idle.

use std::collections::BTreeMap;

use crate::algorithm::{Reason, Share};
use crate::amount::Amount;
use crate::bands::Bands;
use crate::claim::Claim;
use crate::claim_index::Level;

/// The holder's share of what its band gets.
pub fn share(
    bands: &Bands,
    min_shares: &BTreeMap<i64, f64>,
    capacity: Amount,
    priority: i64,
    claim: Claim,
) -> Share {
    if bands.are_satisfied_by(capacity) {
        return Share::all(claim, Reason::EnoughForAll);
    }
    let band_capacity = band_capacity(bands, min_shares, capacity, priority);
    let level = bands
        .get(priority)
        .map_or(Level::At(0.0), |band| band.level_for(band_capacity));
    match level {
        Level::AboveAll => Share::all(claim, Reason::BandSatisfied),
        Level::At(per_subclient) => Share::of(
            claim,
            level.share_of(claim),
            Reason::BandLevel {
                band_capacity,
                level: per_subclient,
            },
        ),
    }
}

/// What the band of that priority gets. O(bands).
pub fn band_capacity(
    bands: &Bands,
    min_shares: &BTreeMap<i64, f64>,
    capacity: Amount,
    priority: i64,
) -> f64 {
    let capacity = capacity.get();
    let guaranteed = |band: i64, wants: f64| {
        min_shares
            .get(&band)
            .map_or(0.0, |share| (share * capacity).min(wants))
    };
    let mut left = capacity;
    for (band, index) in bands.iter() {
        left -= guaranteed(band, index.total_wants());
    }
    left = left.max(0.0);
    for (band, index) in bands.iter().rev() {
        let wants = index.total_wants();
        let minimum = guaranteed(band, wants);
        let beyond = wants - minimum;
        let satisfied = left >= beyond;
        if band == priority {
            // All it wants, to the bit, when that much is left.
            return if satisfied { wants } else { minimum + left };
        }
        left = if satisfied { left - beyond } else { 0.0 };
    }
    0.0
}
