//! What comes next: events in order of time, and of when they were put in where times are equal.
//!
//! With a million clients there are millions of events that have not happened yet, and finding
//! the next one in one large heap costs more than playing it. So only what is next is sorted: the
//! list of the present *tick* (a millisecond), beside a heap of what is put into that tick while it
//! is played, which is next to nothing. Of the present *span* (a second) there is a list for each
//! tick, and of everything later one for each span.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

use doorward_engine::time::Time;

/// A tick is 2 to the power of this, in nanoseconds.
const TICK_BITS: u32 = 20;

/// A span is 2 to the power of this, in ticks.
const SPAN_BITS: u32 = 10;

/// What is to be done at a time. Small: there is one for every client, and for every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    /// A message arrives, by its slot.
    Arrival(u32),
    /// Something arrives at etcd, or from it, by its slot.
    Etcd(u32),
    /// A client looks what to do.
    Client(u32),
    /// A place in the tree looks what its servers have to do.
    Place(u32),
    /// A client starts, for the first time or again.
    Start(u32),
    /// A client wants something else by the curve of one that it uses.
    Demand(u32, u8),
    /// Something is due at the limiter of a client for one that it uses.
    Work(u32, u8),
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
    /// Everybody must have what is right.
    Right,
    /// Somebody looks whether all is at rest.
    Settle,
    /// Somebody looks how far everybody is from the ideal.
    Look,
    /// Somebody looks into the books of the nodes.
    Nesting,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    at: Time,
    number: u64,
    what: What,
}

impl Queued {
    /// No two events have the same number, so what is to be done does not count.
    const fn key(&self) -> (Time, u64) {
        (self.at, self.number)
    }

    const fn tick(&self) -> u64 {
        self.at.as_nanos() >> TICK_BITS
    }
}

impl PartialEq for Queued {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Queued {}

impl PartialOrd for Queued {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Queued {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// Events that have not happened yet.
#[derive(Debug)]
pub(crate) struct Events {
    /// Those that were there when the present tick began, the last one first.
    now: Vec<Queued>,
    /// Those up to the end of the present tick that were put in since.
    added: BinaryHeap<Reverse<Queued>>,
    tick: u64,
    /// Those later in the present span, by their tick within it.
    soon: Vec<Vec<Queued>>,
    /// How many these are.
    soon_count: usize,
    /// Those of later spans, by their span.
    later: BTreeMap<u64, Vec<Queued>>,
    number: u64,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            now: Vec::new(),
            added: BinaryHeap::new(),
            tick: 0,
            soon: vec![Vec::new(); 1 << SPAN_BITS],
            soon_count: 0,
            later: BTreeMap::new(),
            number: 0,
        }
    }
}

impl Events {
    /// Something is to be done at a time.
    pub(crate) fn put(&mut self, at: Time, what: What) {
        self.number += 1;
        let number = self.number;
        self.file(Queued { at, number, what });
    }

    /// What comes next, unless it comes after `end`.
    pub(crate) fn next(&mut self, end: Time) -> Option<(Time, What)> {
        while self.now.is_empty() && self.added.is_empty() {
            self.advance()?;
        }
        let (listed, added) = (self.now.last(), self.added.peek());
        let is_listed = match (listed, added) {
            (Some(listed), Some(Reverse(added))) => listed < added,
            (listed, _) => listed.is_some(),
        };
        let next = if is_listed {
            self.now.pop_if(|next| next.at <= end)
        } else {
            added.filter(|next| next.0.at <= end)?;
            self.added.pop().map(|next| next.0)
        };
        next.map(|next| (next.at, next.what))
    }

    fn file(&mut self, entry: Queued) {
        let tick = entry.tick();
        if tick <= self.tick {
            self.added.push(Reverse(entry));
        } else if tick >> SPAN_BITS == self.tick >> SPAN_BITS {
            if let Some(list) = self.soon.get_mut(place_in_span(tick)) {
                list.push(entry);
                self.soon_count += 1;
            }
        } else {
            let span = tick >> SPAN_BITS;
            self.later.entry(span).or_default().push(entry);
        }
    }

    /// Goes on to the next tick that has events, or to the next span; None: there are none.
    fn advance(&mut self) -> Option<()> {
        if self.soon_count > 0 {
            self.tick += 1;
            // There is a list that is not empty, so this ends within the span.
            if let Some(list) = self.soon.get_mut(place_in_span(self.tick)) {
                self.soon_count -= list.len();
                // The list as it is. That of the tick before is freed: what comes next is put where
                // that was, which the processor still has at hand.
                self.now = std::mem::take(list);
                self.now.sort_unstable_by(|a, b| b.cmp(a));
            }
            return Some(());
        }
        let (span, entries) = self.later.pop_first()?;
        self.tick = span << SPAN_BITS;
        for entry in entries {
            self.file(entry);
        }
        Some(())
    }
}

const fn place_in_span(tick: u64) -> usize {
    (tick & ((1 << SPAN_BITS) - 1)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A number that looks like chance, the same every time.
    fn mixed(number: u64) -> u64 {
        (number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 24
    }

    #[test]
    fn events_come_in_order_of_time_and_then_as_they_were_put_in() {
        let mut events = Events::default();
        let mut left = Vec::new();
        let mut now = Time::ZERO;
        for round in 0..5_000_u32 {
            let number = u64::from(round);
            // At once, soon, and much later; some at one and the same time.
            let ahead = match round % 4 {
                0 => 0,
                1 => mixed(number) % 5_000_000,
                2 => (mixed(number) % 50) * 1_000_000_000,
                _ => mixed(number) % 90_000_000_000,
            };
            let at = Time::from_nanos(now.as_nanos() + ahead);
            events.put(at, What::Client(round));
            left.push((at, round));
            if round % 3 == 0 {
                let first = *left.iter().min().unwrap();
                left.retain(|other| *other != first);
                let expected = (first.0, What::Client(first.1));
                assert_eq!(events.next(Time::from_secs(1_000_000)), Some(expected));
                now = first.0;
            }
        }
        left.sort_unstable();
        for (at, round) in left {
            let expected = Some((at, What::Client(round)));
            assert_eq!(events.next(Time::from_secs(1_000_000)), expected);
        }
        assert_eq!(events.next(Time::from_secs(1_000_000)), None);
    }

    #[test]
    fn nothing_comes_after_the_end() {
        let mut events = Events::default();
        events.put(Time::from_secs(7), What::Heal);
        assert_eq!(events.next(Time::from_secs(6)), None);
        assert_eq!(
            events.next(Time::from_secs(7)),
            Some((Time::from_secs(7), What::Heal))
        );
        assert_eq!(events.next(Time::from_secs(8)), None);
    }
}
