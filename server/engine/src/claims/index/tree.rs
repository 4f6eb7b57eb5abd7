//! The claims, in order: a B⁺ tree with up to 16 claims in a leaf and 32 children in an inner node.

use crate::claims::index::inner::{Found, INNER_MAX, Inner};
use crate::claims::index::leaf::{LEAF_MAX, Leaf};
use crate::claims::index::{Key, Line, Sums};

/// A node, and all claims below it. All children of an inner node have the same height.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Few claims.
    Leaf(Leaf),
    /// More claims.
    Inner(Box<Inner<Node>>),
}

impl Default for Node {
    fn default() -> Self {
        Self::Leaf(Leaf::default())
    }
}

impl Node {
    /// Σ wants and Σ subclients of all claims.
    pub(super) fn sums(&self) -> Sums {
        match self {
            Self::Leaf(leaf) => leaf.sums(),
            Self::Inner(inner) => inner.sums(),
        }
    }

    /// At the root: removes a claim, and inserts another one. O(log n). Returns whether the first one was present, equal
    /// to the bit.
    pub(super) fn change_root(&mut self, goes: Option<Key>, comes: Option<Key>) -> bool {
        let (found, right) = self.change(goes, comes);
        if let Some(right) = right {
            let mut root = Box::<Inner<Self>>::default();
            root.insert(0, std::mem::take(self).into_child());
            root.insert(1, right.into_child());
            *self = Self::Inner(root);
        }
        while let Self::Inner(inner) = self
            && inner.len() == 1
        {
            let (only, ..) = inner.remove(0);
            *self = only;
        }
        found
    }

    /// Removes a claim, and inserts another one. Returns whether the first one was present, and the new right neighbour
    /// if the node had to split. Sums on the way are computed again from their parts: of claims near each other, once.
    fn change(&mut self, goes: Option<Key>, comes: Option<Key>) -> (bool, Option<Self>) {
        let inner = match self {
            Self::Inner(inner) => inner,
            Self::Leaf(leaf) => {
                let found = goes.is_some_and(|key| leaf.remove(key));
                let right = comes.and_then(|key| leaf.insert(key));
                return (found, right.map(Self::Leaf));
            }
        };
        let from = goes.map(|key| inner.position_of(key));
        let to = comes.map(|key| inner.position_of(key));
        if let (Some(from), Some(to)) = (from, to)
            && from != to
        {
            let (found, _) = inner.change_child(from, goes, None);
            let (_, right) = self.change(None, comes);
            return (found, right);
        }
        let Some(position) = from.or(to) else {
            return (false, None);
        };
        let (found, right) = inner.change_child(position, goes, comes);
        (found, right.map(|right| Self::Inner(Box::new(right))))
    }

    /// Merges or balances two neighbours. `boundary` is above all keys of this node, and not above any of the other one.
    fn share_with(&mut self, right: &mut Self, boundary: Key) -> bool {
        match (self, right) {
            (Self::Leaf(left), Self::Leaf(right)) => left.share_with(right),
            (Self::Inner(left), Self::Inner(right)) => {
                right.set_key(0, boundary);
                left.share_with(right)
            }
            // They have the same height.
            _ => false,
        }
    }

    /// Number of claims; equal claims count each. O(n).
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Leaf(leaf) => leaf.count(),
            Self::Inner(inner) => (0..inner.len()).map(|it| inner.child(it).count()).sum(),
        }
    }

    /// Whether there are no claims.
    pub(super) fn is_empty(&self) -> bool {
        matches!(self, Self::Leaf(leaf) if leaf.len() == 0)
    }

    fn is_small(&self) -> bool {
        match self {
            Self::Leaf(leaf) => leaf.len() < LEAF_MAX / 4,
            Self::Inner(inner) => inner.len() < INNER_MAX / 4,
        }
    }

    /// Returns the node with its first key and its sums.
    fn into_child(self) -> (Self, Key, Sums) {
        let key = match &self {
            Self::Leaf(leaf) => leaf.first_key(),
            Self::Inner(inner) => inner.key(0),
        };
        let sums = self.sums();
        (self, key, sums)
    }

    /// Goes down by the child that `find` chooses of each node. Returns the leaf, the wants of the claims before it, and
    /// the subclients of those after it. O(log n).
    fn descend(&self, find: impl Fn(&Inner<Self>, f64, f64) -> Found) -> (&Leaf, f64, f64) {
        let (mut node, mut before, mut after) = (self, 0.0, 0.0);
        loop {
            let inner = match node {
                Self::Leaf(leaf) => return (leaf, before, after),
                Self::Inner(inner) => inner,
            };
            let found = find(inner, before, after);
            node = inner.child(found.position);
            (before, after) = (found.wants_before, found.subclients_after);
        }
    }

    /// The piece of the demand curve around a level. O(log n).
    pub(super) fn line_at(&self, level: f64) -> Line {
        let find = |inner: &Inner<Self>, before, after| inner.find_level(level, before, after);
        let (leaf, before, after) = self.descend(find);
        leaf.line_at(level, before, after)
    }

    /// Returns the level at which all claims together get `capacity`, or nothing if it is above every claim. O(log n).
    pub(super) fn level_for(&self, capacity: f64) -> Option<f64> {
        let find = |inner: &Inner<Self>, before, after| inner.find_demand(capacity, before, after);
        let (leaf, before, after) = self.descend(find);
        leaf.level_for(capacity, before, after)
    }

    /// Finds the corner of D after which D rises by no more than `slope` per level. O(log n).
    pub(super) fn vertex(&self, slope: f64) -> Option<(f64, f64)> {
        let find = |inner: &Inner<Self>, before, after| inner.find_slope(slope, before, after);
        let (leaf, before, after) = self.descend(find);
        leaf.vertex(slope, before, after)
    }

    /// Returns the largest wants per subclient: the level that satisfies every claim. O(log n).
    pub(super) fn highest_ratio(&self) -> Option<f64> {
        let last = |inner: &Inner<Self>, before, after| inner.find_slope(0.0, before, after);
        self.descend(last).0.last_ratio()
    }

    /// Asserts that each node is in order, and that its sums are those of its children.
    ///
    /// # Panics
    ///
    /// If one of them is wrong.
    #[cfg(test)]
    pub(super) fn assert_consistent(&self) {
        match self {
            Self::Leaf(leaf) => leaf.assert_consistent(),
            Self::Inner(inner) => {
                inner.assert_consistent();
                for position in 0..inner.len() {
                    let child = inner.child(position);
                    assert_eq!(inner.sums_at(position), child.sums());
                    child.assert_consistent();
                }
            }
        }
    }
}

impl Inner<Node> {
    /// Changes the claims of a child. Returns whether `goes` was present, and the new right neighbour if the node had to
    /// split.
    fn change_child(
        &mut self,
        position: usize,
        goes: Option<Key>,
        comes: Option<Key>,
    ) -> (bool, Option<Self>) {
        let child = self.child_mut(position);
        let (found, new) = child.change(goes, comes);
        let sums = child.sums();
        self.set_sums(position, sums);
        let right = match new {
            Some(new) => self.insert(position + 1, new.into_child()),
            None => {
                self.mend(position);
                None
            }
        };
        (found, right)
    }

    /// If a child is too small, merges it with a neighbour, or moves some of the neighbour's claims to it.
    fn mend(&mut self, position: usize) {
        if !self.child(position).is_small() || self.len() < 2 {
            return;
        }
        let position = position.saturating_sub(1);
        let (mut right, boundary, _) = self.remove(position + 1);
        let left = self.child_mut(position);
        let is_merged = left.share_with(&mut right, boundary);
        let sums = left.sums();
        self.set_sums(position, sums);
        if !is_merged {
            self.insert(position + 1, right.into_child());
        }
    }
}
