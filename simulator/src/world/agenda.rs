//! Queue of events, in order of time, and of insertion where times are equal.
//!
//! With a million clients there are millions of future events, and one large heap would cost more
//! than the events themselves. So only the events of the present *tick* (a millisecond) are in a
//! heap. Each later tick has a list without an order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use doorward_engine::time::Time;

/// Length of a tick: 2 to this power, in nanoseconds.
const TICK_BITS: u32 = 20;

/// Kind of an event. It is small because there is one for every client and every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EventKind {
    /// A message arrives, by its slot.
    Arrival(u32),
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
    /// The next rows of a trace are due.
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

/// Event with its time. Numbers are unique, so the order never depends on the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Queued {
    at: Time,
    number: u64,
    what: EventKind,
}

/// Events of the future.
#[derive(Debug, Default)]
pub(crate) struct Events {
    /// Events up to the end of the present tick.
    now: BinaryHeap<Reverse<Queued>>,
    tick: u64,
    /// Events of later ticks.
    later: BTreeMap<u64, Vec<Reverse<Queued>>>,
    number: u64,
}

impl Events {
    /// Adds an event at a time.
    pub(crate) fn put(&mut self, at: Time, what: EventKind) {
        self.number += 1;
        let number = self.number;
        let entry = Reverse(Queued { at, number, what });
        let tick = at.as_nanos() >> TICK_BITS;
        if tick <= self.tick {
            self.now.push(entry);
        } else {
            self.later.entry(tick).or_default().push(entry);
        }
    }

    /// Returns the next event, unless it comes after `end`.
    pub(crate) fn next(&mut self, end: Time) -> Option<(Time, EventKind)> {
        if self.now.is_empty() {
            let (tick, entries) = self.later.pop_first()?;
            (self.tick, self.now) = (tick, entries.into());
        }
        self.now.peek().filter(|next| next.0.at <= end)?;
        let Reverse(next) = self.now.pop()?;
        Some((next.at, next.what))
    }
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
