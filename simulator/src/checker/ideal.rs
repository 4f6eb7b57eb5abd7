//! The ideal: what everybody would have if one allocator knew every wish the moment it changes.
//!
//! Written from the definitions in `docs/algorithms.md` and from nothing else: it shares no line with
//! the engine, scans all clients, and takes its time.

use doorward_engine::template::{Algorithm, AlgorithmKind};

/// A wish.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wish {
    /// How much.
    pub wants: f64,
    /// How important.
    pub priority: i64,
}

/// What everybody would have, in the order of the wishes.
pub fn ideal(algorithm: &Algorithm, capacity: f64, wishes: &[Wish]) -> Vec<f64> {
    let total: f64 = wishes.iter().map(|wish| wish.wants).sum();
    let all = || wishes.iter().map(|wish| wish.wants).collect();
    match algorithm.kind {
        AlgorithmKind::NoAlgorithm => all(),
        AlgorithmKind::Static => wishes.iter().map(|wish| wish.wants.min(capacity)).collect(),
        _ if total <= capacity => all(),
        AlgorithmKind::FairShare => {
            let level = level(capacity, wishes.iter().map(|wish| wish.wants).collect());
            wishes.iter().map(|wish| wish.wants.min(level)).collect()
        }
        AlgorithmKind::ProportionalShare => proportional(capacity, wishes),
        AlgorithmKind::PriorityBands => bands(algorithm, capacity, wishes),
    }
}

/// The level at which everybody's smaller of wish and level is the capacity together.
fn level(capacity: f64, mut wants: Vec<f64>) -> f64 {
    wants.sort_by(f64::total_cmp);
    let (mut left, mut others) = (capacity, wants.len());
    for wants in wants {
        #[expect(clippy::cast_precision_loss, reason = "a count of clients")]
        let share = left / others as f64;
        if wants >= share {
            return share;
        }
        left -= wants;
        others -= 1;
    }
    f64::INFINITY
}

/// Everybody has the equal share, and of what is left above that in proportion to what it wants
/// beyond.
fn proportional(capacity: f64, wishes: &[Wish]) -> Vec<f64> {
    #[expect(clippy::cast_precision_loss, reason = "a count of clients")]
    let equal = capacity / wishes.len() as f64;
    let met: f64 = wishes.iter().map(|wish| wish.wants.min(equal)).sum();
    let beyond: f64 = wishes
        .iter()
        .map(|wish| (wish.wants - equal).max(0.0))
        .sum();
    let part = if beyond > 0.0 {
        (capacity - met) / beyond
    } else {
        0.0
    };
    let share = |wish: &Wish| wish.wants.min(equal) + (wish.wants - equal).max(0.0) * part;
    wishes.iter().map(share).collect()
}

/// Every priority has what it is sure of; what is left goes from the highest down.
fn bands(algorithm: &Algorithm, capacity: f64, wishes: &[Wish]) -> Vec<f64> {
    let mut priorities: Vec<i64> = wishes.iter().map(|wish| wish.priority).collect();
    priorities.sort_unstable();
    priorities.dedup();
    priorities.reverse();
    let of = |priority: i64| wishes.iter().filter(move |wish| wish.priority == priority);
    let wanted = |priority: i64| of(priority).map(|wish| wish.wants).sum::<f64>();
    let sure = |priority: i64| {
        let part = algorithm.min_shares.get(&priority).copied().unwrap_or(0.0);
        wanted(priority).min(part * capacity)
    };
    let mut left = capacity - priorities.iter().map(|p| sure(*p)).sum::<f64>();
    let mut levels = Vec::with_capacity(priorities.len());
    for priority in priorities {
        let more = left.clamp(0.0, wanted(priority) - sure(priority));
        left -= more;
        let has = sure(priority) + more;
        let wants: Vec<f64> = of(priority).map(|wish| wish.wants).collect();
        let level = if has >= wants.iter().sum() {
            f64::INFINITY
        } else {
            level(has, wants)
        };
        levels.push((priority, level));
    }
    let level_of = |priority: i64| {
        let found = levels.iter().find(|(known, _)| *known == priority);
        found.map_or(0.0, |(_, level)| *level)
    };
    let share = |wish: &Wish| wish.wants.min(level_of(wish.priority));
    wishes.iter().map(share).collect()
}
