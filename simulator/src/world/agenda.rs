//! Queue of events, in order of time, and of insertion where times are equal.
//!
//! With a million clients there are millions of future events. A B-tree is faster then than a heap.

use std::collections::BTreeMap;

use doorward_engine::time::Time;

use crate::world::World;
use crate::world::message::Message;

/// Anything that a world can do.
pub(crate) type Action = Box<dyn FnOnce(&mut World<'_>)>;

/// Kind of an event. It is small because there is one for every client and every message.
pub(crate) enum EventKind {
    /// A message arrives.
    Arrival(Box<Message>),
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
    /// A fault happens, or its effect ends; the recording takes a sample, or the checkers look.
    Action(Action),
}

/// Queue of events.
#[derive(Default)]
pub(crate) struct Events {
    /// Events by their time and number.
    queued: BTreeMap<(Time, u64), EventKind>,
    number: u64,
}

impl Events {
    /// Adds an event at a time.
    pub(crate) fn put(&mut self, at: Time, what: EventKind) {
        self.number += 1;
        self.queued.insert((at, self.number), what);
    }

    /// Adds an action at a time.
    pub(crate) fn act(&mut self, at: Time, action: impl FnOnce(&mut World<'_>) + 'static) {
        self.put(at, EventKind::Action(Box::new(action)));
    }

    /// Returns the next event, unless it comes after `end`.
    pub(crate) fn next(&mut self, end: Time) -> Option<(Time, EventKind)> {
        let next = self.queued.first_entry()?;
        let (at, _) = *next.key();
        (at <= end).then(|| (at, next.remove()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a number that looks random and is the same every time.
    fn mixed(number: u64) -> u64 {
        (number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15)) >> 24
    }

    /// Returns the next event: its time, and the number of a client.
    fn next(events: &mut Events, end_s: u64) -> Option<(Time, u32)> {
        let (at, what) = events.next(Time::from_secs(end_s))?;
        let EventKind::Client(client) = what else {
            panic!("it is of another kind");
        };
        Some((at, client))
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
                assert_eq!(next(&mut events, 1_000_000), Some(first));
                now = first.0;
            }
        }
        left.sort_unstable();
        for (at, round) in left {
            assert_eq!(next(&mut events, 1_000_000), Some((at, round)));
        }
        assert_eq!(next(&mut events, 1_000_000), None);
    }

    #[test]
    fn nothing_comes_after_the_end() {
        let mut events = Events::default();
        events.put(Time::from_secs(7), EventKind::Client(3));
        assert_eq!(next(&mut events, 6), None);
        assert_eq!(next(&mut events, 7), Some((Time::from_secs(7), 3)));
        assert_eq!(next(&mut events, 8), None);
    }
}
