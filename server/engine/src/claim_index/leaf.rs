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

/// Different claims in a leaf, at most.
pub(super) const LEAF_MAX: usize = 32;

/// Different claims, each with how often it is there.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    len: u8,
    counts: [u32; LEAF_MAX],
    wants: [f64; LEAF_MAX],
    subclients: [f64; LEAF_MAX],
}

impl Leaf {
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
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
            .find(|&at| !self.key(at).is_before(&key))
            .unwrap_or(self.len())
    }

    /// Puts a claim in; if the leaf was full, returns its new right neighbour.
    pub(super) fn insert(&mut self, key: Key) -> Option<Self> {
        let position = self.position_of(key);
        if position < self.len() && self.key(position) == key {
            self.counts[position] += 1;
            return None;
        }
        if self.len() < LEAF_MAX {
            self.insert_at(position, key, 1);
            return None;
        }
        let mut right = self.split_off(LEAF_MAX / 2);
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
        let merge = total <= LEAF_MAX * 3 / 4;
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
        // Σ subclients from each position to the end of all claims.
        let mut from = [0.0; LEAF_MAX + 1];
        from[self.len()] = subclients_after;
        for position in (0..self.len()).rev() {
            from[position] = from[position + 1] + self.subclients_at(position);
        }
        let mut wants = wants_before;
        for position in 0..self.len() {
            let satisfied = wants + self.wants_at(position);
            // D at this claim's ratio: it and all before it have what they want.
            if satisfied + self.ratio_at(position) * from[position + 1] > capacity {
                return Some(((capacity - wants) / from[position]).max(0.0));
            }
            wants = satisfied;
        }
        (subclients_after > 0.0).then(|| ((capacity - wants) / subclients_after).max(0.0))
    }
}
