//! The rate limiter as a program uses it.
//!
//! A call goes one of two ways. Mostly it reads a fast clock, and replaces one word ([`LeasedRate::try_acquire_at_once`]).
//! Where that cannot say, or somebody waits, it reads the clock of leases and decides behind locks. What is measured and
//! said to hooks is the same both ways.

use std::sync::Arc;
use std::time::Duration;

use crate::capacity::Capacity;
use crate::clock::Clock;
use crate::error::AcquireError;
use crate::limiter::rate::{LeasedRate, NotNow};
use crate::resource::Handle;
use crate::slot::Slot;
use crate::time::Time;

/// Admits what the lease allows per second, and follows it as it changes. Cheap to clone; clones
/// share one limit.
///
/// What is admitted in any span of time is at most what the rates in force gave in it, plus one
/// [`Burst`](crate::limiter::rate::Burst). It obeys the end of a lease to the moment.
#[derive(Clone)]
pub struct RateLimiter {
    /// That of the handle, for who has no time to look there.
    slot: Arc<Slot>,
    handle: Arc<Handle>,
}

impl RateLimiter {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self {
            slot: handle.slot.clone(),
            handle,
        }
    }

    /// Waits until `cost` may be used, and uses it. First come, first served: a dear request is not
    /// overtaken by cheap ones. Safe to cancel: a wait that is dropped has used nothing.
    ///
    /// # Errors
    ///
    /// If the cost is no finite number from 0 up, or the client is closed. And if nothing may be used
    /// because no template matches the resource, or because another process has had the client id for longer than
    /// a [restart](crate::ClientBuilder::restart_overlap) takes. Anything else is waited out.
    pub async fn acquire(&self, cost: f64) -> Result<(), AcquireError> {
        check_cost(cost)?;
        self.measure(cost);
        if let Some(Ok(())) = self.at_once(cost) {
            self.note_admitted(cost);
            return Ok(());
        }
        let slot = &*self.slot;
        let waiter = slot.rate_queue.join(cost);
        let _turn = waiter.turn().await;
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
                self.note_limited();
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
    /// When to come back, if not: when as much has come in, or when the client hears next how much
    /// may be used, if nothing may be now. And as [`RateLimiter::acquire`].
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a constant cost, and the parts of an answer that nobody uses, cost nothing then"
    )]
    pub fn try_acquire(&self, cost: f64) -> Result<(), AcquireError> {
        check_cost(cost)?;
        self.measure(cost);
        match self.at_once(cost) {
            Some(Ok(())) => {
                self.note_admitted(cost);
                Ok(())
            }
            // Something comes in, so that nobody need say why not.
            Some(Err(NotNow::RetryAfter { retry_after })) => {
                self.note_limited();
                Err(AcquireError::RetryAfter { retry_after })
            }
            Some(Err(NotNow::Blocked)) | None => self.try_slowly(cost).map_err(|error| *error),
        }
    }

    /// Without a lock. None: that cannot say, or others wait, who come first.
    #[inline(always)]
    #[expect(
        clippy::inline_always,
        reason = "a constant cost, and the parts of an answer that nobody uses, cost nothing then"
    )]
    fn at_once(&self, cost: f64) -> Option<Result<(), NotNow>> {
        let slot = &*self.slot;
        if !slot.rate_queue.is_empty() {
            return None;
        }
        slot.rate
            .get()?
            .try_acquire_at_once(cost, slot.clock.fast_now())
    }

    /// The error is in a box, which a register can say. Had the caller to give room for it, every answer would be
    /// written there, and nothing left out of which nobody asks.
    #[cold]
    fn try_slowly(&self, cost: f64) -> Result<(), Box<AcquireError>> {
        // Those who wait come first.
        let waiting = self.slot.rate_queue.waiting().cost;
        let answer = if waiting > 0.0 {
            let now = self.clock().now();
            Err(match self.state().look(waiting + cost, now) {
                // There is enough, and those who wait are about to be served.
                Ok(()) => AcquireError::RetryAfter {
                    retry_after: Duration::from_millis(1),
                },
                Err(not_now) => self.refusal(not_now, now),
            })
        } else {
            self.attempt(cost)
        };
        if answer.is_err() {
            self.note_limited();
        }
        answer.map_err(|error| Box::new(self.until_next_answer(error)))
    }

    fn attempt(&self, cost: f64) -> Result<(), AcquireError> {
        if self.slot.is_closed() {
            return Err(AcquireError::Closed);
        }
        let now = self.clock().now();
        match self.state().try_acquire(cost, now) {
            Ok(()) => {
                self.note_admitted(cost);
                Ok(())
            }
            Err(not_now) => Err(self.refusal(not_now, now)),
        }
    }

    /// Why not now, as far as the limiter and the last answer know.
    fn refusal(&self, not_now: NotNow, now: Time) -> AcquireError {
        let view = self.slot.view.borrow();
        let hopeless = self.handle.hopeless(&view, now);
        if let Some(error) = hopeless.filter(|_| view.allowance.at(now) == Capacity::NONE) {
            return error;
        }
        match not_now {
            NotNow::RetryAfter { retry_after } => AcquireError::RetryAfter { retry_after },
            NotNow::Blocked => AcquireError::Blocked,
        }
    }

    /// If nothing comes in at present: when the next answer is due, which may change that.
    fn until_next_answer(&self, error: AcquireError) -> AcquireError {
        let now = self.clock().now();
        let view = self.slot.view.borrow();
        let Some(answer_in) = view.answer_in(now) else {
            return error;
        };
        match error {
            AcquireError::RetryAfter { retry_after } if view.allowance.at(now).get() <= 0.0 => {
                AcquireError::RetryAfter {
                    retry_after: retry_after.min(answer_in),
                }
            }
            AcquireError::Blocked => AcquireError::RetryAfter {
                retry_after: answer_in,
            },
            other => other,
        }
    }

    #[inline]
    fn measure(&self, cost: f64) {
        if let Some(measured) = &self.slot.measured {
            measured.asked(cost);
        }
    }

    #[inline]
    fn note_admitted(&self, cost: f64) {
        if self.slot.is_observed {
            self.tell_admitted(cost);
        }
    }

    /// Apart, as what is rare: so the rest of a call is short enough to stand where it is called.
    #[inline(never)]
    fn tell_admitted(&self, cost: f64) {
        self.handle.shared.hooks.admitted(&self.slot.id, cost);
    }

    #[inline(never)]
    fn tell_limited(&self) {
        self.handle.shared.hooks.limited(&self.slot.id);
    }

    #[inline]
    fn note_limited(&self) {
        if self.slot.is_observed {
            self.tell_limited();
        }
    }

    fn clock(&self) -> &Clock {
        &self.slot.clock
    }

    fn state(&self) -> &LeasedRate {
        self.handle.rate_state()
    }
}

#[inline]
fn check_cost(cost: f64) -> Result<(), AcquireError> {
    if (0.0..f64::INFINITY).contains(&cost) {
        Ok(())
    } else {
        Err(AcquireError::BadCost(cost))
    }
}
