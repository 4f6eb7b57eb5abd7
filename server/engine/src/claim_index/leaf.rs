//! A leaf of the claim index's tree: claims in order.
//!
//! Fields are apart (all counts, all wants, …) because most steps look at one of them only. All arrays are sorted
//! by key. Positions handed around are below the leaf's length, which never exceeds the arrays; that is why
//! indexing in here cannot fail.
#![expect(
    clippy::indexing_slicing,
    reason = "positions are below the node's length, see above"
)]

use crate::claim_index::sums::{Key, Sums, narrow};

/// Different claims in a leaf of a tree, at most.
pub(super) const LEAF_MAX: usize = 32;

/// Up to `MAX` different claims, each with how often it is there.
#[derive(Clone, Debug)]
pub(super) struct Leaf<const MAX: usize> {
    len: u8,
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
    /// All that is in a smaller leaf.
    pub(super) fn copied_from<const LESS: usize>(smaller: &Leaf<LESS>) -> Self {
        debug_assert!(LESS <= MAX);
        let mut leaf = Self::default();
        for position in 0..smaller.len() {
            leaf.insert_at(position, smaller.key(position), smaller.counts[position]);
        }
        leaf
    }

    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// A number for which all of it has to be read.
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

    /// Not stored: a division costs less than the memory would.
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
        let mut sums = Sums::default();
        for position in 0..self.len() {
            sums.wants += self.wants_at(position);
            sums.subclients += self.subclients_at(position);
        }
        sums
    }

    /// The first position whose key is not before `key`.
    fn position_of(&self, key: Key) -> usize {
        (0..self.len())
            .find(|&at| !self.is_before(at, &key))
            .unwrap_or(self.len())
    }

    /// Whether the claim at a position stands before `key`. Nearly all claims are of as many subclients: those are told
    /// apart by their wants, without a division.
    fn is_before(&self, at: usize, key: &Key) -> bool {
        if self.subclients[at] == key.subclients {
            return self.wants[at] < key.wants;
        }
        self.key(at).is_before(key)
    }

    /// How often a claim is there, if it is.
    pub(super) fn count_of(&self, key: Key) -> Option<u32> {
        let position = self.position_of(key);
        let is_there = position < self.len() && self.key(position) == key;
        is_there.then(|| self.counts[position])
    }

    /// Whether a claim can be put in without splitting the leaf.
    pub(super) fn has_room_for(&self, key: Key) -> bool {
        self.len() < MAX || self.count_of(key).is_some()
    }

    /// Puts a claim in, if there is room. Returns whether there was.
    pub(super) fn try_insert(&mut self, key: Key) -> bool {
        self.insert_or_find(key).is_ok()
    }

    /// Puts a claim in.
    ///
    /// # Errors
    ///
    /// If the leaf is full: the position where it belongs.
    fn insert_or_find(&mut self, key: Key) -> Result<(), usize> {
        let position = self.position_of(key);
        if position < self.len() && self.key(position) == key {
            self.counts[position] += 1;
        } else if self.len() < MAX {
            self.insert_at(position, key, 1);
        } else {
            return Err(position);
        }
        Ok(())
    }

    /// Puts a claim in; if the leaf was full, returns its new right neighbour.
    pub(super) fn insert(&mut self, key: Key) -> Option<Self> {
        let position = self.insert_or_find(key).err()?;
        let mut right = self.split_off(MAX / 2);
        if position <= self.len() {
            self.insert_at(position, key, 1);
        } else {
            right.insert_at(position - self.len(), key, 1);
        }
        Some(right)
    }

    fn insert_at(&mut self, position: usize, key: Key, count: u32) {
        let len = self.len();
        self.counts.copy_within(position..len, position + 1);
        self.wants.copy_within(position..len, position + 1);
        self.subclients.copy_within(position..len, position + 1);
        self.counts[position] = count;
        self.wants[position] = key.wants;
        self.subclients[position] = key.subclients;
        self.len += 1;
    }

    fn remove_at(&mut self, position: usize) {
        let len = self.len();
        self.counts.copy_within(position + 1..len, position);
        self.wants.copy_within(position + 1..len, position);
        self.subclients.copy_within(position + 1..len, position);
        self.len -= 1;
    }

    /// Takes one claim out; returns whether it was there.
    pub(super) fn remove(&mut self, key: Key) -> bool {
        let position = self.position_of(key);
        if position == self.len() || self.key(position) != key {
            return false;
        }
        self.counts[position] -= 1;
        if self.counts[position] == 0 {
            self.remove_at(position);
        }
        true
    }

    /// Moves everything from a position on into a new leaf.
    fn split_off(&mut self, at: usize) -> Self {
        let mut right = Self::default();
        for position in at..self.len() {
            right.insert_at(position - at, self.key(position), self.counts[position]);
        }
        self.len = narrow(at);
        right
    }

    /// Moves everything into this leaf, if it leaves room to grow, and returns true; else halves
    /// what is in both between them.
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
            self.len -= 1;
        }
        merge
    }

    /// D(level), given Σ wants of all leaves before this one and Σ subclients of all after it.
    pub(super) fn demand_at(&self, level: f64, wants_before: f64, subclients_after: f64) -> f64 {
        let mut wants = wants_before;
        let mut subclients = 0.0;
        for position in 0..self.len() {
            if self.ratio_at(position) <= level {
                wants += self.wants_at(position);
            } else {
                subclients += self.subclients_at(position);
            }
        }
        wants + level * (subclients + subclients_after)
    }

    /// The first claim after which no more than `slope` subclients are left, given what stands
    /// before and after this leaf: its ratio, and D there. It is in this leaf.
    pub(super) fn vertex(&self, slope: f64, before: f64, after: f64) -> Option<(f64, f64)> {
        let mut after = after;
        let mut position = self.len();
        while position > 0 && after <= slope {
            position -= 1;
            let with = after + self.subclients_at(position);
            if with > slope {
                let wants: f64 = (0..=position).map(|at| self.wants_at(at)).sum();
                let level = self.ratio_at(position);
                return Some((level, before + wants + level * after));
            }
            after = with;
        }
        None
    }

    /// The largest ratio.
    pub(super) fn last_ratio(&self) -> Option<f64> {
        self.len().checked_sub(1).map(|last| self.ratio_at(last))
    }

    /// The level at which all claims together get `capacity`, which lies in this leaf or at its
    /// edge. None: it is above every claim there is.
    pub(super) fn level_for(
        &self,
        capacity: f64,
        wants_before: f64,
        subclients_after: f64,
    ) -> Option<f64> {
        // Σ subclients of all claims behind each position.
        let mut behind = [0.0; MAX];
        let mut after = subclients_after;
        for (position, behind) in behind.iter_mut().enumerate().take(self.len()).rev() {
            *behind = after;
            after += self.subclients_at(position);
        }
        let mut wants = wants_before;
        for (position, behind) in behind.into_iter().enumerate().take(self.len()) {
            let satisfied = wants + self.wants_at(position);
            // D at this claim's ratio: it and all before it have what they want.
            if satisfied + self.ratio_at(position) * behind > capacity {
                let rising = behind + self.subclients_at(position);
                return Some(((capacity - wants) / rising).max(0.0));
            }
            wants = satisfied;
        }
        (subclients_after > 0.0).then(|| ((capacity - wants) / subclients_after).max(0.0))
    }
}
