//! The heart of the engine: claims ordered by wants per subclient, with running sums.
//!
//! For claims (qⱼ, sⱼ) the *demand curve* is D(w) = Σⱼ min(qⱼ, w·sⱼ), and the *water level* for a
//! capacity C is w* = sup{ w : D(w) ≤ C } (`docs/algorithms.md`). With the claims ordered by qⱼ/sⱼ,
//! both are a prefix sum of q plus w times a suffix sum of s, so a search tree whose nodes know the
//! sums of their subtrees answers in O(log n), and is updated in O(log n).
//!
//! Three decisions keep it exact and fast:
//!
//! * **No drift.** A sum is never corrected by what was added or taken away; on an update, the sums
//!   on the path to the root are made anew from their parts. All parts are ≥ 0 and nothing is
//!   subtracted, so the relative error is a few ulp after any number of updates.
//! * **Nobody's name is in it.** Equal claims are interchangeable, so they are one entry with a
//!   count. A million clients that want the same are one entry.
//! * **Wide nodes.** A B⁺ tree with up to 32 claims in a leaf and 32 children in a node is 5 levels
//!   deep at a million claims: a handful of cache misses.

mod inner;
mod leaf;
mod sums;

use crate::claim::Claim;
use crate::claim_index::inner::{Found, INNER_MAX, Inner};
use crate::claim_index::leaf::{LEAF_MAX, Leaf};
use crate::claim_index::sums::{Key, Sums};
use crate::planted::{self, Bug};
use crate::rounding::ENOUGH;

/// Where the water stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Level {
    /// Above everyone: the capacity is enough for all.
    AboveAll,
    /// So much per subclient.
    At(f64),
}

impl Level {
    /// What a claim gets at this level.
    pub fn share_of(self, claim: Claim) -> f64 {
        match self {
            Self::AboveAll => claim.wants.get(),
            Self::At(level) => claim.wants.get().min(level * claim.subclients.get()),
        }
    }
}

/// An ordered multiset of claims that answers "level for C" and "D at w". See the
/// [module](self).
#[derive(Clone, Debug)]
pub struct ClaimIndex {
    leaves: Arena<Leaf>,
    inners: Arena<Inner>,
    root: u32,
    /// Levels of inner nodes above the leaves.
    height: u32,
    /// Claims, equal ones counted each.
    len: usize,
}

impl Default for ClaimIndex {
    fn default() -> Self {
        let mut leaves = Arena::default();
        let root = leaves.insert(Leaf::default());
        Self {
            leaves,
            inners: Arena::default(),
            root,
            height: 0,
            len: 0,
        }
    }
}

impl ClaimIndex {
    /// How many claims are in it.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Σ wants, to a few ulp.
    pub fn total_wants(&self) -> f64 {
        self.sums_of(self.root, self.height).wants
    }

    /// Σ subclients, to a few ulp (exact for whole numbers).
    pub fn total_subclients(&self) -> f64 {
        self.sums_of(self.root, self.height).subclients
    }

    /// Puts a claim in. O(log n).
    pub fn insert(&mut self, claim: Claim) {
        if let Some(right) = self.insert_below(self.root, self.height, Key::of(claim)) {
            let mut root = Inner::default();
            let left_sums = self.sums_of(self.root, self.height);
            root.insert(0, self.root, Key::LOWEST, left_sums);
            let (key, sums) = (
                self.first_key(right, self.height),
                self.sums_of(right, self.height),
            );
            root.insert(1, right, key, sums);
            self.root = self.inners.insert(root);
            self.height += 1;
        }
        self.len += 1;
    }

    /// Takes a claim out that was put in, equal to the bit. O(log n). Returns whether it was in.
    pub fn remove(&mut self, claim: Claim) -> bool {
        let found = self.remove_below(self.root, self.height, Key::of(claim));
        debug_assert!(found, "{claim:?} is not in the index");
        if found {
            self.len -= 1;
        }
        while self.height > 0 && self.inners[self.root].len() == 1 {
            let only = self.inners[self.root].child(0);
            self.inners.remove(self.root);
            self.root = only;
            self.height -= 1;
        }
        found
    }

    /// D(w) = Σ min(wants, w·subclients), for w ≥ 0. O(log n).
    pub fn demand_at(&self, level: f64) -> f64 {
        let (mut node, mut before, mut after) = (self.root, 0.0, 0.0);
        for _ in 0..self.height {
            let inner = &self.inners[node];
            let found = inner.find_level(level, before, after);
            node = inner.child(found.position);
            Found {
                wants_before: before,
                subclients_after: after,
                ..
            } = found;
        }
        self.leaves[node].demand_at(level, before, after)
    }

    /// The level w* at which all claims together get `capacity`, or all they want. O(log n).
    pub(crate) fn level_for(&self, capacity: f64) -> Level {
        let enough = if planted::is(Bug::RoundingIsAShortage) {
            1.0
        } else {
            ENOUGH
        };
        if capacity >= self.total_wants() * enough {
            return Level::AboveAll;
        }
        if planted::is(Bug::LevelOfEqualShares) {
            return Level::At(capacity / self.total_subclients());
        }
        let (mut node, mut before, mut after) = (self.root, 0.0, 0.0);
        for _ in 0..self.height {
            let inner = &self.inners[node];
            let found = inner.find_demand(capacity, before, after);
            node = inner.child(found.position);
            Found {
                wants_before: before,
                subclients_after: after,
                ..
            } = found;
        }
        match self.leaves[node].level_for(capacity, before, after) {
            Some(level) => Level::At(level),
            None => Level::AboveAll,
        }
    }

    /// The corner of D after which it rises by no more than `slope` per level: its level, and D
    /// there. None: D never rises by more. O(log n).
    ///
    /// Of all points of D, this is the one farthest above a line of that slope.
    pub(crate) fn vertex(&self, slope: f64) -> Option<(f64, f64)> {
        let (mut node, mut before, mut after) = (self.root, 0.0, 0.0);
        for _ in 0..self.height {
            let inner = &self.inners[node];
            let found = inner.find_slope(slope, before, after);
            node = inner.child(found.position);
            Found {
                wants_before: before,
                subclients_after: after,
                ..
            } = found;
        }
        self.leaves[node].vertex(slope, before, after)
    }

    /// The largest wants per subclient: the level at which everyone has what it wants. O(log n).
    pub(crate) fn highest_ratio(&self) -> Option<f64> {
        let mut node = self.root;
        for _ in 0..self.height {
            let inner = &self.inners[node];
            node = inner.child(inner.len().saturating_sub(1));
        }
        self.leaves[node].last_ratio()
    }

    /// Bytes of memory behind it, for benches and limits.
    pub fn memory_bytes(&self) -> usize {
        self.leaves.memory_bytes() + self.inners.memory_bytes()
    }

    fn sums_of(&self, node: u32, height: u32) -> Sums {
        if height == 0 {
            self.leaves[node].sums()
        } else {
            self.inners[node].sums()
        }
    }

    fn first_key(&self, node: u32, height: u32) -> Key {
        if height == 0 {
            self.leaves[node].key(0)
        } else {
            self.inners[node].key(0)
        }
    }

    /// Inserts below a node; if the node had to be split, returns its new right neighbour.
    fn insert_below(&mut self, node: u32, height: u32, key: Key) -> Option<u32> {
        if height == 0 {
            let split = self.leaves[node].insert(key)?;
            return Some(self.leaves.insert(split));
        }
        let position = self.inners[node].position_of(key);
        let child = self.inners[node].child(position);
        let new = self.insert_below(child, height - 1, key);
        let sums = self.sums_of(child, height - 1);
        self.inners[node].set_sums(position, sums);
        let mut split = None;
        if let Some(new) = new {
            let (key, sums) = (
                self.first_key(new, height - 1),
                self.sums_of(new, height - 1),
            );
            let inner = &mut self.inners[node];
            if inner.len() < INNER_MAX {
                inner.insert(position + 1, new, key, sums);
            } else {
                let mut right = inner.split_off(INNER_MAX / 2);
                match (position + 1).checked_sub(inner.len()) {
                    // The first place of the right half also ends the left one; either will do,
                    // but a key below the right half's first belongs to the left.
                    None | Some(0) => inner.insert(position + 1, new, key, sums),
                    Some(position) => right.insert(position, new, key, sums),
                }
                split = Some(right);
            }
        }
        split.map(|right| self.inners.insert(right))
    }

    /// Removes below a node, and mends the child that became too small. Returns whether the key
    /// was there.
    fn remove_below(&mut self, node: u32, height: u32, key: Key) -> bool {
        if height == 0 {
            return self.leaves[node].remove(key);
        }
        let position = self.inners[node].position_of(key);
        let child = self.inners[node].child(position);
        let found = self.remove_below(child, height - 1, key);
        let sums = self.sums_of(child, height - 1);
        self.inners[node].set_sums(position, sums);
        self.mend(node, height, position);
        found
    }

    /// If the child at `position` is too small, merges it with a neighbour, or takes some of the
    /// neighbour's.
    fn mend(&mut self, node: u32, height: u32, position: usize) {
        let child = self.inners[node].child(position);
        let (len, min) = if height == 1 {
            (self.leaves[child].len(), LEAF_MAX / 4)
        } else {
            (self.inners[child].len(), INNER_MAX / 4)
        };
        if len >= min || self.inners[node].len() < 2 {
            return;
        }
        let left_position = position.saturating_sub(1);
        let left = self.inners[node].child(left_position);
        let right = self.inners[node].child(left_position + 1);
        // A lower bound of everything on the right, and above everything on the left.
        let boundary = self.inners[node].key(left_position + 1);
        let emptied = if height == 1 {
            let (left, right) = self.leaves.pair_mut(left, right);
            left.share_with(right)
        } else {
            let (left, right) = self.inners.pair_mut(left, right);
            right.set_key(0, boundary);
            left.share_with(right)
        };
        let left_sums = self.sums_of(left, height - 1);
        self.inners[node].set_sums(left_position, left_sums);
        if emptied {
            self.inners[node].remove(left_position + 1);
            if height == 1 {
                self.leaves.remove(right);
            } else {
                self.inners.remove(right);
            }
        } else {
            let (key, sums) = (
                self.first_key(right, height - 1),
                self.sums_of(right, height - 1),
            );
            self.inners[node].set_key(left_position + 1, key);
            self.inners[node].set_sums(left_position + 1, sums);
        }
    }
}

/// Nodes by number. Grows by chunks, so that no insertion ever moves what is there already.
#[derive(Clone, Debug)]
struct Arena<T> {
    chunks: Vec<Vec<T>>,
    free: Vec<u32>,
}

/// Nodes in a chunk: a power of two.
const CHUNK: usize = 256;

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self {
            chunks: Vec::new(),
            free: Vec::new(),
        }
    }
}

impl<T: Default> Arena<T> {
    fn insert(&mut self, value: T) -> u32 {
        if let Some(number) = self.free.pop() {
            self[number] = value;
            return number;
        }
        let full = self.chunks.last().is_none_or(|chunk| chunk.len() == CHUNK);
        if full {
            // The first chunk grows as needed: most resources have few holders.
            let capacity = if self.chunks.is_empty() { 1 } else { CHUNK };
            self.chunks.push(Vec::with_capacity(capacity));
        }
        let chunks = self.chunks.len();
        // There is a chunk: it was there or was just pushed.
        let Some(chunk) = self.chunks.last_mut() else {
            return 0;
        };
        chunk.push(value);
        u32::try_from((chunks - 1) * CHUNK + chunk.len() - 1).unwrap_or(u32::MAX)
    }

    fn remove(&mut self, number: u32) {
        self[number] = T::default();
        self.free.push(number);
    }

    /// Two different nodes at once.
    fn pair_mut(&mut self, left: u32, right: u32) -> (&mut T, &mut T) {
        debug_assert_ne!(left, right);
        let [left, right] = [left as usize, right as usize];
        let (chunk_l, chunk_r) = (left / CHUNK, right / CHUNK);
        let (at_l, at_r) = (left % CHUNK, right % CHUNK);
        #[expect(clippy::indexing_slicing, reason = "both numbers came from `insert`")]
        if chunk_l == chunk_r {
            let (low, high) = self.chunks[chunk_l].split_at_mut(at_l.max(at_r));
            let (low, high) = (&mut low[at_l.min(at_r)], &mut high[0]);
            if at_l < at_r {
                (low, high)
            } else {
                (high, low)
            }
        } else {
            let (low, high) = self.chunks.split_at_mut(chunk_l.max(chunk_r));
            let (low, high) = (&mut low[chunk_l.min(chunk_r)], &mut high[0]);
            if chunk_l < chunk_r {
                (&mut low[at_l], &mut high[at_r])
            } else {
                (&mut high[at_l], &mut low[at_r])
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        let nodes: usize = self.chunks.iter().map(Vec::capacity).sum();
        nodes * size_of::<T>()
    }
}

#[expect(
    clippy::indexing_slicing,
    reason = "numbers come from `insert` and are never made up"
)]
impl<T> std::ops::Index<u32> for Arena<T> {
    type Output = T;

    fn index(&self, number: u32) -> &T {
        &self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }
}

#[expect(
    clippy::indexing_slicing,
    reason = "numbers come from `insert` and are never made up"
)]
impl<T> std::ops::IndexMut<u32> for Arena<T> {
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.chunks[number as usize / CHUNK][number as usize % CHUNK]
    }
}

#[cfg(test)]
#[path = "claim_index/tests.rs"]
mod tests;
