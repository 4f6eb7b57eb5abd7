//! The concurrency limiter as a program uses it.

use std::sync::Arc;

use crate::capacity::Allowance;
use crate::clock::Clock;
use crate::error::AcquireError;
use crate::gate::Gate;
use crate::limiter::concurrency::LeasedPermits;
use crate::resource::Handle;
use crate::slot::Slot;
use crate::time::Time;

/// Hands out as many permits at once as the lease allows, and follows it as it changes. Cheap to
/// clone; clones share one limit.
///
/// A lease that shrinks below what is in flight takes effect as permits come back; until then, what
/// is in flight is what the client reports that it has.
#[derive(Clone)]
pub struct ConcurrencyLimiter {
    /// What the handle has as well, for who has no time to look there.
    gate: &'static Gate,
    slot: Arc<Slot>,
    handle: Arc<Handle>,
}

/// The right to do one thing (or several) at once. Given back when dropped.
#[must_use = "a permit that is dropped is given back"]
#[derive(Debug)]
pub struct Permit {
    gate: &'static Gate,
    permits: u64,
}

impl ConcurrencyLimiter {
    pub(crate) fn new(handle: Arc<Handle>, gate: &'static Gate) -> Self {
        Self {
            gate,
            slot: handle.slot.clone(),
            handle,
        }
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
    /// If none are asked for, or the client is closed. And if there are none because no template matches the
    /// resource, or because another process has had the client id for longer than a
    /// [restart](crate::ClientBuilder::restart_overlap) takes.
    pub async fn acquire_many(&self, permits: u64) -> Result<Permit, AcquireError> {
        if permits == 0 {
            return Err(AcquireError::BadCost(0.0));
        }
        if let Some(true) = self.at_once(permits) {
            return Ok(self.permit(permits));
        }
        let waiter = self.gate.queue.join(permits as f64);
        self.measure(0.0);
        let _turn = waiter.turn().await;
        let mut limited = false;
        loop {
            // Before looking, so that no change is missed.
            let changed = self.gate.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            match self.attempt(permits) {
                Ok(permit) => return Ok(permit),
                Err(AcquireError::Blocked) => {}
                Err(other) => return Err(other),
            }
            if !std::mem::replace(&mut limited, true) {
                self.note_limited();
            }
            let until = self
                .state()
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
    #[inline]
    pub fn try_acquire(&self) -> Result<Permit, AcquireError> {
        match self.at_once(1) {
            Some(true) => Ok(self.permit(1)),
            // There are some, and all are out.
            Some(false) => {
                self.note_limited();
                Err(AcquireError::Blocked)
            }
            None => self.try_slowly(),
        }
    }

    /// Without a lock. None: that cannot say, or others wait, who come first. What it says is measured.
    #[inline]
    fn at_once(&self, permits: u64) -> Option<bool> {
        if !self.gate.queue.is_empty() {
            return None;
        }
        let now = self.slot.clock.fast_now();
        let taken = self.gate.limiter.try_acquire_at_once(permits, now)?;
        if self.slot.measured.is_some() {
            self.measure(if taken { 0.0 } else { permits as f64 });
        }
        Some(taken)
    }

    #[cold]
    fn try_slowly(&self) -> Result<Permit, AcquireError> {
        self.measure(1.0);
        let others_wait = self.gate.queue.waiting().count > 0;
        let answer = if others_wait {
            Err(self.refusal(self.clock().now()))
        } else {
            self.attempt(1)
        };
        if answer.is_err() {
            self.note_limited();
        }
        answer.map_err(|error| self.until_next_answer(error))
    }

    /// How many permits are out.
    pub fn in_flight(&self) -> u64 {
        self.state().in_flight()
    }

    fn attempt(&self, permits: u64) -> Result<Permit, AcquireError> {
        if self.slot.is_closed() {
            return Err(AcquireError::Closed);
        }
        let now = self.clock().now();
        if !self.state().try_acquire(permits, now) {
            return Err(self.refusal(now));
        }
        Ok(self.permit(permits))
    }

    /// What was taken.
    #[inline]
    fn permit(&self, permits: u64) -> Permit {
        if self.slot.is_observed {
            let hooks = &self.handle.shared.hooks;
            hooks.admitted(&self.slot.id, permits as f64);
        }
        Permit {
            gate: self.gate,
            permits,
        }
    }

    /// Why there is none now, as far as the last answer knows.
    fn refusal(&self, now: Time) -> AcquireError {
        let view = self.slot.view.borrow();
        let hopeless = self.handle.hopeless(&view, now);
        hopeless
            .filter(|_| allows_none(view.allowance, now))
            .unwrap_or(AcquireError::Blocked)
    }

    /// If no permit can come back: when the next answer is due, which may change that.
    fn until_next_answer(&self, error: AcquireError) -> AcquireError {
        let now = self.clock().now();
        let view = self.slot.view.borrow();
        match view.answer_in(now) {
            Some(retry_after)
                if error == AcquireError::Blocked && allows_none(view.allowance, now) =>
            {
                AcquireError::RetryAfter { retry_after }
            }
            _ => error,
        }
    }

    /// Somebody wants so much besides what is in flight and waiting.
    fn measure(&self, wanted: f64) {
        if let Some(measured) = &self.slot.measured {
            let waiting = self.gate.queue.waiting().cost;
            measured.at_once(self.slot.in_flight() + waiting.max(wanted));
        }
    }

    #[inline]
    fn note_limited(&self) {
        if self.slot.is_observed {
            self.handle.shared.hooks.limited(&self.slot.id);
        }
    }

    fn clock(&self) -> &Clock {
        &self.slot.clock
    }

    fn state(&self) -> &LeasedPermits {
        &self.gate.limiter
    }
}

/// Whether not even one permit may be out.
fn allows_none(allowance: Allowance, now: Time) -> bool {
    allowance.at(now).get() < 1.0
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        self.gate.release(self.permits);
    }
}
