//! What is not needed any more, and takes too long to drop while somebody waits.
//!
//! Dropping a million leases takes as long as thousands of requests. So a node that forgets them hands them out
//! ([`Node::poll_garbage`](crate::node::Node::poll_garbage)), and whoever has them drops them elsewhere, a few at
//! a time.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

/// What is kept if nobody takes it: beyond that, the oldest is dropped at once.
const HEAPS_MAX: usize = 64;

/// Fewer pieces than that are dropped at once.
pub(crate) const FEW: usize = 256;

/// Something of many pieces that is not needed any more.
pub(crate) trait Heap: fmt::Debug + Send {
    /// Drops about so many pieces of it. Returns whether that was all.
    fn drop_some(&mut self, pieces: usize) -> bool;
}

impl<K: Ord + fmt::Debug + Send, V: fmt::Debug + Send> Heap for BTreeMap<K, V> {
    fn drop_some(&mut self, pieces: usize) -> bool {
        (0..pieces).any(|_| self.pop_first().is_none())
    }
}

impl<T: Ord + fmt::Debug + Send> Heap for BTreeSet<T> {
    fn drop_some(&mut self, pieces: usize) -> bool {
        (0..pieces).any(|_| self.pop_first().is_none())
    }
}

/// What is of one piece, or of few large ones.
#[derive(Debug)]
pub(crate) struct Whole<T>(pub(crate) T);

impl<T: fmt::Debug + Send> Heap for Whole<T> {
    fn drop_some(&mut self, _: usize) -> bool {
        true
    }
}

/// What is not needed any more. See the [module](self).
#[derive(Debug, Default)]
pub struct Garbage(VecDeque<Box<dyn Heap>>);

impl Garbage {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Drops about so many pieces of it: a lease is one. Returns whether something is left.
    pub fn drop_some(&mut self, pieces: usize) -> bool {
        if let Some(first) = self.0.front_mut()
            && first.drop_some(pieces)
        {
            self.0.pop_front();
        }
        !self.0.is_empty()
    }

    pub(crate) fn push(&mut self, heap: impl Heap + 'static) {
        if self.0.len() == HEAPS_MAX {
            self.0.pop_front();
        }
        self.0.push_back(Box::new(heap));
    }

    pub(crate) fn append(&mut self, other: Self) {
        for heap in other.0 {
            if self.0.len() == HEAPS_MAX {
                self.0.pop_front();
            }
            self.0.push_back(heap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_dropped_piece_by_piece_and_then_it_is_gone() {
        let mut garbage = Garbage::default();
        assert!(!garbage.drop_some(1));
        garbage.push(BTreeSet::from([1, 2, 3]));
        garbage.push(Whole("all"));
        let left: Vec<bool> = (0..3).map(|_| garbage.drop_some(2)).collect();
        assert_eq!(left, [true, true, false]);
        assert!(garbage.is_empty());
    }

    #[test]
    fn what_nobody_takes_does_not_pile_up() {
        let mut garbage = Garbage::default();
        for number in 0..1_000 {
            garbage.push(Whole(number));
            let mut more = Garbage::default();
            more.push(Whole(number));
            garbage.append(more);
        }
        assert_eq!(garbage.0.len(), HEAPS_MAX);
    }
}
