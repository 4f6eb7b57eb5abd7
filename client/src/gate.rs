//! A gate: a concurrency limiter with its waiting callers, as a permit needs it to be given back.
//!
//! Counting references to it would cost as much as the permit itself. So gates are never freed: the next resource takes
//! an unused one. There are as many as resources with a concurrency limiter were open at once.
//!
//! A permit keeps its resource open, as handles do. If the last handle is dropped while permits are out, the gate
//! [keeps](Gate::keep) the work that must follow until the last permit comes back.

use std::ops::Deref;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

use crate::capacity::Allowance;
use crate::limiter::concurrency::LeasedPermits;
use crate::lock::lock;
use crate::queue::Queue;

/// A concurrency limiter, and its waiting callers.
#[derive(Default)]
pub(crate) struct Gate {
    pub(crate) limiter: LeasedPermits,
    pub(crate) queue: Queue,
    /// Notification that a permit came back, or that [a slot](crate::slot::Slot) has news for all waiting callers.
    pub(crate) changed: Notify,
    /// Value that is dropped when no permit is out any more.
    kept: Mutex<Option<Box<dyn Send>>>,
    is_kept: AtomicBool,
}

/// The use of a gate, until it is dropped. By then no permit of it is out.
pub(crate) struct OpenGate(pub(crate) &'static Gate);

/// Unused gates.
static FREE: Mutex<Vec<&'static Gate>> = Mutex::new(Vec::new());

impl Gate {
    /// Drops a value as soon as no permit is out.
    pub(crate) fn keep(&self, what: Box<dyn Send>) {
        *lock(&self.kept) = Some(what);
        // Either the caller that gives the last permit back sees this, or this call sees that the permit is back. For
        // that, both use `SeqCst`.
        self.is_kept.store(true, Ordering::SeqCst);
        self.let_go();
    }

    /// Gives back permits.
    #[inline]
    pub(crate) fn release(&self, permits: u64) {
        self.limiter.release(permits);
        // A caller that joins the queue later sees the permits that just came back.
        if !self.queue.is_empty() {
            self.changed.notify_waiters();
        }
        if self.is_kept.load(Ordering::SeqCst) {
            self.let_go();
        }
    }

    #[cold]
    fn let_go(&self) {
        let mut kept = lock(&self.kept);
        // Looks only under the lock: before it, another thread may have emptied this gate, and the next resource may
        // have kept something here while its own permits are out.
        if self.limiter.in_flight() > 0 {
            return;
        }
        let what = kept.take();
        self.is_kept.store(false, Ordering::SeqCst);
        drop(kept);
        // Dropping it may give this gate to another resource.
        drop(what);
    }
}

impl Default for OpenGate {
    fn default() -> Self {
        let mut free = lock(&FREE);
        Self(free.pop().unwrap_or_else(|| Box::leak(Box::default())))
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
        let mut free = lock(&FREE);
        free.push(self.0);
    }
}

debug_by_name!(Gate);

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

    /// A value that counts its drops.
    struct Dropped(Arc<AtomicU64>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn a_kept_value_is_dropped_with_the_last_permit() {
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

    /// The last permit comes back at the moment at which the last handle is dropped.
    #[test]
    fn a_kept_value_is_dropped_once_in_a_race() {
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
    fn a_reused_gate_admits_nothing_until_it_gets_an_allowance() {
        drop(open(5.0));
        let gate = OpenGate::default();
        assert!(!gate.limiter.try_acquire(1, Time::ZERO));
        assert_eq!(gate.limiter.in_flight(), 0);
    }
}
