//! Many claims, in order: a B⁺ tree with up to 16 claims in a leaf and 32 children in a node.

use std::cell::Cell;

use crate::claims::index::arena::Arena;
use crate::claims::index::inner::{INNER_MAX, Inner};
use crate::claims::index::leaf::{LEAF_MAX, Leaf};
use crate::claims::index::{Cut, Key, Line, Sums};

/// The claims, in leaves below inner nodes.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    leaves: Arena<Leaf<LEAF_MAX>>,
    inners: Arena<Inner>,
    root: u32,
    /// Levels of inner nodes above the leaves.
    height: u32,
    /// The last [`Tree::cut_at`] since a claim came or went. Most requests change no claim and divide the same capacity.
    known: Cell<Cut>,
    /// Σ wants and Σ subclients of all claims.
    sums: Sums,
}

impl Tree {
    /// Returns a tree with the claims of one leaf.
    pub(super) fn of(leaf: Leaf<LEAF_MAX>) -> Self {
        let mut leaves = Arena::default();
        let sums = leaf.sums();
        let root = leaves.insert(leaf);
        Self {
            leaves,
            inners: Arena::default(),
            root,
            height: 0,
            known: Cell::default(),
            sums,
        }
    }

    /// Σ wants and Σ subclients of all claims.
    pub(super) fn sums(&self) -> Sums {
        self.sums
    }

    /// Inserts a claim. O(log n).
    pub(super) fn insert(&mut self, key: Key) {
        self.known = Cell::default();
        if let Some(right) = self.insert_below(self.root, self.height, key) {
            let mut root = Inner::default();
            let left_sums = self.sums_of(self.root, self.height);
            root.insert(0, self.root, Key::default(), left_sums);
            let (key, sums) = self.key_and_sums(right, self.height);
            root.insert(1, right, key, sums);
            self.root = self.inners.insert(root);
            self.height += 1;
        }
        self.sums = self.sums_of(self.root, self.height);
    }

    /// Removes a claim that was inserted, equal to the bit. O(log n). Returns whether it was present.
    pub(super) fn remove(&mut self, key: Key) -> bool {
        self.known = Cell::default();
        let found = self.remove_below(self.root, self.height, key);
        while self.height > 0 && self.inners[self.root].len() == 1 {
            let only = self.inners[self.root].child(0);
            self.inners.remove(self.root);
            self.root = only;
            self.height -= 1;
        }
        self.sums = self.sums_of(self.root, self.height);
        found
    }

    /// Reads the paths to two claims, for when one is to be replaced by the other. Memory of both paths is fetched side
    /// by side, and all of a node before the code waits for the first of it.
    pub(super) fn fetch(&self, before: Key, after: Key) {
        let (mut left, mut entered) = (self.root, self.root);
        let mut touched = 0.0;
        for _ in 0..self.height {
            let (from, to) = (&self.inners[left], &self.inners[entered]);
            (left, entered) = (
                from.child(from.position_of(before)),
                to.child(to.position_of(after)),
            );
            touched += from.touched() + to.touched();
        }
        touched += self.leaves[left].touched() + self.leaves[entered].touched();
        std::hint::black_box(touched);
    }

    /// Cuts the claims in two, in front of the first one that `is_behind`, given its ratio and D in front of it. All
    /// claims after that must be, too. O(log n).
    pub(super) fn cut(&self, is_behind: &impl Fn(f64, Line) -> bool) -> Cut {
        let (mut node, mut outside) = (self.root, Line::default());
        for _ in 0..self.height {
            let inner = &self.inners[node];
            let (position, line) = inner.find(outside, is_behind);
            (node, outside) = (inner.child(position), line);
        }
        self.leaves[node].cut(outside, is_behind)
    }

    /// Returns the cut at the level that `level_on` finds on its piece of D.
    pub(super) fn cut_at(
        &self,
        level_on: impl Fn(Line) -> f64,
        is_behind: &impl Fn(f64, Line) -> bool,
    ) -> Cut {
        let known = self.known.get();
        if let Cut {
            line,
            last: Some(last),
            next: Some(next),
        } = known
            && (last..next).contains(&level_on(line))
        {
            return known;
        }
        let cut = self.cut(is_behind);
        self.known.set(cut);
        cut
    }

    /// Returns the largest wants per subclient: the level that satisfies every claim. O(log n).
    pub(super) fn highest_ratio(&self) -> Option<f64> {
        let mut node = self.root;
        for _ in 0..self.height {
            let inner = &self.inners[node];
            node = inner.child(inner.len().saturating_sub(1));
        }
        self.leaves[node].last_ratio()
    }

    fn sums_of(&self, node: u32, height: u32) -> Sums {
        if height == 0 {
            self.leaves[node].sums()
        } else {
            self.inners[node].sums()
        }
    }

    /// Returns the first key of a node, and its sums.
    fn key_and_sums(&self, node: u32, height: u32) -> (Key, Sums) {
        if height == 0 {
            let leaf = &self.leaves[node];
            (leaf.key(0), leaf.sums())
        } else {
            let inner = &self.inners[node];
            (inner.key(0), inner.sums())
        }
    }

    /// Inserts below a node. If the node had to split, returns its new right neighbour.
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
            let (key, sums) = self.key_and_sums(new, height - 1);
            let inner = &mut self.inners[node];
            if inner.len() < INNER_MAX {
                inner.insert(position + 1, new, key, sums);
            } else {
                let mut right = inner.split_off(INNER_MAX / 2);
                match (position + 1).checked_sub(inner.len()) {
                    // The first place of the right half also ends the left half. Both fit, but a key below the right
                    // half's first key belongs to the left.
                    None | Some(0) => inner.insert(position + 1, new, key, sums),
                    Some(position) => right.insert(position, new, key, sums),
                }
                split = Some(right);
            }
        }
        split.map(|right| self.inners.insert(right))
    }

    /// Removes below a node, and repairs a child that became too small. Returns whether the key was present.
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

    /// If the child at `position` is too small, merges it with a neighbour, or moves some of the neighbour's claims to
    /// it.
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
        // A lower bound of all keys on the right, above all keys on the left.
        let boundary = self.inners[node].key(left_position + 1);
        let emptied = if height == 1 {
            self.leaves
                .change_both(left, right, |left, right| left.share_with(right))
        } else {
            self.inners.change_both(left, right, |left, right| {
                right.set_key(0, boundary);
                left.share_with(right)
            })
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
            let (key, sums) = self.key_and_sums(right, height - 1);
            self.inners[node].set_key(left_position + 1, key);
            self.inners[node].set_sums(left_position + 1, sums);
        }
    }
}

#[cfg(test)]
mod checks {
    use super::*;

    impl Tree {
        /// Asserts that each node is in order, and that its sums are those of its children.
        ///
        /// # Panics
        ///
        /// If one of them is wrong.
        pub(in crate::claims::index) fn assert_consistent(&self) {
            self.assert_consistent_below(self.root, self.height);
        }

        fn assert_consistent_below(&self, node: u32, height: u32) {
            if height == 0 {
                self.leaves[node].assert_consistent();
                return;
            }
            let inner = &self.inners[node];
            inner.assert_consistent();
            for position in 0..inner.len() {
                let child = inner.child(position);
                assert_eq!(inner.sums_at(position), self.sums_of(child, height - 1));
                self.assert_consistent_below(child, height - 1);
            }
        }
    }
}
