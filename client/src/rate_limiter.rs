//! The rate limiter in a program's interface.
//!
//! A call has two paths. Usually it reads a fast clock, and takes by one atomic exchange
//! ([`LeasedRate::try_acquire_at_once`]). If that cannot decide, or if callers wait, it reads the clock of leases and
//! decides behind locks. Measurements and hooks are the same on both paths. The first path is always inlined, so that
//! constant costs and unused parts of an answer cost nothing.

use std::sync::Arc;
use std::time::Duration;

use doorward_limits::{Moment, Units, Wait};

use crate::clock::Clock;
use crate::handle::Handle;
use crate::limiter::rate::LeasedRate;
use crate::rate_permit::{Payer, RatePermit};
use crate::refusal::Refusal;
use crate::slot::Slot;
use crate::time::Time;

/// A limiter of a rate, which follows the lease as it changes. Cheap to clone; clones share one limit.
///
/// In any span of time, it admits at most the amount that the rates in force gave, plus one
/// [`Burst`](crate::limiter::rate::Burst), or one request if that is larger. It obeys the end of a lease exactly.
///
/// ```
/// # use doorward::{Client, limiter::rate::Burst};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (client, server) = Client::fake("orders-1");
/// # server.set_capacity("db/orders", 100.0);
/// let limiter = client.resource("db/orders").open()?.rate_limiter(Burst::default());
/// limiter.acquire(1).await?;
/// if let Err(refusal) = limiter.try_acquire(1) {
///     println!("come back in {:?}", refusal.retry_after);
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct RateLimiter {
    /// The handle's slot, copied for speed.
    slot: Arc<Slot>,
    handle: Arc<Handle>,
}

debug_by_name!(RateLimiter);

impl RateLimiter {
    pub(crate) fn new(handle: Arc<Handle>) -> Self {
        Self {
            slot: handle.slot.clone(),
            handle,
        }
    }

    /// Waits until `cost` may be used, and uses it. Callers are served in order of arrival: cheap requests do not
    /// overtake an expensive one. Safe to cancel: a dropped wait has used nothing.
    ///
    /// # Errors
    ///
    /// If the client is closed, or nothing may be used because no template matches the resource. Otherwise it waits.
    pub async fn acquire(&self, cost: impl Into<Units>) -> Result<RatePermit<'_>, Refusal> {
        let now = self.slot.clock.fast_now();
        let units = cost.into();
        self.measure(units);
        if let Some(Ok(())) = self.at_once(units, now) {
            self.note_admitted(units);
            return Ok(RatePermit::of(self, units, now));
        }
        let slot = &*self.slot;
        let waiter = slot.rate_queue.join(units.as_f64());
        let attempt = |is_first| match self.attempt(units) {
            Err(refusal) if refusal.passes() => {
                self.handle.shared.before_refusal();
                if is_first {
                    self.note_limited();
                }
                Err(refusal.retry_after.map(|time| self.clock().now() + time))
            }
            answer => Ok(answer.map(|now| RatePermit::of(self, units, now))),
        };
        waiter.serve(&slot.changed, &slot.clock, attempt).await
    }

    /// Uses `cost` if the limiter admits it now.
    ///
    /// # Errors
    ///
    /// A [`Refusal`] with the time until enough has come in, or, if nothing may be used now, until the client's next
    /// answer.
    #[inline(always)]
    pub fn try_acquire(&self, cost: impl Into<Units>) -> Result<RatePermit<'_>, Refusal> {
        // The processor converts the cost while it reads its counter.
        let now = self.slot.clock.fast_now();
        let units = cost.into();
        self.measure(units);
        match self.at_once(units, now) {
            Some(Ok(())) => {
                self.note_admitted(units);
                Ok(RatePermit::of(self, units, now))
            }
            // The rate is above 0, so the refusal needs no reason from the last answer.
            Some(Err(wait)) => {
                self.note_limited();
                Err(Refusal::over(Some(wait.into())))
            }
            None => match self.try_slowly(units) {
                Ok(now) => Ok(RatePermit::of(self, units, now)),
                Err(refusal) => Err(*refusal),
            },
        }
    }

    /// Returns the id of its resource.
    pub(crate) fn resource_id(&self) -> &str {
        &self.slot.id
    }

    /// Refuses a cost whatever the limiter has. Returns the time until the client's next answer.
    pub(crate) fn refuse(&self, cost: Units) -> Refusal {
        self.measure(cost);
        self.note_limited();
        if self.slot.is_closed() {
            return Refusal::CLOSED;
        }
        let refusal = self.refusal(Refusal::over(None), self.clock().now());
        self.until_next_answer(refusal)
    }

    /// Returns whether less than a burst is there, and more comes in.
    pub(crate) fn is_filling(&self) -> bool {
        self.state().is_filling(self.clock().now())
    }

    /// Decides without a lock. None: only a lock can decide, or other callers wait and come first.
    #[inline(always)]
    fn at_once(&self, cost: Units, now: Moment) -> Option<Result<(), Wait>> {
        let slot = &*self.slot;
        if !slot.rate_queue.is_empty() {
            return None;
        }
        slot.rate.get()?.try_acquire_at_once(cost, now)
    }

    /// Decides behind a lock. The error is boxed, so that the result fits a register. Otherwise every answer would be
    /// written to the caller's memory, even the parts that the caller does not read.
    #[cold]
    fn try_slowly(&self, cost: Units) -> Result<Moment, Box<Refusal>> {
        // Waiting callers come first.
        let waiting = self.slot.rate_queue.waiting().cost;
        let answer = if waiting > 0.0 {
            let now = self.clock().now();
            Err(match self.state().look(waiting + cost.as_f64(), now) {
                // There is enough, and the waiting callers will be served in a moment.
                Ok(()) => Refusal::over(Some(Duration::from_millis(1))),
                Err(refusal) => self.refusal(refusal, now),
            })
        } else {
            self.attempt(cost)
        };
        if answer.is_err() {
            self.note_limited();
        }
        answer.map_err(|refusal| Box::new(self.until_next_answer(refusal)))
    }

    fn attempt(&self, cost: Units) -> Result<Moment, Refusal> {
        if self.slot.is_closed() {
            return Err(Refusal::CLOSED);
        }
        let now = self.clock().now();
        match self.state().try_acquire(cost.as_f64(), now) {
            Ok(()) => {
                self.note_admitted(cost);
                Ok(Moment::ORIGIN.after(now.since_origin()))
            }
            Err(refusal) => Err(self.refusal(refusal, now)),
        }
    }

    /// Returns the reason for the refusal, as far as the limiter and the last answer know it.
    fn refusal(&self, usual: Refusal, now: Time) -> Refusal {
        self.handle.refusal(usual, f64::MIN_POSITIVE, now)
    }

    /// Sets the time until the next answer, if the rate is 0, or never admits the cost.
    fn until_next_answer(&self, refusal: Refusal) -> Refusal {
        let least = refusal
            .retry_after
            .map_or(f64::INFINITY, |_| f64::MIN_POSITIVE);
        self.handle.until_next_answer(refusal, least)
    }

    #[inline]
    fn measure(&self, cost: Units) {
        if let Some(measured) = &self.slot.measured {
            measured.asked(cost.as_f64());
        }
    }

    #[inline]
    fn note_admitted(&self, cost: Units) {
        if self.slot.is_observed {
            self.tell_admitted(cost);
        }
    }

    /// A function of its own because it is rare, so that the rest of a call is short enough to be inlined.
    #[inline(never)]
    fn tell_admitted(&self, cost: Units) {
        let hooks = &self.handle.shared.hooks;
        hooks.admitted(&self.slot.id, cost.as_f64());
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

impl Payer for RateLimiter {
    fn settle(&self, taken_at: Time, estimate: Units, used: Units) {
        let waiting = self.slot.rate_queue.waiting().first;
        let waiting = Units::at_least(waiting).unwrap_or(Units::MAX);
        let now = self.clock().now();
        self.state().settle(taken_at, estimate, used, waiting, now);
        if used < estimate {
            self.slot.changed.notify_waiters();
        }
    }

    fn take(&self, more: Units) -> Result<Option<Moment>, Refusal> {
        self.try_acquire(more).map(|_| None)
    }

    fn shared(&self) -> Arc<dyn Payer> {
        Arc::new(self.clone())
    }
}
