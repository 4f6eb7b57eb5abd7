//! A leaf of the claim index's tree: claims in order.
//!
//! Each field is an array of its own (all counts, all wants, …), because most steps need one field only. All arrays are
//! sorted by key. Every position passed in is that of a present claim, or of a new one for which there is room.
//! Therefore indexing here cannot fail.
#![expect(
    clippy::indexing_slicing,
    reason = "positions are within the arrays, see above"
)]

use crate::claims::index::{Cut, Key, Line, Sums};

/// Largest number of different claims in a leaf of a tree.
pub(super) const LEAF_MAX: usize = 16;

/// Number of sums that are added up side by side. A single sum would wait for each of its additions.
const LANES: usize = 4;

/// Up to `MAX` different claims, each with a count. Places beyond the length are zero, so a sum can add all places
/// without reading the length.
#[derive(Clone, Debug)]
pub(super) struct Leaf<const MAX: usize> {
    len: u32,
    counts: [u32; MAX],
    wants: [f64; MAX],
    subclients: [f64; MAX],
}

impl<const MAX: usize> Default for Leaf<MAX> {
    fn default() -> Self {
        Self {
            len: 0,
            counts: [0; MAX],
            wants: [0.0; MAX],
            subclients: [0.0; MAX],
        }
    }
}

impl<const MAX: usize> Leaf<MAX> {
    /// Returns a leaf with all claims of a smaller one.
    pub(super) fn copied_from<const LESS: usize>(smaller: &Leaf<LESS>) -> Self {
        debug_assert!(LESS <= MAX);
        let mut leaf = Self::default();
        for position in 0..smaller.len() {
            leaf.insert_at(position, smaller.key(position), smaller.counts[position]);
        }
        leaf
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns a number whose computation reads nearly the whole leaf.
    pub(super) fn touched(&self) -> f64 {
        let lines = |array: &[f64; MAX]| array.iter().step_by(8).sum::<f64>();
        let counts: u32 = self.counts.iter().step_by(16).fold(0, |a, b| a | b);
        lines(&self.wants) + lines(&self.subclients) + f64::from(counts)
    }

    pub(super) fn key(&self, position: usize) -> Key {
        Key {
            ratio: self.ratio_at(position),
            wants: self.wants[position],
            subclients: self.subclients[position],
        }
    }

    /// Returns the ratio at a position. Not stored, since a division costs less than the memory would.
    fn ratio_at(&self, position: usize) -> f64 {
        self.wants[position] / self.subclients[position]
    }

    /// Σ wants at a position: equal claims times their count.
    fn wants_at(&self, position: usize) -> f64 {
        self.wants[position] * f64::from(self.counts[position])
    }

    /// Σ subclients at a position.
    fn subclients_at(&self, position: usize) -> f64 {
        self.subclients[position] * f64::from(self.counts[position])
    }

    pub(super) fn sums(&self) -> Sums {
        Sums {
            wants: self.sum_of(&self.wants),
            subclients: self.sum_of(&self.subclients),
        }
    }

    /// Returns the sum over all claims of their number in `numbers` times their count.
    fn sum_of(&self, numbers: &[f64; MAX]) -> f64 {
        let mut sums = [0.0; LANES];
        for (position, number) in numbers.iter().enumerate() {
            sums[position % LANES] += number * f64::from(self.counts[position]);
        }
        (sums[0] + sums[1]) + (sums[2] + sums[3])
    }

    /// Returns the first position whose key is not before `key`.
    ///
    /// The loop compares all of them side by side. A loop that stops early would be a branch that the processor
    /// mispredicts. Places beyond the length have no ratio, which is below none.
    fn position_of(&self, key: Key) -> usize {
        let mut position = 0;
        for at in 0..MAX {
            position += usize::from(self.ratio_at(at) < key.ratio);
        }
        while position < self.len() && self.key(position).is_before(&key) {
            position += 1;
        }
        position
    }

    /// Returns the position of a claim.
    ///
    /// # Errors
    ///
    /// The position where the claim belongs, if it is not present.
    fn find(&self, key: Key) -> Result<usize, usize> {
        let position = self.position_of(key);
        if position < self.len() && self.key(position) == key {
            Ok(position)
        } else {
            Err(position)
        }
    }

    /// Inserts a claim, if there is room. Returns whether there was.
    pub(super) fn try_insert(&mut self, key: Key) -> bool {
        match self.find(key) {
            Ok(position) => self.counts[position] += 1,
            Err(_) if self.len() == MAX => return false,
            Err(position) => self.insert_at(position, key, 1),
        }
        true
    }

    /// Inserts a claim. If the leaf was full, splits it and returns its new right neighbour.
    pub(super) fn insert(&mut self, key: Key) -> Option<Self> {
        if self.try_insert(key) {
            return None;
        }
        let mut right = self.split_off(MAX / 2);
        let half = if right.key(0).is_before(&key) {
            &mut right
        } else {
            &mut *self
        };
        half.try_insert(key);
        Some(right)
    }

    fn insert_at(&mut self, position: usize, key: Key, count: u32) {
        let (from, to) = (position..self.len(), position + 1);
        self.counts.copy_within(from.clone(), to);
        self.wants.copy_within(from.clone(), to);
        self.subclients.copy_within(from, to);
        self.counts[position] = count;
        self.wants[position] = key.wants;
        self.subclients[position] = key.subclients;
        self.len += 1;
    }

    fn remove_at(&mut self, position: usize) {
        let from = position + 1..self.len();
        self.counts.copy_within(from.clone(), position);
        self.wants.copy_within(from.clone(), position);
        self.subclients.copy_within(from, position);
        self.truncate(self.len() - 1);
    }

    /// Drops all claims from a position on.
    fn truncate(&mut self, at: usize) {
        let gone = at..self.len();
        self.counts[gone.clone()].fill(0);
        self.wants[gone.clone()].fill(0.0);
        self.subclients[gone].fill(0.0);
        self.len = at as u32;
    }

    /// Removes one claim. Returns whether it was present.
    pub(super) fn remove(&mut self, key: Key) -> bool {
        let Ok(position) = self.find(key) else {
            return false;
        };
        self.counts[position] -= 1;
        if self.counts[position] == 0 {
            self.remove_at(position);
        }
        true
    }

    /// Moves all claims from a position on into a new leaf.
    fn split_off(&mut self, at: usize) -> Self {
        let mut right = Self::default();
        for position in at..self.len() {
            right.insert_at(position - at, self.key(position), self.counts[position]);
        }
        self.truncate(at);
        right
    }

    /// Moves all claims of both into this leaf, if that leaves room to grow, and returns true; else gives each a half
    /// of them.
    pub(super) fn share_with(&mut self, right: &mut Self) -> bool {
        let total = self.len() + right.len();
        let merge = total <= MAX * 3 / 4;
        let keep = if merge { total } else { total / 2 };
        while self.len() < keep {
            let position = self.len();
            self.insert_at(position, right.key(0), right.counts[0]);
            right.remove_at(0);
        }
        while self.len() > keep {
            let last = self.len() - 1;
            right.insert_at(0, self.key(last), self.counts[last]);
            self.truncate(last);
        }
        merge
    }

    /// Returns the largest ratio.
    pub(super) fn last_ratio(&self) -> Option<f64> {
        self.len().checked_sub(1).map(|last| self.ratio_at(last))
    }

    /// Cuts the claims in two, in front of the first one that `is_behind` ([`Tree::cut`](super::tree::Tree::cut)).
    pub(super) fn cut(&self, outside: Line, is_behind: &impl Fn(f64, Line) -> bool) -> Cut {
        // Σ subclients from each position on.
        let mut behind = [0.0; MAX];
        let mut subclients = outside.subclients;
        for (position, behind) in behind.iter_mut().enumerate().take(self.len()).rev() {
            subclients += self.subclients_at(position);
            *behind = subclients;
        }
        let (mut wants, mut last) = (outside.wants, None);
        for (position, subclients) in behind.into_iter().enumerate().take(self.len()) {
            let (ratio, line) = (self.ratio_at(position), Line { wants, subclients });
            if is_behind(ratio, line) {
                let next = Some(ratio);
                return Cut { line, last, next };
            }
            (wants, last) = (wants + self.wants_at(position), Some(ratio));
        }
        Cut {
            line: Line { wants, ..outside },
            last,
            next: None,
        }
    }
}

#[cfg(test)]
mod checks {
    use super::*;

    impl<const MAX: usize> Leaf<MAX> {
        /// Asserts that the claims are in order, and that places beyond them are zero.
        ///
        /// # Panics
        ///
        /// If they are not.
        pub(in crate::claims::index) fn assert_consistent(&self) {
            let len = self.len();
            for position in 1..len {
                assert!(self.key(position - 1).is_before(&self.key(position)));
            }
            assert!(self.counts[..len].iter().all(|count| *count > 0));
            assert!(self.counts[len..].iter().all(|count| *count == 0));
            let beyond = self.wants[len..].iter().chain(&self.subclients[len..]);
            assert!(beyond.copied().all(|it| it == 0.0), "beyond the length");
        }
    }
}
