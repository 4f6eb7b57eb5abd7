//! The concurrency limiter in a program's interface.

use std::sync::Arc;

use doorward_limits::Units;

use crate::clock::Clock;
use crate::gate::Gate;
use crate::handle::Handle;
use crate::limiter::concurrency::LeasedPermits;
use crate::refusal::Refusal;
use crate::slot::Slot;

/// A limiter of permits in flight, which follows the lease as it changes. Cheap to clone; clones share one limit.
///
/// A lease that shrinks below the permits in flight takes effect as permits come back. Until then, the client reports
/// the permits in flight as the amount that it has.
///
/// ```
/// # use doorward::Client;
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (client, server) = Client::fake("worker-1");
/// # server.set_capacity("gpus", 8.0);
/// let gpus = client.resource("gpus").open()?.concurrency_limiter();
/// let permit = gpus.acquire(1).await?;
/// let work = tokio::task::spawn_blocking(move || {
///     let _until_the_end = permit;
///     // The work.
/// });
/// # work.await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct ConcurrencyLimiter {
    /// The handle's gate, copied for speed.
    gate: &'static Gate,
    slot: Arc<Slot>,
    handle: Arc<Handle>,
}

/// Places of a number in flight. They are free again when it is dropped, so move it into the work: a blocking task, or
/// the stream of an answer.
#[must_use = "the places are free when the permit is dropped"]
#[derive(Debug)]
pub struct Permit {
    gate: &'static Gate,
    permits: u64,
}

debug_by_name!(ConcurrencyLimiter);

impl ConcurrencyLimiter {
    pub(crate) fn new(handle: Arc<Handle>, gate: &'static Gate) -> Self {
        Self {
            gate,
            slot: handle.slot.clone(),
            handle,
        }
    }

    /// Waits for places, and takes them: one for each unit of the cost or part of one. Callers are served in order of
    /// arrival. Safe to cancel.
    ///
    /// # Errors
    ///
    /// If the client is closed, or nothing may be used because no template matches the resource. Otherwise it waits.
    pub async fn acquire(&self, cost: impl Into<Units>) -> Result<Permit, Refusal> {
        let permits = places(cost.into());
        if let Some(true) = self.at_once(permits) {
            return Ok(self.permit(permits));
        }
        let waiter = self.gate.queue.join(permits as f64);
        self.measure(0.0);
        let attempt = |is_first| match self.attempt(permits) {
            Err(refusal) if refusal.passes() => {
                if is_first {
                    self.note_limited();
                }
                let until = self.state().until();
                Err(until.filter(|until| *until > self.clock().now()))
            }
            answer => Ok(answer),
        };
        let (changed, clock) = (&self.gate.changed, self.clock());
        waiter.serve(changed, clock, attempt).await
    }

    /// Takes places if they are free.
    ///
    /// # Errors
    ///
    /// A [`Refusal`]. Its time is that until the client's next answer, if there are no places until then. It has none
    /// while all places are in use.
    #[inline]
    pub fn try_acquire(&self, cost: impl Into<Units>) -> Result<Permit, Refusal> {
        let permits = places(cost.into());
        match self.at_once(permits) {
            Some(true) => Ok(self.permit(permits)),
            // The limit is above 0, and all places are in use.
            Some(false) => {
                self.note_limited();
                Err(Refusal::over(None))
            }
            None => self.try_slowly(permits),
        }
    }

    /// Decides without a lock, and measures the demand. None: only a lock can decide, or other callers wait and come
    /// first.
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
    fn try_slowly(&self, permits: u64) -> Result<Permit, Refusal> {
        self.measure(permits as f64);
        let others_wait = self.gate.queue.waiting().count > 0;
        let answer = if others_wait {
            let now = self.clock().now();
            Err(self.handle.refusal(Refusal::over(None), 1.0, now))
        } else {
            self.attempt(permits)
        };
        if answer.is_err() {
            self.note_limited();
        }
        answer.map_err(|refusal| self.handle.until_next_answer(refusal, 1.0))
    }

    /// Returns the id of its resource.
    pub(crate) fn resource_id(&self) -> &str {
        &self.slot.id
    }

    /// Returns the number of places in use.
    pub fn in_flight(&self) -> u64 {
        self.state().in_flight()
    }

    fn attempt(&self, permits: u64) -> Result<Permit, Refusal> {
        if self.slot.is_closed() {
            return Err(Refusal::CLOSED);
        }
        let now = self.clock().now();
        if !self.state().try_acquire(permits, now) {
            return Err(self.handle.refusal(Refusal::over(None), 1.0, now));
        }
        Ok(self.permit(permits))
    }

    /// Creates the permit after the limiter has admitted it.
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

    /// Measures demand for this amount in addition to the permits in flight and waiting.
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

/// Returns the number of places of a cost.
#[inline]
fn places(cost: Units) -> u64 {
    let whole = cost.floor();
    let is_whole = Units::whole(whole) == cost;
    whole.saturating_add(u64::from(!is_whole))
}

impl Drop for Permit {
    #[inline]
    fn drop(&mut self) {
        self.gate.release(self.permits);
    }
}
