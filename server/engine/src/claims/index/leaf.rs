//! A leaf of the claim index's tree: claims in order, each with a count.

use smallvec::SmallVec;

use crate::claims::index::{Key, Line, Sums};

/// Largest number of different claims in a leaf.
pub(super) const LEAF_MAX: usize = 16;

/// Different claims, in order. Most resources have few holders, so a single claim is kept in place.
#[derive(Clone, Debug, Default)]
pub(super) struct Leaf(SmallVec<[Counted; 1]>);

/// Equal claims.
#[derive(Clone, Copy, Debug)]
struct Counted {
    wants: f64,
    subclients: f64,
    count: u32,
}

impl Counted {
    /// Returns the wants per subclient. Not stored, since a division costs less than the memory would.
    fn ratio(&self) -> f64 {
        self.wants / self.subclients
    }

    fn key(&self) -> Key {
        Key {
            ratio: self.ratio(),
            wants: self.wants,
            subclients: self.subclients,
        }
    }

    fn sums(&self) -> Sums {
        let count = f64::from(self.count);
        Sums {
            wants: self.wants * count,
            subclients: self.subclients * count,
        }
    }

    fn is_before(&self, key: Key) -> bool {
        // Claims of clients differ in their wants alone, so they need no division.
        if self.subclients == key.subclients {
            self.wants < key.wants
        } else {
            self.key().is_before(&key)
        }
    }
}

impl Leaf {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Number of claims; equal claims count each.
    pub(super) fn count(&self) -> usize {
        self.0.iter().map(|claim| claim.count as usize).sum()
    }

    /// Returns the first key. The default, if there are no claims.
    pub(super) fn first_key(&self) -> Key {
        self.0.first().map(Counted::key).unwrap_or_default()
    }

    /// Returns the largest ratio.
    pub(super) fn last_ratio(&self) -> Option<f64> {
        self.0.last().map(Counted::ratio)
    }

    pub(super) fn sums(&self) -> Sums {
        let claims = self.0.iter().map(Counted::sums);
        claims.fold(Sums::default(), Sums::plus)
    }

    /// Returns the position of a claim.
    ///
    /// # Errors
    ///
    /// The position where the claim belongs, if it is not present.
    fn find(&self, key: Key) -> Result<usize, usize> {
        // This compares all claims. A loop that stops early would be a branch that the processor mispredicts.
        let before = self.0.iter().filter(|claim| claim.is_before(key));
        let position = before.count();
        let found = self.0.get(position).is_some_and(|it| it.key() == key);
        if found { Ok(position) } else { Err(position) }
    }

    /// Inserts a claim. If the leaf was full, splits it and returns its new right neighbour.
    pub(super) fn insert(&mut self, key: Key) -> Option<Self> {
        let position = match self.find(key) {
            Err(position) => position,
            Ok(position) => {
                self.0.get_mut(position)?.count += 1;
                return None;
            }
        };
        if self.len() < LEAF_MAX {
            self.put(position, key);
            return None;
        }
        let mut right = Self(self.0.drain(LEAF_MAX / 2..).collect());
        match position.checked_sub(self.len()) {
            None | Some(0) => self.put(position, key),
            Some(position) => right.put(position, key),
        }
        Some(right)
    }

    fn put(&mut self, position: usize, key: Key) {
        if self.len() == self.0.capacity() {
            let more = (1 + self.len() / 2).min(LEAF_MAX - self.len());
            self.0.reserve_exact(more);
        }
        let claim = Counted {
            wants: key.wants,
            subclients: key.subclients,
            count: 1,
        };
        self.0.insert(position, claim);
    }

    /// Removes one claim. Returns whether it was present.
    pub(super) fn remove(&mut self, key: Key) -> bool {
        let Ok(position) = self.find(key) else {
            return false;
        };
        if let Some(claim) = self.0.get_mut(position) {
            claim.count -= 1;
            if claim.count == 0 {
                self.0.remove(position);
            }
        }
        true
    }

    /// Moves all claims of both into this leaf, if that leaves room to grow, and returns true; else gives each a half
    /// of them.
    pub(super) fn share_with(&mut self, right: &mut Self) -> bool {
        let total = self.len() + right.len();
        let merge = total <= LEAF_MAX * 3 / 4;
        let keep = if merge { total } else { total / 2 };
        match keep.checked_sub(self.len()) {
            Some(more) => self.0.extend(right.0.drain(..more)),
            None => right.0.insert_many(0, self.0.drain(keep..)),
        }
        merge
    }

    /// The piece of the demand curve around a level, given Σ wants of all leaves before this one and Σ subclients of
    /// all after it.
    pub(super) fn line_at(&self, level: f64, wants_before: f64, subclients_after: f64) -> Line {
        let (mut wants, mut subclients) = (wants_before, 0.0);
        for claim in &self.0 {
            let sums = claim.sums();
            if claim.ratio() <= level {
                wants += sums.wants;
            } else {
                subclients += sums.subclients;
            }
        }
        let subclients = subclients + subclients_after;
        Line { wants, subclients }
    }

    /// Finds the first claim after which at most `slope` subclients are left, given the sums before and after this
    /// leaf. The claim is in this leaf. Returns its ratio, and D there.
    pub(super) fn vertex(&self, slope: f64, before: f64, mut after: f64) -> Option<(f64, f64)> {
        for (position, claim) in self.0.iter().enumerate().rev() {
            let with = after + claim.sums().subclients;
            if with > slope {
                let satisfied = self.0.iter().take(position + 1);
                let wants: f64 = satisfied.map(|claim| claim.sums().wants).sum();
                let level = claim.ratio();
                return Some((level, before + wants + level * after));
            }
            after = with;
        }
        None
    }

    /// Returns the level at which all claims together get `capacity`. It lies in this leaf or at its edge. Returns
    /// nothing if it is above all claims.
    pub(super) fn level_for(
        &self,
        capacity: f64,
        wants_before: f64,
        subclients_after: f64,
    ) -> Option<f64> {
        // Σ subclients of all claims behind each one.
        let mut behind = [subclients_after; LEAF_MAX];
        let mut after = subclients_after;
        for (claim, behind) in self.0.iter().zip(&mut behind).rev() {
            *behind = after;
            after += claim.sums().subclients;
        }
        let mut wants = wants_before;
        for (claim, behind) in self.0.iter().zip(behind) {
            let sums = claim.sums();
            let satisfied = wants + sums.wants;
            // D at this claim's ratio: this claim and all before it have their wants.
            if satisfied + claim.ratio() * behind > capacity {
                return Some(((capacity - wants) / (behind + sums.subclients)).max(0.0));
            }
            wants = satisfied;
        }
        (subclients_after > 0.0).then(|| ((capacity - wants) / subclients_after).max(0.0))
    }

    /// Asserts that the claims are in order.
    ///
    /// # Panics
    ///
    /// If they are not.
    #[cfg(test)]
    pub(super) fn assert_consistent(&self) {
        assert!(self.len() <= LEAF_MAX);
        assert!(self.0.is_sorted_by(|one, next| one.is_before(next.key())));
        assert!(self.0.iter().all(|claim| claim.count > 0));
    }
}
