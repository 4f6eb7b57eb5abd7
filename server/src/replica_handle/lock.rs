//! The lock around the replica, and the times for which it is held and waited for.
//!
//! A thread that takes the lock reads the clock twice: when it has the lock, which is the replica's time, and when it
//! releases it. If it has to wait, it reads the clock once before. Counting needs no atomic addition: only the holder
//! of the lock counts.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::yield_now;
use std::time::Duration;

use doorward_engine::time::Time;

use crate::clock::Clock;
use crate::replica_handle::Shared;

/// Largest number of times that a reader yields to waiting threads before it takes its turn.
const YIELDS_MAX: u32 = 1_000;

/// Upper bounds of the histogram, in microseconds.
const BOUNDS: [u64; 19] = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000,
    200_000, 500_000, 1_000_000,
];

/// Histogram of durations.
#[derive(Debug, Default)]
pub struct Spans {
    /// Number of durations by the first bound that they do not exceed. The last number is that of durations above all
    /// bounds.
    counts: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

/// Histogram of durations, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct SpansSeen {
    /// Sum of all durations, in seconds.
    pub sum: f64,
    /// Number of durations.
    pub count: u64,
    /// Upper bounds in seconds, each with the number of durations up to it and above the bound before. The last bound
    /// is [`f64::INFINITY`].
    pub counts: Vec<(f64, u64)>,
}

impl Spans {
    /// Notes a duration. Only the holder of the lock may call this.
    fn note(&self, nanos: u64) {
        let add = |to: &AtomicU64, more: u64| {
            let sum = to.load(Ordering::Relaxed).wrapping_add(more);
            to.store(sum, Ordering::Relaxed);
        };
        let position = BOUNDS.iter().position(|bound| nanos <= *bound * 1_000);
        if let Some(count) = self.counts.get(position.unwrap_or(BOUNDS.len())) {
            add(count, 1);
        }
        add(&self.nanos, nanos);
    }

    /// Returns the durations noted so far.
    pub fn seen(&self) -> SpansSeen {
        let counts: Vec<u64> = self
            .counts
            .iter()
            .map(|it| it.load(Ordering::Relaxed))
            .collect();
        let bounds = BOUNDS
            .iter()
            .map(|bound| Duration::from_micros(*bound).as_secs_f64());
        SpansSeen {
            sum: Duration::from_nanos(self.nanos.load(Ordering::Relaxed)).as_secs_f64(),
            count: counts.iter().sum(),
            counts: bounds.chain([f64::INFINITY]).zip(counts).collect(),
        }
    }
}

/// Times for which the lock was held, and waited for.
#[derive(Debug, Default)]
pub struct LockTimes {
    /// Time from taking the lock until its release.
    pub held: Spans,
    /// Time until the lock was taken; zero if it was free.
    pub waited: Spans,
}

/// The replica and its transports behind their lock.
#[derive(Debug)]
pub(super) struct NodeLock {
    shared: Mutex<Shared>,
    clock: Clock,
    waiting: AtomicU32,
    times: LockTimes,
}

impl NodeLock {
    pub(super) fn new(shared: Shared, clock: Clock) -> Self {
        Self {
            shared: Mutex::new(shared),
            clock,
            waiting: AtomicU32::new(0),
            times: LockTimes::default(),
        }
    }

    /// Takes the lock. `restart` mends a replica in which the engine panicked.
    pub(super) fn take<'a>(
        &'a self,
        restart: impl FnOnce(PoisonError<MutexGuard<'a, Shared>>) -> MutexGuard<'a, Shared>,
    ) -> Held<'a> {
        let (shared, since) = match self.shared.try_lock() {
            Ok(shared) => (shared, None),
            Err(TryLockError::Poisoned(poisoned)) => (restart(poisoned), None),
            Err(TryLockError::WouldBlock) => {
                let since = self.clock.now();
                // Relaxed: no other memory depends on this number.
                self.waiting.fetch_add(1, Ordering::Relaxed);
                let shared = self.shared.lock();
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                (shared.unwrap_or_else(restart), Some(since))
            }
        };
        let now = self.clock.now();
        self.times
            .waited
            .note(since.map_or(0, |since| nanos(since, now)));
        Held {
            shared,
            lock: self,
            since: now,
        }
    }

    /// Clears the mark of a panic, after the replica was mended.
    pub(super) fn clear_poison(&self) {
        self.shared.clear_poison();
    }

    /// Yields while other threads wait, at most [`YIELDS_MAX`] times. The lock is not fair: a thread that takes it
    /// again and again would get it before those that wait.
    pub(super) fn let_others_go_first(&self) {
        for _ in 0..YIELDS_MAX {
            if self.waiting() == 0 {
                return;
            }
            yield_now();
        }
    }

    /// Returns the number of waiting threads.
    pub(super) fn waiting(&self) -> u32 {
        self.waiting.load(Ordering::Relaxed)
    }

    pub(super) fn times(&self) -> &LockTimes {
        &self.times
    }
}

/// The replica, for as long as the lock is held.
#[derive(Debug)]
pub(super) struct Held<'a> {
    shared: MutexGuard<'a, Shared>,
    lock: &'a NodeLock,
    since: Time,
}

impl Held<'_> {
    /// Returns the time when the lock was taken, which is the replica's present time.
    pub(super) fn now(&self) -> Time {
        self.since
    }
}

impl Deref for Held<'_> {
    type Target = Shared;

    fn deref(&self) -> &Shared {
        &self.shared
    }
}

impl DerefMut for Held<'_> {
    fn deref_mut(&mut self) -> &mut Shared {
        &mut self.shared
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let now = self.lock.clock.now();
        self.lock.times.held.note(nanos(self.since, now));
    }
}

fn nanos(since: Time, now: Time) -> u64 {
    now.as_nanos().saturating_sub(since.as_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_counted_where_it_belongs() {
        let spans = Spans::default();
        for nanos in [
            0,
            1_000,
            1_001,
            50_000,
            50_001,
            1_000_000_000,
            1_000_000_001,
        ] {
            spans.note(nanos);
        }
        let seen = spans.seen();
        assert_eq!(seen.count, 7);
        assert!((seen.sum - 2.000_102_003).abs() < 1e-9, "{}", seen.sum);
        let counted: Vec<_> = seen
            .counts
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .collect();
        let expected = [
            (1e-6, 2),
            (2e-6, 1),
            (5e-5, 1),
            (1e-4, 1),
            (1.0, 1),
            (f64::INFINITY, 1),
        ];
        assert_eq!(counted, expected);
    }
}
