//! The largest of many values that come, go and change.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;

/// Values, and how often each is there. Every change is O(log values that differ).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Peak<T>(BTreeMap<T, usize>);

impl<T> Default for Peak<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T: Copy + Ord> Peak<T> {
    /// One value goes, and another one comes. None: nothing goes, or comes.
    pub(super) fn replace(&mut self, before: Option<T>, after: Option<T>) {
        if before == after {
            return;
        }
        // First what comes: a map that is empty in between would be built anew.
        if let Some(after) = after {
            *self.0.entry(after).or_insert(0) += 1;
        }
        if let Some(before) = before
            && let Entry::Occupied(mut found) = self.0.entry(before)
        {
            *found.get_mut() -= 1;
            if *found.get() == 0 {
                found.remove();
            }
        }
    }

    /// The largest of them.
    pub(super) fn largest(&self) -> Option<T> {
        self.0.last_key_value().map(|(value, _)| *value)
    }

    /// How many are above that. O(values that differ and are above).
    pub(super) fn count_above(&self, value: T) -> usize {
        let above = self.0.range((Bound::Excluded(value), Bound::Unbounded));
        above.map(|(_, count)| count).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_is_known_whatever_comes_and_goes() {
        let mut peak = Peak::default();
        assert_eq!(peak.largest(), None);
        for (before, after, largest, above_two) in [
            (None, Some(3), Some(3), 1),
            (None, Some(3), Some(3), 2),
            (None, Some(1), Some(3), 2),
            (Some(3), Some(2), Some(3), 1),
            (Some(3), Some(3), Some(3), 1),
            (Some(3), None, Some(2), 0),
            (Some(2), Some(7), Some(7), 1),
            (Some(7), None, Some(1), 0),
            (Some(1), None, None, 0),
        ] {
            peak.replace(before, after);
            assert_eq!(peak.largest(), largest, "{before:?} {after:?}");
            assert_eq!(peak.count_above(2), above_two, "{before:?} {after:?}");
        }
        assert_eq!(peak, Peak::default());
    }
}
