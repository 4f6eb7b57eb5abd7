//! Claims of a resource in an ordered tree with running sums, the central structure of the engine.
//!
//! For claims (qⱼ, sⱼ) the *demand curve* is D(w) = Σⱼ min(qⱼ, w·sⱼ), and the *water level* for a capacity C is w* =
//! sup{ w : D(w) ≤ C } (`docs/algorithms.md`). With the claims ordered by qⱼ/sⱼ, both are a prefix sum of q plus w
//! times a suffix sum of s. A search tree whose nodes know the sums of their subtrees finds them in O(log n), and an
//! update costs O(log n).
//!
//! Three decisions keep it exact and fast:
//!
//! * **No drift.** An update never adds to a sum or subtracts from it. It computes the sums on the path to
//!   the root again from their parts. All parts are ≥ 0 and nothing is subtracted, so the relative
//!   error is a few ulp after any number of updates.
//! * **No names.** Equal claims are interchangeable, so they are one entry with a count. A million
//!   clients with the same wants are one entry.
//! * **Wide nodes.** A B⁺ tree with up to 16 claims in a leaf and 32 children in a node is 5 levels
//!   deep at a million claims: a few cache misses.
//!
//! Most resources have few holders. So few claims are one leaf, which is no larger than it must be.

mod inner;
mod leaf;
mod tree;

use crate::claims::Claim;
use crate::claims::index::tree::Node;
use crate::rounding::is_enough;

/// Water level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Level {
    /// Above every claim: the capacity is enough for all.
    AboveAll,
    /// A level per subclient.
    At(f64),
}

impl Level {
    /// Returns the share of a claim at this level.
    pub fn share_of(self, claim: Claim) -> f64 {
        match self {
            Self::AboveAll => claim.wants.get(),
            Self::At(level) => claim.wants.get().min(level * claim.subclients.get()),
        }
    }
}

/// An ordered multiset of claims that answers "level for C" and "D at w". See the [module](self).
#[derive(Clone, Debug, Default)]
pub struct ClaimIndex {
    root: Node,
}

impl ClaimIndex {
    /// Number of claims. O(n).
    pub fn len(&self) -> usize {
        self.root.count()
    }

    /// Whether there are no claims.
    pub fn is_empty(&self) -> bool {
        self.root.is_empty()
    }

    /// Σ wants, to a few ulp.
    pub fn total_wants(&self) -> f64 {
        self.root.sums().wants
    }

    /// Σ subclients, to a few ulp (exact for whole numbers).
    pub fn total_subclients(&self) -> f64 {
        self.root.sums().subclients
    }

    /// Inserts a claim. O(log n).
    pub fn insert(&mut self, claim: Claim) {
        self.root.change_root(None, Some(Key::of(claim)));
    }

    /// Removes a claim that was inserted, equal to the bit. O(log n).
    pub fn remove(&mut self, claim: Claim) {
        let found = self.root.change_root(Some(Key::of(claim)), None);
        debug_assert!(found, "{claim:?} is not in the index");
        if self.is_empty() {
            // An empty leaf frees its memory.
            self.root = Node::default();
        }
    }

    /// Replaces a claim that was inserted by another one. O(log n).
    pub fn replace(&mut self, before: Claim, after: Claim) {
        let (goes, comes) = (Key::of(before), Key::of(after));
        let found = self.root.change_root(Some(goes), Some(comes));
        debug_assert!(found, "{before:?} is not in the index");
    }

    /// D(w) = Σ min(wants, w·subclients), for w ≥ 0. O(log n).
    pub fn demand_at(&self, level: f64) -> f64 {
        self.line_at(level).demand_at(level)
    }

    /// The piece of the demand curve around a level. O(log n).
    pub(crate) fn line_at(&self, level: f64) -> Line {
        self.root.line_at(level)
    }

    /// Returns the level w* at which all claims together get `capacity`, or all they want. O(log n).
    pub fn level_for(&self, capacity: f64) -> Level {
        if is_enough(capacity, self.total_wants()) {
            return Level::AboveAll;
        }
        let level = self.root.level_for(capacity);
        level.map_or(Level::AboveAll, Level::At)
    }

    /// Finds the corner of D after which D rises by no more than `slope` per level. Returns its level, and D there, or
    /// nothing if D never rises by more. O(log n).
    ///
    /// Of all points of D, this is the one farthest above a line of that slope.
    pub(crate) fn vertex(&self, slope: f64) -> Option<(f64, f64)> {
        self.root.vertex(slope)
    }

    /// Returns the largest wants per subclient: the level that satisfies every claim. O(log n).
    pub(crate) fn highest_ratio(&self) -> Option<f64> {
        self.root.highest_ratio()
    }
}

/// Order of claims: wants per subclient, then wants. Equal keys are equal claims. The default is not above any other.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub(super) struct Key {
    pub(super) ratio: f64,
    pub(super) wants: f64,
    pub(super) subclients: f64,
}

impl Key {
    pub(super) fn of(claim: Claim) -> Self {
        Self {
            ratio: claim.ratio(),
            wants: claim.wants.get(),
            subclients: claim.subclients.get(),
        }
    }

    /// Whether this key comes before `other`. No part is ever NaN.
    pub(super) fn is_before(&self, other: &Self) -> bool {
        (self.ratio, self.wants, self.subclients) < (other.ratio, other.wants, other.subclients)
    }
}

/// Σ wants and Σ subclients of a subtree.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) wants: f64,
    pub(super) subclients: f64,
}

impl Sums {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            wants: self.wants + other.wants,
            subclients: self.subclients + other.subclients,
        }
    }
}

/// A piece of a demand curve, around a level: D(w) = `wants` + w · `subclients`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Line {
    /// Σ wants of all claims that have what they want there.
    pub(crate) wants: f64,
    /// Σ subclients of all others.
    pub(crate) subclients: f64,
}

impl Line {
    /// D(level), on this piece.
    pub(crate) fn demand_at(self, level: f64) -> f64 {
        self.wants + level * self.subclients
    }

    /// The level at which this straight line reaches `capacity`.
    pub(crate) fn level_for(self, capacity: f64) -> f64 {
        ((capacity - self.wants) / self.subclients).max(0.0)
    }

    /// Both together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            wants: self.wants + other.wants,
            subclients: self.subclients + other.subclients,
        }
    }
}

#[cfg(test)]
mod tests;
