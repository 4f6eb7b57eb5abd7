//! The resource of a key, its limiter, and its limit without a lease.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use doorward_limits::{AtomicBucket, Moment, Units};
use tokio_stream::StreamExt as _;

use crate::capacity::{Capacity, Source};
use crate::rate_limiter::RateLimiter;
use crate::rate_permit::{Payer, RatePermit};
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::state::LimitedBy;
use crate::time::Time;

/// The resource of a key.
pub(super) struct Entry {
    pub(super) resource: Resource,
    pub(super) limiter: RateLimiter,
    pub(super) opened_at: Time,
    /// Whether a call has seen a lease with a safe capacity.
    pub(super) has_safe: AtomicBool,
    /// Whether a call used it since the last look for idle keys.
    pub(super) is_used: AtomicBool,
    /// Limit while there is no lease.
    pub(super) fallback: OnceLock<AtomicBucket>,
}

impl Entry {
    pub(super) fn try_acquire(
        self: Arc<Self>,
        cost: Units,
    ) -> Result<RatePermit<'static>, Refusal> {
        let taken_at = self.limiter.try_acquire(cost)?.taken_at();
        Ok(RatePermit::of_key(self, cost, taken_at))
    }

    pub(super) fn has_lease(&self) -> bool {
        let holding = self.resource.holding();
        let is_learning = holding.limited_by.is_some_and(LimitedBy::is_learning);
        // A server in learning mode does not know yet what a new client may have.
        let is_empty = is_learning && holding.capacity == Capacity::NONE;
        let has_lease = holding.source == Source::Lease && !is_empty;
        if has_lease && holding.then != Capacity::NONE && !self.has_safe.load(Ordering::Relaxed) {
            self.has_safe.store(true, Ordering::Relaxed);
        }
        has_lease
    }

    /// Waits until there is no lease, or the client is closed.
    pub(super) async fn lease_lost(&self) {
        let mut changes = self.resource.changes();
        while changes.next().await.is_some() && self.has_lease() {}
    }
}

impl Payer for Entry {
    fn settle(&self, taken_at: Time, estimate: Units, used: Units) {
        if self.has_lease() {
            self.limiter.settle(taken_at, estimate, used);
        }
    }

    fn take(&self, more: Units) -> Result<Option<Moment>, Refusal> {
        match self.has_lease() {
            true => self.limiter.take(more),
            false => Ok(None),
        }
    }

    fn shared(&self) -> Arc<dyn Payer> {
        // The permit of a key is shared from the start.
        self.limiter.shared()
    }
}
