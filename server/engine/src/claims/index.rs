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
//!   deep at a million claims: a few cache misses. A change of a claim first reads everything that it
//!   needs of a node, for the old and the new claim together, so it waits for memory once a level.
//!
//! Most resources have few holders. So few claims are one leaf without a tree, and a single claim is kept in place.

mod arena;
mod inner;
mod leaf;
mod tree;

use crate::claims::Claim;
use crate::claims::index::leaf::Leaf;
use crate::claims::index::tree::Tree;
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
    claims: Claims,
    /// Number of claims; equal claims count each.
    len: usize,
}

/// Largest number of different claims without a tree.
const INLINE_MAX: usize = 6;

/// Claims, in one of three forms by the number of different ones.
#[derive(Clone, Debug)]
enum Claims {
    /// At most one claim.
    One(Leaf<1>),
    /// A few claims.
    Few(Box<Leaf<INLINE_MAX>>),
    /// More claims. The form stays when most of them are removed.
    Many(Box<Tree>),
}

impl Default for Claims {
    fn default() -> Self {
        Self::One(Leaf::default())
    }
}

impl Claims {
    /// Inserts a claim. The claims move into the next larger form when the present one is full.
    fn insert(&mut self, key: Key) {
        match self {
            Self::One(leaf) => {
                if !leaf.try_insert(key) {
                    let mut few = Box::new(Leaf::copied_from(leaf));
                    few.try_insert(key);
                    *self = Self::Few(few);
                }
            }
            Self::Few(leaf) => {
                if !leaf.try_insert(key) {
                    let mut tree = Box::new(Tree::of(Leaf::copied_from(leaf)));
                    tree.insert(key);
                    *self = Self::Many(tree);
                }
            }
            Self::Many(tree) => tree.insert(key),
        }
    }

    fn remove(&mut self, key: Key) -> bool {
        match self {
            Self::One(leaf) => leaf.remove(key),
            Self::Few(leaf) => leaf.remove(key),
            Self::Many(tree) => tree.remove(key),
        }
    }

    /// Replaces a claim by another one. Returns whether the first one was present.
    fn replace(&mut self, before: Key, after: Key) -> bool {
        if let Self::Many(tree) = self {
            tree.fetch(before, after);
        }
        let found = self.remove(before);
        self.insert(after);
        found
    }

    fn sums(&self) -> Sums {
        match self {
            Self::One(leaf) => leaf.sums(),
            Self::Few(leaf) => leaf.sums(),
            Self::Many(tree) => tree.sums(),
        }
    }
}

impl ClaimIndex {
    /// Number of claims.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no claims.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Σ wants, to a few ulp.
    pub fn total_wants(&self) -> f64 {
        self.claims.sums().wants
    }

    /// Σ subclients, to a few ulp (exact for whole numbers).
    pub fn total_subclients(&self) -> f64 {
        self.claims.sums().subclients
    }

    /// Inserts a claim. O(log n).
    pub fn insert(&mut self, claim: Claim) {
        self.claims.insert(Key::of(claim));
        self.len += 1;
    }

    /// Removes a claim that was inserted, equal to the bit. O(log n).
    pub fn remove(&mut self, claim: Claim) {
        let found = self.claims.remove(Key::of(claim));
        debug_assert!(found, "{claim:?} is not in the index");
        self.len -= usize::from(found);
        if self.is_empty() {
            // An emptied tree frees its memory: a few hundred pieces of a million claims.
            self.claims = Claims::default();
        }
    }

    /// Replaces a claim that was inserted by another one. O(log n). Returns whether the first one was present.
    pub fn replace(&mut self, before: Claim, after: Claim) -> bool {
        let found = self.claims.replace(Key::of(before), Key::of(after));
        debug_assert!(found, "{before:?} is not in the index");
        self.len += usize::from(!found);
        found
    }

    /// D(w) = Σ min(wants, w·subclients), for w ≥ 0. O(log n).
    pub fn demand_at(&self, level: f64) -> f64 {
        self.line_at(level).demand_at(level)
    }

    /// The piece of the demand curve around a level. O(log n).
    pub(crate) fn line_at(&self, level: f64) -> Line {
        self.cut_at(|_| level, |ratio, _| ratio > level).line
    }

    /// Returns the level w* at which all claims together get `capacity`, or all they want. O(log n).
    pub fn level_for(&self, capacity: f64) -> Level {
        if is_enough(capacity, self.total_wants()) {
            return Level::AboveAll;
        }
        let level_on = |line: Line| line.level_for(capacity);
        let is_behind = |ratio, line: Line| line.demand_at(ratio) > capacity;
        let Cut { line, .. } = self.cut_at(level_on, is_behind);
        let level = (line.subclients > 0.0).then(|| line.level_for(capacity));
        level.map_or(Level::AboveAll, Level::At)
    }

    /// Finds the corner of D after which D rises by no more than `slope` per level. Returns its level, and D there, or
    /// nothing if D never rises by more. O(log n).
    ///
    /// Of all points of D, this is the one farthest above a line of that slope.
    pub(crate) fn vertex(&self, slope: f64) -> Option<(f64, f64)> {
        let Cut { line, last, .. } = self.cut(|_, line| line.subclients <= slope);
        last.map(|ratio| (ratio, line.demand_at(ratio)))
    }

    /// Returns the cut at the level that `level_on` finds on its piece of D.
    fn cut_at(&self, level_on: impl Fn(Line) -> f64, is_behind: impl Fn(f64, Line) -> bool) -> Cut {
        match &self.claims {
            Claims::Many(tree) => tree.cut_at(level_on, &is_behind),
            _ => self.cut(is_behind),
        }
    }

    fn cut(&self, is_behind: impl Fn(f64, Line) -> bool) -> Cut {
        match &self.claims {
            Claims::One(leaf) => leaf.cut(Line::default(), &is_behind),
            Claims::Few(leaf) => leaf.cut(Line::default(), &is_behind),
            Claims::Many(tree) => tree.cut(&is_behind),
        }
    }

    /// Returns the largest wants per subclient: the level that satisfies every claim. O(log n).
    pub(crate) fn highest_ratio(&self) -> Option<f64> {
        match &self.claims {
            Claims::One(leaf) => leaf.last_ratio(),
            Claims::Few(leaf) => leaf.last_ratio(),
            Claims::Many(tree) => tree.highest_ratio(),
        }
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

/// A piece of a demand curve, around a level: D(w) = `wants` + w · `subclients`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Line {
    /// Σ wants of all claims that have what they want there.
    pub(crate) wants: f64,
    /// Σ subclients of all others.
    pub(crate) subclients: f64,
}

/// A place between two claims.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cut {
    /// D between the two.
    pub(super) line: Line,
    /// The ratio of the claim in front of it, if that is in the same leaf.
    pub(super) last: Option<f64>,
    /// The ratio of the claim behind it, if that is in the same leaf.
    pub(super) next: Option<f64>,
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
