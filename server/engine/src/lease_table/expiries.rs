//! When to look at which holder: a heap that never does much at once.
//!
//! The heap of the standard library is one array, which is moved when it is full. This one is in [chunks](crate::chunked).
//!
//! And entries of holders that are gone, or were scheduled anew, stay until they come up. If holders come and go faster
//! than leases end, such entries would pile up, so each newcomer looks at a few entries in turn, and takes out those that
//! mean nothing any more ([`Expiries::tidy`]).

use crate::chunked::Chunked;
use crate::lease_table::slot::Slot;
use crate::time::{Due, Time};

/// Entries that one newcomer looks at.
const LOOKS: usize = 8;

/// As many entries may mean nothing, however few do mean something.
const IDLE_MIN: usize = 1_024;

/// A binary heap: no entry is later than the two below it. See the [module](self). What every request reads comes first.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Expiries {
    /// When the first entry is due: each request asks for that, and does not have to go where the heap is.
    due: Due,
    heap: Chunked<(Time, Slot)>,
    /// The next entry that [`Expiries::tidy`] looks at.
    next: usize,
}

impl Default for Expiries {
    fn default() -> Self {
        Self {
            due: Due::NEVER,
            heap: Chunked::default(),
            next: 0,
        }
    }
}

impl Expiries {
    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// When the first entry is due. O(1).
    pub(super) fn due(&self) -> Due {
        self.due
    }

    fn note_first(&mut self) {
        self.due = self.heap.get(0).map(|(time, _)| time).into();
    }

    /// Puts an entry in. O(log n).
    pub(super) fn push(&mut self, entry: (Time, Slot)) {
        self.heap.push(entry);
        self.rise(self.heap.len() - 1);
        self.note_first();
    }

    /// Takes the first entry out. O(log n).
    pub(super) fn pop(&mut self) -> Option<(Time, Slot)> {
        self.take(0)
    }

    /// Forgets all entries. O(1).
    pub(super) fn clear(&mut self) {
        self.heap.clear();
        self.note_first();
    }

    /// Looks at a few entries in turn, if most of them can mean nothing any more: as there are so many `places`, of which
    /// each needs one. Takes out those of which `is_needed` says so. O(log n).
    pub(super) fn tidy(&mut self, places: usize, is_needed: impl Fn((Time, Slot)) -> bool) {
        for _ in 0..LOOKS {
            if self.len() <= 2 * places + IDLE_MIN {
                return;
            }
            if self.next >= self.len() {
                self.next = 0;
            }
            let at = self.next;
            // What takes its place is looked at next.
            if self.heap.get(at).is_some_and(&is_needed) {
                self.next += 1;
            } else {
                self.take(at);
            }
        }
    }

    /// Bytes of memory behind it.
    pub(super) fn memory_bytes(&self) -> usize {
        self.heap.memory_bytes()
    }

    /// All entries, in no meaningful order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Time, Slot)> {
        (0..self.len()).filter_map(|at| self.heap.get(at))
    }

    /// Asserts that no entry is later than those below it. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If one is.
    pub(super) fn assert_consistent(&self) {
        assert_eq!(
            self.due,
            self.heap.get(0).map(|it| it.0).into(),
            "the first entry"
        );
        for at in 1..self.len() {
            assert!(
                self.heap.get((at - 1) / 2) <= self.heap.get(at),
                "the heap, at {at}"
            );
        }
    }

    /// Takes an entry out, wherever it is.
    fn take(&mut self, at: usize) -> Option<(Time, Slot)> {
        let taken = self.heap.get(at)?;
        let last = self.heap.pop()?;
        if at < self.heap.len() {
            self.heap.set(at, last);
            self.sink(at);
            self.rise(at);
        }
        self.note_first();
        Some(taken)
    }

    /// An entry may be earlier than those above it.
    fn rise(&mut self, mut at: usize) {
        let Some(entry) = self.heap.get(at) else {
            return;
        };
        while at > 0 {
            let above = (at - 1) / 2;
            match self.heap.get(above) {
                Some(other) if entry < other => self.heap.set(at, other),
                _ => break,
            }
            at = above;
        }
        self.heap.set(at, entry);
    }

    /// An entry may be later than those below it.
    fn sink(&mut self, mut at: usize) {
        let Some(entry) = self.heap.get(at) else {
            return;
        };
        loop {
            let below = [2 * at + 1, 2 * at + 2].map(|below| (self.heap.get(below), below));
            let [(Some(left), _), (right, _)] = below else {
                break;
            };
            let (other, below) = match right {
                Some(right) if right < left => (right, 2 * at + 2),
                _ => (left, 2 * at + 1),
            };
            if entry <= other {
                break;
            }
            self.heap.set(at, other);
            at = below;
        }
        self.heap.set(at, entry);
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use proptest::prelude::*;

    use super::*;
    use crate::chunked::CHUNK;

    fn entry(time: u64, slot: usize) -> (Time, Slot) {
        (Time::from_secs(time), Slot::of(slot))
    }

    #[test]
    fn those_that_mean_nothing_go_and_the_others_stay_in_order() {
        let mut heap = Expiries::default();
        for number in 0..10 * CHUNK {
            heap.push(entry((number * 7_919 % 10_007) as u64, number % 10));
        }
        let is_needed = |(_, slot)| slot == Slot::of(3);
        let needed = CHUNK;
        while heap.len() > 2 * needed + IDLE_MIN {
            let before = heap.len();
            heap.tidy(needed, is_needed);
            heap.tidy(needed, is_needed);
            assert!(heap.len() < before, "of any sixteen some mean nothing");
        }
        heap.assert_consistent();
        let all = std::iter::from_fn(|| heap.pop());
        assert_eq!(all.filter(|it| is_needed(*it)).count(), needed);
    }

    proptest! {
        #[test]
        fn it_hands_out_what_was_put_in_the_first_one_first(
            steps in prop::collection::vec(prop::option::weighted(0.6, 0..50_u64), 1..6_000),
        ) {
            let (mut heap, mut expected) = (Expiries::default(), BinaryHeap::new());
            for (slot, step) in steps.into_iter().enumerate() {
                if let Some(time) = step {
                    heap.push(entry(time, slot));
                    expected.push(Reverse(entry(time, slot)));
                } else {
                    let popped = expected.pop().map(|Reverse(it)| it);
                    prop_assert_eq!(heap.pop(), popped);
                }
                prop_assert_eq!(heap.len(), expected.len());
                prop_assert_eq!(heap.due().time(), expected.peek().map(|Reverse(it)| it.0));
            }
            heap.assert_consistent();
        }
    }
}
