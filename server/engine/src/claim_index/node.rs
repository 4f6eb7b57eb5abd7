//! The nodes of the claim index's tree: leaves of claims, and inner nodes of children with sums.
//!
//! All arrays are sorted by key. Positions handed around are below the node's length, which never
//! exceeds the arrays; that is why indexing in here cannot fail.
#![expect(
    clippy::indexing_slicing,
    reason = "positions are below the node's length, see above"
)]

use crate::claim::Claim;

/// Different claims in a leaf, at most.
pub(super) const LEAF_MAX: usize = 16;

/// Children of an inner node, at most.
pub(super) const INNER_MAX: usize = 64;

/// What claims are ordered by: wants per subclient, then wants. Equal keys are equal claims.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub(super) struct Key {
    pub(super) ratio: f64,
    wants: f64,
    subclients: f64,
}

impl Key {
    /// Not above any key.
    pub(super) const LOWEST: Self = Self {
        ratio: 0.0,
        wants: 0.0,
        subclients: 0.0,
    };

    pub(super) fn of(claim: Claim) -> Self {
        Self {
            ratio: claim.ratio(),
            wants: claim.wants.get(),
            subclients: claim.subclients.get(),
        }
    }

    /// Whether this stands before `other`. No part is ever NaN.
    fn is_before(&self, other: &Self) -> bool {
        (self.ratio, self.wants, self.subclients) < (other.ratio, other.wants, other.subclients)
    }
}

/// Σ wants and Σ subclients of a subtree.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sums {
    pub(super) wants: f64,
    pub(super) subclients: f64,
}

/// Different claims, each with how often it is there.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf {
    len: u8,
    counts: [u32; LEAF_MAX],
    ratios: [f64; LEAF_MAX],
    wants: [f64; LEAF_MAX],
    subclients: [f64; LEAF_MAX],
}

impl Leaf {
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub(super) fn key(&self, position: usize) -> Key {
        Key {
            ratio: self.ratios[position],
            wants: self.wants[position],
            subclients: self.subclients[position],
        }
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
        self.ratios.copy_within(position..len, position + 1);
        self.wants.copy_within(position..len, position + 1);
        self.subclients.copy_within(position..len, position + 1);
        self.counts[position] = count;
        self.ratios[position] = key.ratio;
        self.wants[position] = key.wants;
        self.subclients[position] = key.subclients;
        self.len += 1;
    }

    fn remove_at(&mut self, position: usize) {
        let len = self.len();
        self.counts.copy_within(position + 1..len, position);
        self.ratios.copy_within(position + 1..len, position);
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
            if self.ratios[position] <= level {
                wants += self.wants_at(position);
            } else {
                subclients += self.subclients_at(position);
            }
        }
        wants + level * (subclients + subclients_after)
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
            if satisfied + self.ratios[position] * from[position + 1] > capacity {
                return Some(((capacity - wants) / from[position]).max(0.0));
            }
            wants = satisfied;
        }
        (subclients_after > 0.0).then(|| ((capacity - wants) / subclients_after).max(0.0))
    }
}

/// Children with the sums of their subtrees, and the running sums a search needs.
#[derive(Clone, Debug)]
pub(super) struct Inner {
    len: u8,
    children: [u32; INNER_MAX],
    /// A lower bound of all keys in the child, above all keys in the children before it. The first
    /// one is never looked at for searching.
    keys: [Key; INNER_MAX],
    sums: [Sums; INNER_MAX],
    /// Σ wants of this child and those before it.
    wants_up_to: [f64; INNER_MAX],
    /// Σ subclients of this child and those after it.
    subclients_from: [f64; INNER_MAX],
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            len: 0,
            children: [0; INNER_MAX],
            keys: [Key::LOWEST; INNER_MAX],
            sums: [Sums::default(); INNER_MAX],
            wants_up_to: [0.0; INNER_MAX],
            subclients_from: [0.0; INNER_MAX],
        }
    }
}

impl Inner {
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }

    pub(super) fn child(&self, position: usize) -> u32 {
        self.children[position]
    }

    pub(super) fn key(&self, position: usize) -> Key {
        self.keys[position]
    }

    pub(super) fn set_key(&mut self, position: usize, key: Key) {
        self.keys[position] = key;
    }

    pub(super) fn set_sums(&mut self, position: usize, sums: Sums) {
        self.sums[position] = sums;
    }

    pub(super) fn sums(&self) -> Sums {
        match self.len() {
            0 => Sums::default(),
            len => Sums {
                wants: self.wants_up_to[len - 1],
                subclients: self.subclients_from[0],
            },
        }
    }

    /// Puts a child in; the running sums are wrong until [`Inner::add_up`].
    pub(super) fn insert(&mut self, position: usize, child: u32, key: Key, sums: Sums) {
        let len = self.len();
        self.children.copy_within(position..len, position + 1);
        self.keys.copy_within(position..len, position + 1);
        self.sums.copy_within(position..len, position + 1);
        self.children[position] = child;
        self.keys[position] = key;
        self.sums[position] = sums;
        self.len += 1;
    }

    /// Takes a child out; the running sums are wrong until [`Inner::add_up`].
    pub(super) fn remove(&mut self, position: usize) {
        let len = self.len();
        self.children.copy_within(position + 1..len, position);
        self.keys.copy_within(position + 1..len, position);
        self.sums.copy_within(position + 1..len, position);
        self.len -= 1;
    }

    /// Moves every child from a position on into a new node, whose running sums are wrong until
    /// [`Inner::add_up`].
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let mut right = Self::default();
        let moved = self.len() - at;
        right.children[..moved].copy_from_slice(&self.children[at..at + moved]);
        right.keys[..moved].copy_from_slice(&self.keys[at..at + moved]);
        right.sums[..moved].copy_from_slice(&self.sums[at..at + moved]);
        right.len = narrow(moved);
        self.len = narrow(at);
        right
    }

    /// As [`Leaf::share_with`]; the running sums of both are wrong until [`Inner::add_up`].
    pub(super) fn share_with(&mut self, right: &mut Self) -> bool {
        let total = self.len() + right.len();
        let merge = total <= INNER_MAX * 3 / 4;
        let keep = if merge { total } else { total / 2 };
        while self.len() < keep {
            let position = self.len();
            self.insert(position, right.children[0], right.keys[0], right.sums[0]);
            right.remove(0);
        }
        while self.len() > keep {
            let last = self.len() - 1;
            right.insert(0, self.children[last], self.keys[last], self.sums[last]);
            self.len -= 1;
        }
        merge
    }

    /// Makes all running sums anew from their parts.
    pub(super) fn add_up(&mut self) {
        self.add_up_from(0);
        self.add_up_to(self.len());
    }

    /// Makes anew what a change of the sums from a position on has touched. A change of the number
    /// of children touches all suffix sums before it too, which this does as well.
    pub(super) fn add_up_from(&mut self, position: usize) {
        let mut wants = self.wants_before(position);
        for at in position..self.len() {
            wants += self.sums[at].wants;
            self.wants_up_to[at] = wants;
        }
        self.add_up_to(self.len());
    }

    fn add_up_to(&mut self, end: usize) {
        let mut subclients = 0.0;
        for at in (0..end).rev() {
            subclients += self.sums[at].subclients;
            self.subclients_from[at] = subclients;
        }
    }

    /// Σ wants of the children before a position.
    pub(super) fn wants_before(&self, position: usize) -> f64 {
        if position == 0 {
            0.0
        } else {
            self.wants_up_to[position - 1]
        }
    }

    /// Σ subclients of the children after a position.
    pub(super) fn subclients_after(&self, position: usize) -> f64 {
        if position + 1 < self.len() {
            self.subclients_from[position + 1]
        } else {
            0.0
        }
    }

    /// The child in which `key` is, or belongs.
    pub(super) fn position_of(&self, key: Key) -> usize {
        self.keys[1..self.len()].partition_point(|bound| !key.is_before(bound))
    }

    /// The child in which claims cross from "at most `level` per subclient" to above it.
    pub(super) fn position_of_level(&self, level: f64) -> usize {
        self.keys[1..self.len()].partition_point(|bound| bound.ratio <= level)
    }

    /// The child in which D reaches `capacity`: the last whose lower bound has D ≤ capacity. There,
    /// everything before it has what it wants, and everything after it gets the same level.
    pub(super) fn position_of_demand(
        &self,
        capacity: f64,
        wants_before: f64,
        subclients_after: f64,
    ) -> usize {
        let (mut low, mut high) = (0, self.len() - 1);
        while low < high {
            // At the boundary between `middle` and its right neighbour.
            let middle = usize::midpoint(low, high);
            let demand = wants_before
                + self.wants_up_to[middle]
                + self.keys[middle + 1].ratio
                    * (subclients_after + self.subclients_from[middle + 1]);
            if demand > capacity {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}

/// A length as it is stored: never above 64.
fn narrow(len: usize) -> u8 {
    debug_assert!(len <= INNER_MAX);
    u8::try_from(len).unwrap_or(u8::MAX)
}
