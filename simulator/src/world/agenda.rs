//! Queue of events, in order of time, and of insertion where times are equal.
//!
//! With a million clients there are millions of future events. A B-tree is faster then than a heap.

use std::collections::BTreeMap;

use doorward_engine::time::Time;

use crate::world::World;

/// Anything that a world can do.
pub(crate) trait Deed: FnOnce(&mut World<'_>) + 'static {}

impl<T: FnOnce(&mut World<'_>) + 'static> Deed for T {}

/// A deed to come.
pub(crate) type Action = Box<dyn FnOnce(&mut World<'_>)>;

/// Queue of events.
pub(crate) struct Events<T = Action> {
    /// Events by their time and number.
    queued: BTreeMap<(Time, u64), T>,
    number: u64,
}

impl<T> Events<T> {
    pub(crate) const fn new() -> Self {
        let queued = BTreeMap::new();
        Self { queued, number: 0 }
    }

    /// Adds an event at a time.
    pub(crate) fn put(&mut self, at: Time, what: T) {
        self.number += 1;
        self.queued.insert((at, self.number), what);
    }

    /// Returns the next event, unless it comes after `end`.
    pub(crate) fn next(&mut self, end: Time) -> Option<(Time, T)> {
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

    fn next(events: &mut Events<u32>, end_s: u64) -> Option<(Time, u32)> {
        events.next(Time::from_secs(end_s))
    }

    #[test]
    fn events_come_in_order_of_time_and_then_as_they_were_put_in() {
        let mut events = Events::new();
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
            events.put(at, round);
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
        let mut events = Events::new();
        events.put(Time::from_secs(7), 3);
        assert_eq!(next(&mut events, 6), None);
        assert_eq!(next(&mut events, 7), Some((Time::from_secs(7), 3)));
        assert_eq!(next(&mut events, 8), None);
    }
}
