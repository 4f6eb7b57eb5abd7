//! An inner node of the claim index's tree: children in order, with the sums of their subtrees.
//!
//! Fields are apart (all ratios, all wants, …) because most steps look at one of them only. All arrays are sorted
//! by key. Positions handed around are of children that are there, or of a new one, for which there is room; that is why
//! indexing in here cannot fail.
#![expect(
    clippy::indexing_slicing,
    reason = "positions are within the arrays, see above"
)]

use crate::claim_index::sums::{Key, Sums, narrow};

/// Children of an inner node, at most.
pub(super) const INNER_MAX: usize = 32;

/// Children with the sums of their subtrees.
///
/// No running sums are kept, so that an update changes one place in a node; a search adds up
/// blocks of children, which a processor does side by side. Sums beyond the length are zero, and ratios
/// there are infinite, so that all can be added up and compared without waiting for the length.
#[derive(Clone, Debug)]
pub(super) struct Inner {
    len: u8,
    children: [u32; INNER_MAX],
    wants: [f64; INNER_MAX],
    subclients: [f64; INNER_MAX],
    /// A lower bound of all keys in the child, above all keys in the children before it. The first
    /// one is never looked at for searching.
    bound_ratios: [f64; INNER_MAX],
    bound_wants: [f64; INNER_MAX],
    bound_subclients: [f64; INNER_MAX],
}

/// Children that are added up side by side.
const BLOCK: usize = 8;

/// Blocks of a node.
const BLOCKS: usize = INNER_MAX / BLOCK;

/// A child, and what stands before and after it in the whole tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    pub(super) position: usize,
    /// Σ wants of all claims before the child's.
    pub(super) wants_before: f64,
    /// Σ subclients of all claims after the child's.
    pub(super) subclients_after: f64,
}

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
        usize::from(self.len)
    }

    /// A number for which all has to be read that a change of a claim needs.
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

    /// Puts a child in.
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

    /// Takes a child out.
    pub(super) fn remove(&mut self, position: usize) {
        let last = self.len() - 1;
        let from = position + 1..last + 1;
        self.children.copy_within(from.clone(), position);
        for array in self.numbers() {
            array.copy_within(from.clone(), position);
        }
        self.truncate(last);
    }

    /// Forgets all from a position on.
    fn truncate(&mut self, at: usize) {
        let gone = at..self.len();
        for array in self.numbers() {
            array[gone.clone()].fill(0.0);
        }
        self.bound_ratios[gone].fill(f64::INFINITY);
        self.len = narrow(at);
    }

    /// Asserts that the bounds are in order, and that what is beyond the length changes no sum and no search.
    ///
    /// # Panics
    ///
    /// If they are not, or it does.
    #[cfg(test)]
    pub(super) fn assert_consistent(&self) {
        let len = self.len();
        for position in 2..len {
            assert!(self.key(position - 1).is_before(&self.key(position)));
        }
        let beyond = self.wants[len..].iter().chain(&self.subclients[len..]);
        assert!(beyond.copied().all(|it| it == 0.0), "beyond the length");
        let mut beyond = self.bound_ratios[len..].iter();
        assert!(beyond.all(|it| *it == f64::INFINITY), "beyond the length");
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

    /// Moves every child from a position on into a new node.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let mut right = Self::default();
        let moved = at..self.len();
        right.children[..moved.len()].copy_from_slice(&self.children[moved.clone()]);
        for (array, of_right) in self.numbers().into_iter().zip(right.numbers()) {
            of_right[..moved.len()].copy_from_slice(&array[moved.clone()]);
        }
        right.len = narrow(moved.len());
        self.truncate(at);
        right
    }

    /// As of a [leaf](crate::claim_index::leaf::Leaf::share_with).
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

    /// The child in which `key` is, or belongs.
    pub(super) fn position_of(&self, key: Key) -> usize {
        // All of them are looked at, side by side: to halve them would wait for memory several times, one after the other.
        let mut position = 0;
        for bound in &self.bound_ratios[1..] {
            position += usize::from(*bound <= key.ratio);
        }
        // Of the bounds with the same ratio, some may be above the key. Hardly any has it: the others are not looked at.
        while position > 0
            && self.bound_ratios[position] == key.ratio
            && key.is_before(&self.key(position))
        {
            position -= 1;
        }
        position
    }

    /// The child in which claims cross from "at most `level` per subclient" to above it.
    pub(super) fn find_level(&self, level: f64, before: f64, after: f64) -> Found {
        let position = self.bound_ratios[1..self.len()].partition_point(|ratio| *ratio <= level);
        let wants: f64 = self.wants[..position].iter().sum();
        let subclients: f64 = self.subclients[position + 1..].iter().sum();
        Found {
            position,
            wants_before: before + wants,
            subclients_after: after + subclients,
        }
    }

    /// The child in which the first claim is after which no more than `slope` subclients are left.
    pub(super) fn find_slope(&self, slope: f64, before: f64, after: f64) -> Found {
        let mut position = self.len() - 1;
        let mut after = after;
        while position > 0 && after + self.subclients[position] <= slope {
            after += self.subclients[position];
            position -= 1;
        }
        Found {
            position,
            wants_before: before + self.wants[..position].iter().sum::<f64>(),
            subclients_after: after,
        }
    }

    /// The child in which D reaches `capacity`: everything before it has what it wants there, and
    /// everything after it gets the same level. At the boundary between two children, D is the sum
    /// of all wants before it plus the bound's ratio times all subclients after it.
    pub(super) fn find_demand(&self, capacity: f64, before: f64, after: f64) -> Found {
        let mut wants_before = before;
        let mut subclients_after = [after; BLOCKS + 1];
        for block in (0..BLOCKS).rev() {
            subclients_after[block] =
                subclients_after[block + 1] + sum_block(&self.subclients, block);
        }
        // The block in which D reaches the capacity.
        let mut block = 0;
        while (block + 1) * BLOCK < self.len() {
            let wants = wants_before + sum_block(&self.wants, block);
            let boundary = self.bound_ratios[(block + 1) * BLOCK];
            if wants + boundary * subclients_after[block + 1] > capacity {
                break;
            }
            wants_before = wants;
            block += 1;
        }
        // And the child in it.
        let first = block * BLOCK;
        let end = (first + BLOCK).min(self.len());
        let mut after_child = [subclients_after[block + 1]; BLOCK + 1];
        for at in (0..BLOCK).rev() {
            after_child[at] = after_child[at + 1] + self.subclients[first + at];
        }
        let mut position = first;
        while position + 1 < end {
            let wants = wants_before + self.wants[position];
            let boundary = self.bound_ratios[position + 1];
            if wants + boundary * after_child[position - first + 1] > capacity {
                break;
            }
            wants_before = wants;
            position += 1;
        }
        Found {
            position,
            wants_before,
            subclients_after: after_child[position - first + 1],
        }
    }
}

/// The sum of a whole array, block by block.
fn sum(numbers: &[f64; INNER_MAX]) -> f64 {
    (0..BLOCKS).map(|block| sum_block(numbers, block)).sum()
}

/// The sum of a block, always in the same order.
fn sum_block(numbers: &[f64; INNER_MAX], block: usize) -> f64 {
    let n = &numbers[block * BLOCK..(block + 1) * BLOCK];
    ((n[0] + n[4]) + (n[1] + n[5])) + ((n[2] + n[6]) + (n[3] + n[7]))
}
