//! What a permit needs when it is given back: the limiter that it was taken from, and whom that concerns.
//!
//! To count references to it would cost as much as the permit does. So gates are never freed: one that nobody uses any
//! more is the next resource's. There are as many as resources with a concurrency limiter were open at once.
//!
//! A permit keeps its resource open, as handles do. When the last handle goes while permits are out, what is to be done
//! then is [kept](Gate::keep) until the last permit is given back.

use std::fmt;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::capacity::Allowance;
use crate::limiter::concurrency::LeasedPermits;
use crate::queue::Queue;

/// A concurrency limiter, and who waits for it.
#[derive(Default)]
pub(crate) struct Gate {
    pub(crate) limiter: LeasedPermits,
    pub(crate) queue: Queue,
    /// A permit came back, or what [a slot](crate::slot::Slot) tells all who wait.
    pub(crate) changed: Notify,
    /// Dropped when no permit is out any more.
    kept: Mutex<Option<Box<dyn Send>>>,
    is_kept: AtomicBool,
}

/// The use of a gate, until it is dropped. No permit of it is out then.
pub(crate) struct OpenGate(&'static Gate);

/// Gates that nobody uses.
static FREE: Mutex<Vec<&'static Gate>> = Mutex::new(Vec::new());

impl Gate {
    /// Drops something as soon as no permit is out.
    pub(crate) fn keep(&self, what: Box<dyn Send>) {
        *self.kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
        // Who gives the last permit back sees this, or this call sees that it is back (`SeqCst`, as the permits are).
        self.is_kept.store(true, Ordering::SeqCst);
        self.let_go();
    }

    /// Gives back permits that were taken.
    #[inline]
    pub(crate) fn release(&self, permits: u64) {
        self.limiter.release(permits);
        // Who joins later sees what was just given back.
        if !self.queue.is_empty() {
            self.changed.notify_waiters();
        }
        if self.is_kept.load(Ordering::SeqCst) {
            self.let_go();
        }
    }

    #[cold]
    fn let_go(&self) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        // Not before the lock: in between, somebody else may have emptied this gate, and the next resource may have kept
        // something here while permits of its own are out.
        if self.limiter.in_flight() > 0 {
            return;
        }
        let what = kept.take();
        self.is_kept.store(false, Ordering::SeqCst);
        drop(kept);
        // It may give this gate to somebody else.
        drop(what);
    }
}

impl Default for OpenGate {
    fn default() -> Self {
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        Self(free.pop().unwrap_or_else(|| Box::leak(Box::default())))
    }
}

impl OpenGate {
    /// For permits.
    pub(crate) fn get(&self) -> &'static Gate {
        self.0
    }
}

impl Deref for OpenGate {
    type Target = Gate;

    fn deref(&self) -> &Gate {
        self.0
    }
}

impl Drop for OpenGate {
    fn drop(&mut self) {
        debug_assert_eq!(self.limiter.in_flight(), 0, "permits keep it open");
        self.limiter.handle_allowance(Allowance::NONE);
        let mut free = FREE.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(self.0);
    }
}

impl fmt::Debug for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gate")
            .field("limiter", &self.limiter)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;
    use std::thread;

    use super::*;
    use crate::capacity::Capacity;
    use crate::time::Time;

    fn open(permits: f64) -> OpenGate {
        let gate = OpenGate::default();
        gate.limiter
            .handle_allowance(Allowance::by_mode(Capacity::Limited(permits)));
        gate
    }

    /// Counts how often it was dropped.
    struct Dropped(Arc<AtomicU64>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn what_is_kept_goes_with_the_last_permit() {
        let (gate, dropped) = (open(2.0), Arc::new(AtomicU64::new(0)));
        assert!(gate.limiter.try_acquire(2, Time::ZERO));
        gate.keep(Box::new(Dropped(dropped.clone())));
        gate.release(1);
        assert_eq!(dropped.load(Ordering::SeqCst), 0);
        gate.release(1);
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
        gate.keep(Box::new(Dropped(dropped.clone())));
        assert_eq!(dropped.load(Ordering::SeqCst), 2, "none is out");
    }

    /// The last permit comes back in the moment in which the last handle goes.
    #[test]
    fn what_is_kept_goes_once_whoever_is_last() {
        for _ in 0..500 {
            let (gate, dropped) = (open(2.0), Arc::new(AtomicU64::new(0)));
            assert!(gate.limiter.try_acquire(2, Time::ZERO));
            thread::scope(|threads| {
                threads.spawn(|| gate.release(1));
                threads.spawn(|| gate.release(1));
                gate.keep(Box::new(Dropped(dropped.clone())));
            });
            assert_eq!(dropped.load(Ordering::SeqCst), 1);
        }
    }

    #[test]
    fn a_gate_that_is_used_again_admits_nothing_until_it_is_told() {
        drop(open(5.0));
        let gate = OpenGate::default();
        assert!(!gate.limiter.try_acquire(1, Time::ZERO));
        assert_eq!(gate.limiter.in_flight(), 0);
    }
}
