//! The lock around the replica, and the times for which it is held and waited for.
//!
//! A thread that takes the lock reads the clock twice: when it has the lock, which is the replica's time, and when it
//! releases it. If it has to wait, it reads the clock once before.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::yield_now;

use doorward_engine::time::Time;
use prometheus_client::metrics::histogram::Histogram;

use crate::clock::Clock;
use crate::replica_handle::Shared;

/// Largest number of times that a reader yields to waiting threads before it takes its turn.
const YIELDS_MAX: u32 = 1_000;

/// Upper bounds of the histograms, in seconds.
const BOUNDS: [f64; 19] = [
    1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 2e-2, 5e-2, 0.1,
    0.2, 0.5, 1.0,
];

/// Times for which the lock was held, and waited for.
#[derive(Debug)]
pub struct LockTimes {
    /// Time from taking the lock until its release.
    pub held: Histogram,
    /// Time until the lock was taken; zero if it was free.
    pub waited: Histogram,
}

/// The replica and its transports behind their lock.
#[derive(Debug)]
pub(super) struct NodeLock {
    shared: Mutex<Shared>,
    clock: Clock,
    waiting: AtomicU32,
    pub(super) times: LockTimes,
}

impl NodeLock {
    pub(super) fn new(shared: Shared, clock: Clock) -> Self {
        Self {
            shared: Mutex::new(shared),
            clock,
            waiting: AtomicU32::new(0),
            times: LockTimes {
                held: Histogram::new(BOUNDS),
                waited: Histogram::new(BOUNDS),
            },
        }
    }

    /// Does some work while the lock is held, at the replica's present time. `restart` mends a replica in which the
    /// engine panicked.
    pub(super) fn hold<'a, T>(
        &'a self,
        restart: impl FnOnce(&mut Shared),
        work: impl FnOnce(&mut Shared, Time) -> T,
    ) -> T {
        let mend = |poisoned: PoisonError<MutexGuard<'a, Shared>>| {
            let mut shared = poisoned.into_inner();
            restart(&mut shared);
            self.shared.clear_poison();
            shared
        };
        let (mut shared, waited_since) = match self.shared.try_lock() {
            Ok(shared) => (shared, None),
            Err(TryLockError::Poisoned(poisoned)) => (mend(poisoned), None),
            Err(TryLockError::WouldBlock) => {
                let since = self.clock.now();
                // Relaxed: no other memory depends on this number.
                self.waiting.fetch_add(1, Ordering::Relaxed);
                let shared = self.shared.lock();
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                (shared.unwrap_or_else(mend), Some(since))
            }
        };
        let now = self.clock.now();
        let waited = waited_since.map_or(0.0, |since| seconds(since, now));
        self.times.waited.observe(waited);
        let done = work(&mut shared, now);
        let held = seconds(now, self.clock.now());
        self.times.held.observe(held);
        done
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
}

fn seconds(since: Time, now: Time) -> f64 {
    now.since(since).as_secs_f64()
}
