//! The ideal allocation: what clients would have if one allocator knew every wish at once.
//!
//! It follows the definitions in `docs/algorithms.md` and shares no code with the engine. It keeps
//! no state and goes over all clients several times. It neither sorts nor copies them, because
//! there may be a million.

use std::collections::BTreeMap;

use doorward_engine::templates::{Algorithm, AlgorithmKind};

use crate::recording::part;

/// Wish of a client.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Wish {
    /// Amount.
    pub wants: f64,
    /// Priority.
    pub priority: i64,
}

/// Rule that gives the ideal share for each wish of the set it was made from.
#[derive(Clone, Debug, PartialEq)]
pub enum Ideal {
    /// Each client gets what it wants.
    All,
    /// Each client gets what it wants, up to a level.
    Level(f64),
    /// Each client gets what it wants up to the equal share, and a fixed part of the rest.
    Proportional {
        /// Capacity divided by the number of clients.
        equal: f64,
        /// Part that is granted of wants beyond the equal share.
        part: f64,
    },
    /// Each client gets what it wants, up to the level of its priority.
    Bands(BTreeMap<i64, f64>),
}

impl Ideal {
    /// Computes the ideal for these wishes.
    pub fn of(by: &Algorithm, capacity: f64, wishes: impl Iterator<Item = Wish> + Clone) -> Self {
        let wants = wishes.clone().map(|wish| wish.wants);
        match by.kind {
            AlgorithmKind::NoAlgorithm => Self::All,
            AlgorithmKind::Static => Self::Level(capacity),
            _ if wants.clone().sum::<f64>() <= capacity => Self::All,
            AlgorithmKind::FairShare | AlgorithmKind::Budget => Self::Level(level(capacity, wants)),
            AlgorithmKind::ProportionalShare => proportional(capacity, wants),
            AlgorithmKind::PriorityBands => bands(by, capacity, wishes),
        }
    }

    /// Returns the ideal share of one wish.
    pub fn share(&self, wish: Wish) -> f64 {
        let wants = wish.wants;
        match self {
            Self::All => wants,
            Self::Level(level) => wants.min(*level),
            Self::Proportional { equal, part } => {
                wants.min(*equal) + (wants - equal).max(0.0) * part
            }
            Self::Bands(levels) => wants.min(levels.get(&wish.priority).copied().unwrap_or(0.0)),
        }
    }
}

/// Computes the level at which the granted amounts add up to the capacity.
///
/// The search goes up from the equal share, which is never too high. A client that wants less than
/// such a level gets all it wants, and the others share the rest. Every round but the last serves
/// at least one client, usually half of the remaining ones.
fn level(capacity: f64, wants: impl Iterator<Item = f64> + Clone) -> f64 {
    let (mut level, mut others) = (f64::NEG_INFINITY, usize::MAX);
    loop {
        let (mut met, mut above) = (0.0, 0);
        for wants in wants.clone() {
            if wants <= level {
                met += wants;
            } else {
                above += 1;
            }
        }
        if above == 0 {
            return f64::INFINITY;
        }
        if above == others {
            return level;
        }
        others = above;
        let share = (capacity - met) / above as f64;
        // Rounding must not lower the level again.
        level = level.max(share);
    }
}

/// Gives each client the equal share, and splits the rest in proportion to wants beyond it.
fn proportional(capacity: f64, wants: impl Iterator<Item = f64> + Clone) -> Ideal {
    let equal = capacity / wants.clone().count() as f64;
    let met: f64 = wants.clone().map(|wants| wants.min(equal)).sum();
    let beyond: f64 = wants.map(|wants| (wants - equal).max(0.0)).sum();
    let part = part(capacity - met, beyond, 0.0);
    Ideal::Proportional { equal, part }
}

/// Gives every priority its minimum share, and the rest from the highest priority down.
fn bands(by: &Algorithm, capacity: f64, wishes: impl Iterator<Item = Wish> + Clone) -> Ideal {
    let mut wanted: BTreeMap<i64, f64> = BTreeMap::new();
    for wish in wishes.clone() {
        *wanted.entry(wish.priority).or_default() += wish.wants;
    }
    let sure = |priority: i64, wanted: f64| {
        let part = by.min_shares.get(&priority).copied().unwrap_or(0.0);
        wanted.min(part * capacity)
    };
    let all_sure = wanted.iter().rev().map(|(p, wanted)| sure(*p, *wanted));
    let mut left = capacity - all_sure.sum::<f64>();
    let mut levels = BTreeMap::new();
    for (&priority, &wanted) in wanted.iter().rev() {
        let sure = sure(priority, wanted);
        let more = left.clamp(0.0, wanted - sure);
        left -= more;
        let has = sure + more;
        let level = if has >= wanted {
            f64::INFINITY
        } else {
            let of = wishes.clone().filter(|wish| wish.priority == priority);
            level(has, of.map(|wish| wish.wants))
        };
        levels.insert(priority, level);
    }
    Ideal::Bands(levels)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Computes the level the way one does on paper, from the smallest wish up.
    fn level_on_paper(capacity: f64, wants: &[f64]) -> f64 {
        let mut wants = wants.to_vec();
        wants.sort_by(f64::total_cmp);
        let (mut left, mut others) = (capacity, wants.len());
        for wants in wants {
            let share = left / others as f64;
            if wants >= share {
                return share;
            }
            left -= wants;
            others -= 1;
        }
        f64::INFINITY
    }

    proptest! {
        #[test]
        fn the_level_equals_the_one_found_on_paper(
            wants in prop::collection::vec(
                prop_oneof![Just(0.0), Just(10.0), 0.0..100.0, (-20_i32..20).prop_map(|power| 2_f64.powi(power))],
                1..200,
            ),
            part in 0.0..1.2_f64,
        ) {
            let capacity = wants.iter().sum::<f64>() * part;
            let (found, expected) = (level(capacity, wants.iter().copied()), level_on_paper(capacity, &wants));
            // At the level itself both answers are right: a client that wants exactly the level
            // gets the same.
            let shares = |level: f64| wants.iter().map(move |wants| wants.min(level));
            for (found, expected) in shares(found).zip(shares(expected)) {
                prop_assert!((found - expected).abs() <= 1e-9 * expected.max(1.0), "{found} {expected}");
            }
        }
    }

    #[test]
    fn no_clients_and_no_capacity_have_a_level() {
        assert_eq!(level(5.0, std::iter::empty()), f64::INFINITY);
        assert_eq!(level(0.0, [1.0, 2.0].into_iter()), 0.0);
        assert_eq!(level(6.0, [1.0, 9.0, 9.0].into_iter()), 2.5);
    }
}
