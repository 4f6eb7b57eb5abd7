//! Queue of events, in order of time, and of insertion where times are equal.
//!
//! With a million clients there are millions of future events, and one large heap would cost more
//! than the events themselves. So only the present is sorted: a list of the present *tick* (a
//! millisecond), beside a small heap of events added to that tick while it is played. The present
//! *span* (a second) has one list for each tick, and all later time one list for each span.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BinaryHeap};

use doorward_engine::time::Time;

/// Length of a tick: 2 to this power, in nanoseconds.
const TICK_BITS: u32 = 20;

/// Length of a span: 2 to this power, in ticks.
const SPAN_BITS: u32 = 10;

/// Kind of an event. It is small because there is one for every client and every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EventKind {
    /// A message arrives, by its slot.
    Arrival(u32),
    /// A message arrives at etcd or from it, by its slot.
    Etcd(u32),
    /// A client checks what is due.
    Client(u32),
    /// A node checks what is due at its servers.
    Place(u32),
    /// A client starts, for the first time or again.
    Start(u32),
    /// The demand curve of a client changes, for one of its resources.
    Demand(u32, u8),
    /// A client's limiter has something due, for one of its resources.
    Work(u32, u8),
    /// The next rows of a trace are due, by its group.
    Trace(u32),
    /// A fault happens.
    Fault(u32),
    /// The effect of a fault ends.
    Ending(u32),
    /// Faults are over.
    Heal,
    /// The recording takes a sample.
    Sample,
    /// All clients must have their ideal share.
    ShareDue,
    /// The checkers test for rest after a shift.
    Settle,
    /// The checkers measure the distance from the ideal.
    Look,
    /// The checkers read the books of the nodes.
    Nesting,
}

#[derive(Clone, Copy, Debug)]
struct Queued {
    at: Time,
    number: u64,
    what: EventKind,
}

impl Queued {
    /// Numbers are unique, so the kind is no part of the key.
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

/// Events of the future.
#[derive(Debug)]
pub(crate) struct Events {
    /// Events that existed when the present tick began, in reverse order.
    now: Vec<Queued>,
    /// Events added since, up to the end of the present tick.
    added: BinaryHeap<Reverse<Queued>>,
    tick: u64,
    /// Later events of the present span, by their tick within it.
    soon: Vec<Vec<Queued>>,
    /// Number of events in `soon`.
    soon_count: usize,
    /// Events of later spans, by their span.
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
    /// Adds an event at a time.
    pub(crate) fn put(&mut self, at: Time, what: EventKind) {
        self.number += 1;
        let number = self.number;
        self.file(Queued { at, number, what });
    }

    /// Returns the next event, unless it comes after `end`.
    pub(crate) fn next(&mut self, end: Time) -> Option<(Time, EventKind)> {
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

    /// Moves on to the next tick with events, or to the next span. Returns `None` if there are no
    /// events.
    fn advance(&mut self) -> Option<()> {
        if self.soon_count > 0 {
            self.tick += 1;
            // Some list is not empty, so this ends within the span.
            if let Some(list) = self.soon.get_mut(place_in_span(self.tick)) {
                self.soon_count -= list.len();
                // Takes the list itself. The list of the previous tick is freed, so the next events
                // go where the processor's cache still is.
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

    /// Returns a number that looks random and is the same every time.
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
            // At once, soon and much later; some at the same time.
            let ahead = match round % 4 {
                0 => 0,
                1 => mixed(number) % 5_000_000,
                2 => (mixed(number) % 50) * 1_000_000_000,
                _ => mixed(number) % 90_000_000_000,
            };
            let at = Time::from_nanos(now.as_nanos() + ahead);
            events.put(at, EventKind::Client(round));
            left.push((at, round));
            if round % 3 == 0 {
                let first = *left.iter().min().unwrap();
                left.retain(|other| *other != first);
                let expected = (first.0, EventKind::Client(first.1));
                assert_eq!(events.next(Time::from_secs(1_000_000)), Some(expected));
                now = first.0;
            }
        }
        left.sort_unstable();
        for (at, round) in left {
            let expected = Some((at, EventKind::Client(round)));
            assert_eq!(events.next(Time::from_secs(1_000_000)), expected);
        }
        assert_eq!(events.next(Time::from_secs(1_000_000)), None);
    }

    #[test]
    fn nothing_comes_after_the_end() {
        let mut events = Events::default();
        events.put(Time::from_secs(7), EventKind::Heal);
        assert_eq!(events.next(Time::from_secs(6)), None);
        assert_eq!(
            events.next(Time::from_secs(7)),
            Some((Time::from_secs(7), EventKind::Heal))
        );
        assert_eq!(events.next(Time::from_secs(8)), None);
    }
}
