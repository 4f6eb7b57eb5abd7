//! The rate limiter as a program uses it.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::clock::Clock;
use crate::error::AcquireError;
use crate::limiter::rate::{NotNow, RateLimiter as State};
use crate::resource::Handle;
use crate::slot::{Slot, lock};

/// Admits what the lease allows per second, and follows it as it changes. Cheap to clone; clones
/// share one limit.
///
/// What is admitted in any span of time is at most what the rates in force gave in it, plus one
/// [`Burst`](crate::limiter::rate::Burst). It obeys the end of a lease to the moment.
#[derive(Clone)]
pub struct RateLimiter {
    handle: Arc<Handle>,
}

impl RateLimiter {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self { handle }
    }

    /// Waits until `cost` may be used, and uses it. First come, first served: a dear request is not
    /// overtaken by cheap ones. Safe to cancel: a wait that is dropped has used nothing.
    ///
    /// # Errors
    ///
    /// If the cost is no finite number from 0 up, or the client is closed. Not if nothing may be
    /// used: that is waited out.
    pub async fn acquire(&self, cost: f64) -> Result<(), AcquireError> {
        let slot = self.slot();
        check_cost(cost)?;
        self.measure(cost);
        let _waiting = Waiter::new(slot, cost);
        let _turn = slot.queue.lock().await;
        let mut limited = false;
        loop {
            // Before looking, so that no change is missed.
            let changed = slot.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let refusal = match self.attempt(cost) {
                Ok(()) => return Ok(()),
                Err(AcquireError::RetryAfter { retry_after }) => Some(retry_after),
                Err(AcquireError::Blocked) => None,
                Err(other) => return Err(other),
            };
            if !std::mem::replace(&mut limited, true) {
                self.handle.shared.hooks.limited(&slot.id);
            }
            match refusal {
                Some(retry_after) => {
                    let at = self.clock().now() + retry_after;
                    tokio::select! {
                        () = self.clock().sleep_until(at) => {}
                        () = &mut changed => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// Uses `cost` if it may be used now.
    ///
    /// # Errors
    ///
    /// When to come back, if not; and as [`RateLimiter::acquire`].
    pub fn try_acquire(&self, cost: f64) -> Result<(), AcquireError> {
        check_cost(cost)?;
        self.measure(cost);
        // Those who wait come first.
        let waiting = lock(&self.slot().waiting).cost;
        let answer = if waiting > 0.0 {
            match lock(self.state()).look(waiting + cost, self.clock().now()) {
                // There is enough, and those who wait are about to be served.
                Ok(()) => Err(AcquireError::RetryAfter {
                    retry_after: Duration::from_millis(1),
                }),
                Err(NotNow::Blocked) => Err(AcquireError::Blocked),
                Err(NotNow::RetryAfter { retry_after }) => {
                    Err(AcquireError::RetryAfter { retry_after })
                }
            }
        } else {
            self.attempt(cost)
        };
        if answer.is_err() {
            self.handle.shared.hooks.limited(&self.slot().id);
        }
        answer
    }

    fn attempt(&self, cost: f64) -> Result<(), AcquireError> {
        if self.slot().is_closed() {
            return Err(AcquireError::Closed);
        }
        match lock(self.state()).try_acquire(cost, self.clock().now()) {
            Ok(()) => {
                self.handle.shared.hooks.admitted(&self.slot().id, cost);
                Ok(())
            }
            Err(NotNow::RetryAfter { retry_after }) => {
                Err(AcquireError::RetryAfter { retry_after })
            }
            Err(NotNow::Blocked) => Err(AcquireError::Blocked),
        }
    }

    fn measure(&self, cost: f64) {
        if let Some(demand) = &self.slot().demand {
            lock(demand).asked(cost, self.clock().now());
        }
    }

    fn slot(&self) -> &Slot {
        &self.handle.slot
    }

    fn clock(&self) -> &Clock {
        &self.handle.shared.clock
    }

    fn state(&self) -> &Mutex<State> {
        self.handle.rate_state()
    }
}

/// Counts somebody who waits, for as long as it lives.
pub(crate) struct Waiter<'a> {
    slot: &'a Slot,
    cost: f64,
}

impl<'a> Waiter<'a> {
    pub(crate) fn new(slot: &'a Slot, cost: f64) -> Self {
        let mut waiting = lock(&slot.waiting);
        waiting.count += 1;
        waiting.cost += cost;
        Self { slot, cost }
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut waiting = lock(&self.slot.waiting);
        waiting.count -= 1;
        // Nobody waits for anything: rounding must not pretend otherwise.
        waiting.cost = if waiting.count == 0 {
            0.0
        } else {
            waiting.cost - self.cost
        };
    }
}

fn check_cost(cost: f64) -> Result<(), AcquireError> {
    if cost.is_finite() && cost >= 0.0 {
        Ok(())
    } else {
        Err(AcquireError::BadCost(cost))
    }
}
