//! An inner node of the claim index's tree: children in order, with the sums of their subtrees.
//!
//! Each field is an array of its own (all ratios, all wants, …), because most steps need one field only. All arrays are
//! sorted by key. Every position passed in is that of a present child, or of a new one for which there is room.
//! Therefore indexing here cannot fail.
#![expect(
    clippy::indexing_slicing,
    reason = "positions are within the arrays, see above"
)]

use crate::claims::index::{Key, Line, Sums};

/// Largest number of children of an inner node.
pub(super) const INNER_MAX: usize = 32;

/// Children with the sums of their subtrees.
///
/// The node keeps no running sums, so an update changes one place in it. A search adds up blocks of children, which a
/// processor does side by side. Beyond the length, sums are zero and ratios are infinite, so a search can add and
/// compare all places without waiting for the length.
#[derive(Clone, Debug)]
pub(super) struct Inner {
    len: u32,
    children: [u32; INNER_MAX],
    wants: [f64; INNER_MAX],
    subclients: [f64; INNER_MAX],
    /// A lower bound of all keys in the child, above all keys in the children before it. No search reads the first one.
    bound_ratios: [f64; INNER_MAX],
    bound_wants: [f64; INNER_MAX],
    bound_subclients: [f64; INNER_MAX],
}

/// Number of children that are added up side by side.
const BLOCK: usize = 8;

/// Number of blocks in a node.
const BLOCKS: usize = INNER_MAX / BLOCK;

impl Default for Inner {
    fn default() -> Self {
        Self {
            len: 0,
            children: [0; INNER_MAX],
            wants: [0.0; INNER_MAX],
            subclients: [0.0; INNER_MAX],
            bound_ratios: [f64::INFINITY; INNER_MAX],
            bound_wants: [0.0; INNER_MAX],
            bound_subclients: [0.0; INNER_MAX],
        }
    }
}

impl Inner {
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns a number whose computation reads everything that a change of a claim needs.
    pub(super) fn touched(&self) -> f64 {
        let lines = |array: &[f64; INNER_MAX]| array.iter().step_by(8).sum::<f64>();
        let children: u32 = self.children.iter().step_by(16).fold(0, |a, b| a | b);
        lines(&self.wants) + lines(&self.subclients) + f64::from(children)
    }

    pub(super) fn child(&self, position: usize) -> u32 {
        self.children[position]
    }

    pub(super) fn key(&self, position: usize) -> Key {
        Key {
            ratio: self.bound_ratios[position],
            wants: self.bound_wants[position],
            subclients: self.bound_subclients[position],
        }
    }

    pub(super) fn set_key(&mut self, position: usize, key: Key) {
        self.bound_ratios[position] = key.ratio;
        self.bound_wants[position] = key.wants;
        self.bound_subclients[position] = key.subclients;
    }

    pub(super) fn sums_at(&self, position: usize) -> Sums {
        Sums {
            wants: self.wants[position],
            subclients: self.subclients[position],
        }
    }

    pub(super) fn set_sums(&mut self, position: usize, sums: Sums) {
        self.wants[position] = sums.wants;
        self.subclients[position] = sums.subclients;
    }

    pub(super) fn sums(&self) -> Sums {
        Sums {
            wants: sum(&self.wants),
            subclients: sum(&self.subclients),
        }
    }

    /// Inserts a child.
    pub(super) fn insert(&mut self, position: usize, child: u32, key: Key, sums: Sums) {
        let (from, to) = (position..self.len(), position + 1);
        self.children.copy_within(from.clone(), to);
        for array in self.numbers() {
            array.copy_within(from.clone(), to);
        }
        self.children[position] = child;
        self.set_key(position, key);
        self.set_sums(position, sums);
        self.len += 1;
    }

    /// Removes a child.
    pub(super) fn remove(&mut self, position: usize) {
        let last = self.len() - 1;
        let from = position + 1..last + 1;
        self.children.copy_within(from.clone(), position);
        for array in self.numbers() {
            array.copy_within(from.clone(), position);
        }
        self.truncate(last);
    }

    /// Drops all children from a position on.
    fn truncate(&mut self, at: usize) {
        let gone = at..self.len();
        for array in self.numbers() {
            array[gone.clone()].fill(0.0);
        }
        self.bound_ratios[gone].fill(f64::INFINITY);
        self.len = at as u32;
    }

    fn numbers(&mut self) -> [&mut [f64; INNER_MAX]; 5] {
        [
            &mut self.wants,
            &mut self.subclients,
            &mut self.bound_ratios,
            &mut self.bound_wants,
            &mut self.bound_subclients,
        ]
    }

    /// Moves all children from a position on into a new node.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let mut right = Self::default();
        let moved = at..self.len();
        right.children[..moved.len()].copy_from_slice(&self.children[moved.clone()]);
        for (array, of_right) in self.numbers().into_iter().zip(right.numbers()) {
            of_right[..moved.len()].copy_from_slice(&array[moved.clone()]);
        }
        right.len = moved.len() as u32;
        self.truncate(at);
        right
    }

    /// Merges or balances two nodes, as a [leaf](crate::claims::index::leaf::Leaf::share_with) does.
    pub(super) fn share_with(&mut self, right: &mut Self) -> bool {
        let total = self.len() + right.len();
        let merge = total <= INNER_MAX * 3 / 4;
        let keep = if merge { total } else { total / 2 };
        while self.len() < keep {
            self.insert(
                self.len(),
                right.children[0],
                right.key(0),
                right.sums_at(0),
            );
            right.remove(0);
        }
        while self.len() > keep {
            let last = self.len() - 1;
            right.insert(0, self.children[last], self.key(last), self.sums_at(last));
            self.remove(last);
        }
        merge
    }

    /// Returns the child that holds `key`, or that it belongs to.
    pub(super) fn position_of(&self, key: Key) -> usize {
        // The loop compares all bounds side by side. A binary search would wait for memory several times, one after the
        // other.
        let mut position = 0;
        for bound in &self.bound_ratios[1..] {
            position += usize::from(*bound <= key.ratio);
        }
        // Some bounds with the same ratio may be above the key. Few bounds have the same ratio, so only their other
        // parts are read.
        while position > 0
            && self.bound_ratios[position] == key.ratio
            && key.is_before(&self.key(position))
        {
            position -= 1;
        }
        position
    }

    /// Finds the last child whose bound is not behind a cut ([`Tree::cut`](super::tree::Tree::cut)). Returns its
    /// position, Σ wants of all claims before it, and Σ subclients of those after it.
    ///
    /// At the bound of a child, D is the sum of all wants before it plus the bound's ratio times all subclients from it
    /// on.
    pub(super) fn find(
        &self,
        outside: Line,
        is_behind: &impl Fn(f64, Line) -> bool,
    ) -> (usize, Line) {
        let mut wants_before = outside.wants;
        let mut subclients_after = [outside.subclients; BLOCKS + 1];
        for block in (0..BLOCKS).rev() {
            subclients_after[block] =
                subclients_after[block + 1] + sum_block(&self.subclients, block);
        }
        // Find the block, then the child in it.
        let mut block = 0;
        while (block + 1) * BLOCK < self.len() {
            let wants = wants_before + sum_block(&self.wants, block);
            let subclients = subclients_after[block + 1];
            let bound = self.bound_ratios[(block + 1) * BLOCK];
            if is_behind(bound, Line { wants, subclients }) {
                break;
            }
            wants_before = wants;
            block += 1;
        }
        let first = block * BLOCK;
        let end = (first + BLOCK).min(self.len());
        let mut after_child = [subclients_after[block + 1]; BLOCK + 1];
        for at in (0..BLOCK).rev() {
            after_child[at] = after_child[at + 1] + self.subclients[first + at];
        }
        let mut position = first;
        while position + 1 < end {
            let wants = wants_before + self.wants[position];
            let subclients = after_child[position - first + 1];
            if is_behind(self.bound_ratios[position + 1], Line { wants, subclients }) {
                break;
            }
            wants_before = wants;
            position += 1;
        }
        let line = Line {
            wants: wants_before,
            subclients: after_child[position - first + 1],
        };
        (position, line)
    }
}

/// Returns the sum of a whole array, block by block.
fn sum(numbers: &[f64; INNER_MAX]) -> f64 {
    (0..BLOCKS).map(|block| sum_block(numbers, block)).sum()
}

/// Returns the sum of a block, always in the same order.
fn sum_block(numbers: &[f64; INNER_MAX], block: usize) -> f64 {
    let n = &numbers[block * BLOCK..(block + 1) * BLOCK];
    ((n[0] + n[4]) + (n[1] + n[5])) + ((n[2] + n[6]) + (n[3] + n[7]))
}

#[cfg(test)]
mod checks {
    use super::*;

    impl Inner {
        /// Asserts that the bounds are in order, and that places beyond the length change no sum and no search.
        ///
        /// # Panics
        ///
        /// If one of them is wrong.
        pub(in crate::claims::index) fn assert_consistent(&self) {
            let len = self.len();
            for position in 2..len {
                assert!(self.key(position - 1).is_before(&self.key(position)));
            }
            let beyond = self.wants[len..].iter().chain(&self.subclients[len..]);
            assert!(beyond.copied().all(|it| it == 0.0), "beyond the length");
            let mut beyond = self.bound_ratios[len..].iter();
            assert!(beyond.all(|it| *it == f64::INFINITY), "beyond the length");
        }
    }
}
