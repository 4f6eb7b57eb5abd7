//! Queue of the callers that wait for a limiter, in order of arrival.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

use crate::clock::Clock;
use crate::lock::lock;
use crate::time::Time;

/// Callers that wait for one limiter.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    turn: tokio::sync::Mutex<()>,
    waiting: Mutex<Waiting>,
    /// Number of waiting callers, for a check without the lock.
    length: AtomicU64,
}

/// Number of waiting callers, and their costs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Waiting {
    pub(crate) count: u64,
    /// Sum of all costs.
    pub(crate) cost: f64,
    /// Cost of the caller whose turn it is; 0 without one.
    pub(crate) first: f64,
}

/// A waiting caller, as long as it lives.
pub(crate) struct Waiter<'a> {
    queue: &'a Queue,
    cost: f64,
    has_turn: bool,
}

impl Queue {
    /// Adds a caller that waits for `cost`.
    pub(crate) fn join(&self, cost: f64) -> Waiter<'_> {
        let mut waiting = lock(&self.waiting);
        waiting.count += 1;
        waiting.cost += cost;
        self.length.store(waiting.count, Ordering::SeqCst);
        Waiter {
            queue: self,
            cost,
            has_turn: false,
        }
    }

    /// Returns whether no caller waits. If a caller gives something back and then sees an empty queue, a caller that
    /// joins later sees what came back. For that, both use `SeqCst`.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.length.load(Ordering::SeqCst) == 0
    }

    pub(crate) fn waiting(&self) -> Waiting {
        *lock(&self.waiting)
    }
}

impl Waiter<'_> {
    /// Waits until all earlier callers have been served or have left, and then until an attempt has an answer. The argument
    /// of an attempt is whether it is the first. After one without an answer, this waits for the time that the attempt
    /// returned, or for a change.
    pub(crate) async fn serve<T>(
        mut self,
        changed: &Notify,
        clock: &Clock,
        mut attempt: impl FnMut(bool) -> Result<T, Option<Time>>,
    ) -> T {
        let _turn = self.queue.turn.lock().await;
        self.has_turn = true;
        lock(&self.queue.waiting).first = self.cost;
        let mut is_first = true;
        loop {
            // Registers before it looks, so that it misses no change.
            let change = changed.notified();
            tokio::pin!(change);
            change.as_mut().enable();
            match attempt(std::mem::take(&mut is_first)) {
                Ok(answer) => return answer,
                Err(Some(until)) => tokio::select! {
                    () = clock.sleep_until(until) => {}
                    () = &mut change => {}
                },
                Err(None) => change.await,
            }
        }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.queue.waiting);
        waiting.count -= 1;
        if self.has_turn {
            waiting.first = 0.0;
        }
        // With an empty queue the cost is exactly 0, without rounding errors.
        waiting.cost = if waiting.count == 0 {
            0.0
        } else {
            waiting.cost - self.cost
        };
        self.queue.length.store(waiting.count, Ordering::SeqCst);
    }
}
