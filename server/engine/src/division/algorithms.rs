//! The algorithms as pure functions: each finds the [`Rule`] that divides a capacity among the present claims.
//! NO_ALGORITHM needs none: it is [`Rule::NoAlgorithm`].

use std::collections::BTreeMap;
use std::fmt;

use crate::amount::Amount;
use crate::claims::{Bands, ClaimIndex, Level};
use crate::division::{Rounded, Rule, Supply};
use crate::rounding::is_enough;

/// FAIR_SHARE: max-min fairness weighted by subclients, exactly.
///
/// Each holder gets min(q, w*·s) at the water level w*, at which all claims together get `capacity`: no holder can gain
/// unless another one loses that has no more per subclient (Bertsekas & Gallager, *Data Networks*, §6.5). A child
/// server gets what its demand curve says at that level; sharing that out among its own holders, it finds the same
/// level again.
pub fn fair_share(bands: &Bands, capacity: Amount) -> Rule {
    match bands.level_for(capacity) {
        Level::AboveAll => Rule::EnoughForAll,
        Level::At(level) => Rule::Level(level),
    }
}

/// STATIC: every client gets its wants, up to the capacity, which is per client: min(q, C·s). The total has no bound: a
/// thousand clients may get a thousand times the capacity.
///
/// Below the root, the capacity per client that the parent sends is the bound, not the server's grant for all its
/// clients together. A Doorman parent does not send it. Then the level at which the claims together take that grant is
/// the same number.
pub fn static_share(bands: &Bands, supply: &Supply) -> Rule {
    let of_parent = supply.per_client();
    let given = supply.terms.is_some();
    match of_parent {
        Some(capacity) => Rule::PerClient(capacity),
        None if given => match bands.level_for(supply.capacity) {
            Level::AboveAll => Rule::EnoughForAll,
            Level::At(level) => Rule::PerClient(level),
        },
        None => Rule::PerClient(supply.capacity.get()),
    }
}

/// PROPORTIONAL_SHARE: an equal share e per subclient first. Claims below their equal share leave a rest, which is
/// divided among the other claims in proportion to their wants beyond it: min(q, e·s) + max(0, q − e·s) · (C − D(e)) /
/// (Q − D(e)), or q if there is enough for all.
///
/// A claim with large wants gets more than under max-min fairness, but never at the cost of another claim's equal
/// share. Two numbers describe the outcome: e, and the part of the wants beyond it. Below the root, the parent sends e
/// (it depends on the clients of the whole tree), and the part follows from the capacity. So the shares add up to the
/// capacity, whatever e is.
pub fn proportional_share(bands: &Bands, supply: &Supply) -> Rule {
    let capacity = supply.capacity.get();
    if bands.are_satisfied_by(supply.capacity) {
        return Rule::EnoughForAll;
    }
    let of_all = capacity / bands.total_subclients();
    let of_parent = supply.per_client();
    let equal_share = of_parent.unwrap_or(of_all);
    let demand = bands.demand_at(equal_share);
    if demand > capacity {
        // Only below the root: e is from before the capacity shrank or claims came. No client
        // gets more than e, and those who want less than the others are served first, as ever.
        return fair_share(bands, supply.capacity);
    }
    // Q > C ≥ D(e), so the denominator is above zero but for rounding.
    let wanted_beyond = bands.total_wants() - demand;
    let top_up = if wanted_beyond > 0.0 {
        ((capacity - demand) / wanted_beyond).min(1.0)
    } else {
        0.0
    };
    Rule::Proportional {
        equal_share,
        top_up,
    }
}

/// Share of a band. `Display` explains it to people.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BandShare {
    /// Total of the band.
    pub capacity: f64,
    /// Part of it that comes before the wants of any higher priority.
    pub guaranteed: f64,
    /// Whether the parent's division guarantees it, and not the template.
    pub by_parent: bool,
    /// Total of all higher bands.
    pub higher: f64,
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
            ..self
        }
    }
}

impl fmt::Display for BandShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.higher > 0.0 {
            write!(f, "higher priorities get {}; ", Rounded(self.higher))?;
        }
        write!(f, "its priority gets {}", Rounded(self.capacity))?;
        let by = if self.by_parent {
            "as the parent divides"
        } else {
            "guaranteed"
        };
        if self.guaranteed > 0.0 && is_enough(self.guaranteed, self.capacity) {
            write!(f, ", all of it {by}")?;
        } else if self.guaranteed > 0.0 {
            write!(f, ", {} of it {by}", Rounded(self.guaranteed))?;
        }
        match self.level {
            Level::AboveAll => Ok(()),
            Level::At(level) => write!(f, ": at most {} per client", Rounded(level)),
        }
    }
}

/// PRIORITY_BANDS: higher priorities first, with guaranteed minimums. Returns the shares of the bands that are
/// asked for. O(bands, and log n for each of these).
///
/// Each band p first gets its guarantee, min(Qₚ, gₚ). The rest goes to the bands from the highest priority number down,
/// until each has its Qₚ. Inside a band, FAIR_SHARE divides. The part of a guarantee that its band does not need goes
/// to other bands.
///
/// At the root, gₚ is the template's `min_share.p` times the capacity. Below the root, gₚ is the band's part of the
/// parent's grant: the root decides for the whole tree how much each band has.
pub fn priority_bands(
    bands: &Bands,
    min_shares: &BTreeMap<i64, f64>,
    supply: &Supply,
    is_asked: impl Fn(i64) -> bool,
) -> Rule {
    if bands.are_satisfied_by(supply.capacity) {
        return Rule::EnoughForAll;
    }
    let all = band_capacities(bands, min_shares, supply);
    let asked = all.filter(|(band, ..)| is_asked(*band));
    let shares = asked.map(|(band, index, share)| {
        let level = index.level_for(share.capacity);
        (band, BandShare { level, ..share })
    });
    Rule::Bands(shares.collect())
}

/// Returns the share of each band, still without its level, from the highest priority down. O(bands) for all of them.
fn band_capacities<'a>(
    bands: &'a Bands,
    min_shares: &'a BTreeMap<i64, f64>,
    supply: &'a Supply,
) -> impl Iterator<Item = (i64, &'a ClaimIndex, BandShare)> {
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
    let mut higher = 0.0;
    bands.iter().rev().map(move |(band, index)| {
        let wants = index.total_wants();
        let minimum = guaranteed(band, wants);
        let beyond = wants - minimum;
        let satisfied = left >= beyond;
        // A satisfied band gets exactly its wants, without a rounding.
        let gets = if satisfied { wants } else { minimum + left };
        left = if satisfied { left - beyond } else { 0.0 };
        let share = BandShare {
            capacity: gets,
            guaranteed: minimum,
            by_parent: supply.guarantee(band).is_some(),
            higher,
            level: Level::AboveAll,
        };
        higher += gets;
        (band, index, share)
    })
}
