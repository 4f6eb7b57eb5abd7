//! What comes next: events in order of time, and of when they were put in where times are equal.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use doorward_engine::time::Time;

/// What is to be done at a time. Small: there is one for every client, and for every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// A message arrives, by its slot.
    Arrival(u32),
    /// A client looks what to do.
    Client(u32),
    /// A place in the tree looks what its servers have to do.
    Place(u32),
    /// A client starts, for the first time or again.
    Start(u32),
    /// A client wants something else by its curve.
    Demand(u32),
    /// The next rows of a trace are due, by its group.
    Trace(u32),
    /// A fault happens.
    Fault(u32),
    /// Something that a fault began is over.
    Ending(u32),
    /// From now on nothing goes wrong.
    Heal,
    /// Everything is measured.
    Sample,
    /// Somebody looks whether all is at rest.
    Settle,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    at: Time,
    number: u64,
    what: What,
}

/// Events that have not happened yet.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: BinaryHeap<Reverse<Entry>>,
    number: u64,
}

impl Events {
    /// Something is to be done at a time.
    pub(crate) fn put(&mut self, at: Time, what: What) {
        self.number += 1;
        let number = self.number;
        self.heap.push(Reverse(Entry { at, number, what }));
    }

    /// What comes next, unless it comes after `end`.
    pub(crate) fn next(&mut self, end: Time) -> Option<(Time, What)> {
        let is_due = self.heap.peek().is_some_and(|next| next.0.at <= end);
        if !is_due {
            return None;
        }
        let Reverse(entry) = self.heap.pop()?;
        Some((entry.at, entry.what))
    }
}
