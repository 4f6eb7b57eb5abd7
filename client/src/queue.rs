//! Who waits for a limiter: first come, first served.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::MutexGuard;

use crate::slot::lock;

/// Those who wait for one limiter.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    turn: tokio::sync::Mutex<()>,
    waiting: Mutex<Waiting>,
    /// How many wait, for who only wants to know whether somebody does.
    length: AtomicU64,
}

/// How many wait, and how much for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) count: u64,
    pub(crate) cost: f64,
}

/// Somebody who waits, for as long as it lives.
pub(crate) struct Waiter<'a> {
    queue: &'a Queue,
    cost: f64,
}

impl Queue {
    /// Somebody waits for so much from now on.
    pub(crate) fn join(&self, cost: f64) -> Waiter<'_> {
        let mut waiting = lock(&self.waiting);
        waiting.count += 1;
        waiting.cost += cost;
        self.length.store(waiting.count, Ordering::SeqCst);
        Waiter { queue: self, cost }
    }

    /// Whether nobody waits. Who gives something back and then sees nobody here is seen by who joins later and then
    /// looks for it: both are in one order for all (`SeqCst`, as what is given back must be).
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.length.load(Ordering::SeqCst) == 0
    }

    pub(crate) fn waiting(&self) -> Waiting {
        *lock(&self.waiting)
    }
}

impl Waiter<'_> {
    /// When all who came before it have been served, or have gone.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.queue.turn.lock().await
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.queue.waiting);
        waiting.count -= 1;
        // Nobody waits for anything: rounding must not pretend otherwise.
        waiting.cost = if waiting.count == 0 {
            0.0
        } else {
            waiting.cost - self.cost
        };
        self.queue.length.store(waiting.count, Ordering::SeqCst);
    }
}
