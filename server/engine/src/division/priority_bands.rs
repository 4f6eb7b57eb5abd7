//! PRIORITY_BANDS: higher priorities first, with guaranteed minimums.
//!
//! Each band p first gets its guarantee, min(Qₚ, gₚ). The rest goes to the bands from the highest
//! priority number down, until each has its Qₚ. Inside a band, FAIR_SHARE divides. The part of a
//! guarantee that its band does not need goes to other bands.
//!
//! At the root, gₚ is the template's `min_share.p` times the capacity. Below the root, gₚ is the
//! band's part of the parent's grant: the root decides for the whole tree how much each band has.

use std::collections::BTreeMap;

use crate::claims::{Bands, Level};
use crate::division::{Rule, Supply};

/// Share of a band.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BandShare {
    /// Total of the band.
    pub capacity: f64,
    /// Level per subclient.
    pub level: Level,
}

impl BandShare {
    /// Returns a share that is no larger than either of the two.
    pub(crate) fn stricter(self, other: Self) -> Self {
        Self {
            capacity: self.capacity.min(other.capacity),
            level: match (self.level, other.level) {
                (Level::AboveAll, level) | (level, Level::AboveAll) => level,
                (Level::At(level), Level::At(other)) => Level::At(level.min(other)),
            },
        }
    }
}

/// Returns the shares of the given bands. An unknown band gets nothing. O(bands, and log n for each
/// given one).
pub fn solve(
    bands: &Bands,
    min_shares: &BTreeMap<i64, f64>,
    supply: &Supply,
    mut asked: impl Iterator<Item = i64>,
) -> Rule {
    if bands.are_satisfied_by(supply.capacity) {
        return Rule::EnoughForAll;
    }
    let share = |band: i64, capacity: f64| {
        let level = bands
            .get(band)
            .map_or(Level::At(0.0), |index| index.level_for(capacity));
        BandShare { capacity, level }
    };
    let Some(first) = asked.next() else {
        return Rule::Bands(BTreeMap::new());
    };
    match asked.next() {
        // A client asks with one band: this path allocates nothing.
        None => {
            let capacity = band_capacity(bands, min_shares, supply, first);
            Rule::Band(first, share(first, capacity))
        }
        Some(second) => {
            let all = [first, second].into_iter().chain(asked);
            let capacities: BTreeMap<i64, f64> =
                band_capacities(bands, min_shares, supply).collect();
            let capacity = |band| capacities.get(&band).copied().unwrap_or_default();
            Rule::Bands(
                all.map(|band| (band, share(band, capacity(band))))
                    .collect(),
            )
        }
    }
}

/// Returns the capacity of the band of that priority. O(bands).
pub(crate) fn band_capacity(
    bands: &Bands,
    min_shares: &BTreeMap<i64, f64>,
    supply: &Supply,
    priority: i64,
) -> f64 {
    let mut all = band_capacities(bands, min_shares, supply);
    let own = all.find(|(band, _)| *band == priority);
    own.map_or(0.0, |(_, capacity)| capacity)
}

/// Returns the capacity of each band, from the highest priority down. O(bands) for all of them.
fn band_capacities<'a>(
    bands: &'a Bands,
    min_shares: &'a BTreeMap<i64, f64>,
    supply: &'a Supply,
) -> impl Iterator<Item = (i64, f64)> + 'a {
    let capacity = supply.capacity.get();
    let guaranteed = move |band: i64, wants: f64| {
        let of_template = || min_shares.get(&band).map_or(0.0, |share| share * capacity);
        supply
            .guarantee(band)
            .unwrap_or_else(of_template)
            .min(wants)
    };
    let mut left = capacity;
    for (band, index) in bands.iter() {
        left -= guaranteed(band, index.total_wants());
    }
    left = left.max(0.0);
    bands.iter().rev().map(move |(band, index)| {
        let wants = index.total_wants();
        let minimum = guaranteed(band, wants);
        let beyond = wants - minimum;
        let satisfied = left >= beyond;
        // A satisfied band gets exactly its wants, without a rounding.
        let gets = if satisfied { wants } else { minimum + left };
        left = if satisfied { left - beyond } else { 0.0 };
        (band, gets)
    })
}
