//! The concurrency limiter as a program uses it.

use std::sync::{Arc, Mutex};

use crate::capacity::Allowance;
use crate::clock::Clock;
use crate::error::AcquireError;
use crate::limiter::concurrency::ConcurrencyLimiter as State;
use crate::resource::Handle;
use crate::slot::{Slot, lock};
use crate::time::Time;

/// Hands out as many permits at once as the lease allows, and follows it as it changes. Cheap to
/// clone; clones share one limit.
///
/// A lease that shrinks below what is in flight takes effect as permits come back; until then, what
/// is in flight is what the client reports that it has.
#[derive(Clone)]
pub struct ConcurrencyLimiter {
    handle: Arc<Handle>,
}

/// The right to do one thing (or several) at once. Given back when dropped.
#[must_use = "a permit that is dropped is given back"]
pub struct Permit {
    handle: Arc<Handle>,
    permits: u64,
}

impl ConcurrencyLimiter {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self { handle }
    }

    /// Waits for a permit. First come, first served. Safe to cancel.
    ///
    /// # Errors
    ///
    /// As [`ConcurrencyLimiter::acquire_many`].
    pub async fn acquire(&self) -> Result<Permit, AcquireError> {
        self.acquire_many(1).await
    }

    /// Waits for several permits at once.
    ///
    /// # Errors
    ///
    /// If none are asked for, the client is closed, or no template matches the resource and neither a
    /// lease nor the mode allows any.
    pub async fn acquire_many(&self, permits: u64) -> Result<Permit, AcquireError> {
        let slot = self.slot();
        if permits == 0 {
            return Err(AcquireError::BadCost(0.0));
        }
        let waiter = slot.concurrency_queue.join(permits as f64);
        self.measure();
        let _turn = waiter.turn().await;
        let mut limited = false;
        loop {
            // Before looking, so that no change is missed.
            let changed = slot.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.attempt(permits) {
                Ok(permit) => return Ok(permit),
                Err(AcquireError::Blocked) => {}
                Err(other) => return Err(other),
            }
            if !std::mem::replace(&mut limited, true) {
                self.handle.shared.hooks.limited(&slot.id);
            }
            let until = lock(self.state())
                .until()
                .filter(|until| *until > self.clock().now());
            match until {
                // The limit changes by itself then.
                Some(until) => tokio::select! {
                    () = self.clock().sleep_until(until) => {}
                    () = &mut changed => {}
                },
                None => changed.await,
            }
        }
    }

    /// Takes a permit if there is one.
    ///
    /// # Errors
    ///
    /// [`AcquireError::Blocked`] if all are out; when to come back, if there are none until the client
    /// hears next how many there may be. And as [`ConcurrencyLimiter::acquire_many`].
    pub fn try_acquire(&self) -> Result<Permit, AcquireError> {
        self.measure();
        let others_wait = self.slot().concurrency_queue.waiting().count > 0;
        let answer = if others_wait {
            Err(self.refusal(self.clock().now()))
        } else {
            self.attempt(1)
        };
        if answer.is_err() {
            self.handle.shared.hooks.limited(&self.slot().id);
        }
        answer.map_err(|error| self.until_next_answer(error))
    }

    /// How many permits are out.
    pub fn in_flight(&self) -> u64 {
        lock(self.state()).in_flight()
    }

    fn attempt(&self, permits: u64) -> Result<Permit, AcquireError> {
        if self.slot().is_closed() {
            return Err(AcquireError::Closed);
        }
        let now = self.clock().now();
        if !lock(self.state()).try_acquire(permits, now) {
            return Err(self.refusal(now));
        }
        self.handle
            .shared
            .hooks
            .admitted(&self.slot().id, permits as f64);
        Ok(Permit {
            handle: self.handle.clone(),
            permits,
        })
    }

    /// Why there is none now, as far as the last answer knows.
    fn refusal(&self, now: Time) -> AcquireError {
        let view = self.slot().view.borrow();
        let unknown = view
            .unknown(now)
            .filter(|_| allows_none(view.allowance, now));
        unknown.map_or(AcquireError::Blocked, |message| {
            AcquireError::UnknownResource {
                message: message.to_owned(),
            }
        })
    }

    /// If no permit can come back: when the next answer is due, which may change that.
    fn until_next_answer(&self, error: AcquireError) -> AcquireError {
        let now = self.clock().now();
        let view = self.slot().view.borrow();
        match view.answer_in(now) {
            Some(retry_after)
                if error == AcquireError::Blocked && allows_none(view.allowance, now) =>
            {
                AcquireError::RetryAfter { retry_after }
            }
            _ => error,
        }
    }

    fn measure(&self) {
        if let Some(demand) = &self.slot().demand {
            let waiting = self.slot().concurrency_queue.waiting().cost;
            let level = self.slot().in_flight() + waiting.max(1.0);
            lock(demand).at_once(level, self.clock().now());
        }
    }

    fn slot(&self) -> &Slot {
        &self.handle.slot
    }

    fn clock(&self) -> &Clock {
        &self.handle.shared.clock
    }

    fn state(&self) -> &Mutex<State> {
        self.handle.concurrency_state()
    }
}

/// Whether not even one permit may be out.
fn allows_none(allowance: Allowance, now: Time) -> bool {
    allowance.at(now).get() < 1.0
}

impl Drop for Permit {
    fn drop(&mut self) {
        lock(self.handle.concurrency_state()).release(self.permits);
        self.handle.slot.changed.notify_waiters();
    }
}
