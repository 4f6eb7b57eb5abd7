//! A resource in a program's interface.

use std::sync::Arc;
use std::time::Duration;

use tokio_stream::wrappers::WatchStream;
use tokio_stream::{Stream, StreamExt};

use crate::budget::BudgetLimiter;
use crate::capacity::Capacity;
use crate::concurrency_limiter::ConcurrencyLimiter;
use crate::error::ResourceError;
use crate::gate::OpenGate;
use crate::handle::Handle;
use crate::holding::Holding;
use crate::limiter::rate::{Burst, LeasedRate};
use crate::rate_limiter::RateLimiter;
use crate::slot::View;
use crate::state::{AMOUNT_MAX, RefusalKind, Trouble};
use crate::time::Time;

/// A resource that a client uses. Cheap to clone. When the last clone and its last limiter are
/// dropped, the client releases the resource.
#[derive(Clone)]
pub struct Resource {
    handle: Arc<Handle>,
}

debug_by_name!(Resource);

impl Resource {
    pub(crate) const fn new(handle: Arc<Handle>) -> Self {
        Self { handle }
    }

    /// Returns the resource's id.
    pub fn id(&self) -> &str {
        &self.handle.slot.id
    }

    /// Returns the amount that may be used now.
    pub fn capacity(&self) -> Capacity {
        self.holding().capacity
    }

    /// Returns the amount that may be used now, with its origin and its limit.
    pub fn holding(&self) -> Holding {
        let now = self.handle.shared.clock.now();
        Holding::of(&self.handle.slot.view.borrow(), now)
    }

    /// Returns a stream of the holding: now, and each time that the capacity changes, or that
    /// learning mode begins or ends. It ends when the client is closed. A slow reader gets the
    /// newest value, and not every one.
    pub fn changes(&self) -> impl Stream<Item = Holding> + Send + Unpin + use<> {
        let clock = self.handle.shared.clock.clone();
        let views = WatchStream::new(self.handle.slot.view.subscribe());
        let mut last = None;
        Box::pin(
            views
                .take_while(|view| !view.closed)
                .filter_map(move |view: View| {
                    let holding = Holding::of(&view, clock.now());
                    let news = Some(holding.news());
                    (std::mem::replace(&mut last, news) != news).then_some(holding)
                }),
        )
    }

    /// Returns the current wants.
    pub fn wants(&self) -> f64 {
        let book = self.handle.shared.book();
        book.state
            .resource(self.id())
            .map_or(0.0, crate::state::ResourceState::wants)
    }

    /// Changes the wants, and ends the measurement of demand. The server hears of it at once, or after the gap between
    /// early requests.
    ///
    /// # Errors
    ///
    /// If the wants are not a finite number from 0 to 10¹⁵, or the client is closed.
    pub fn ask(&self, wants: f64) -> Result<(), ResourceError> {
        check_wants(wants)?;
        if self.handle.slot.is_closed() {
            return Err(ResourceError::Closed);
        }
        if let Some(measured) = &self.handle.slot.measured {
            measured.end();
        }
        self.handle.shared.book().state.ask(self.id(), wants);
        self.handle.shared.wake();
        Ok(())
    }

    /// Returns the reason why there is no fresh lease, if something is wrong. The client may still
    /// hold a valid lease.
    pub fn problem(&self) -> Option<ResourceError> {
        let view = self.handle.slot.view.borrow().clone();
        if view.closed {
            return Some(ResourceError::Closed);
        }
        let shared = &self.handle.shared;
        if let Some(late) = shared.late(shared.clock.now()) {
            return Some(ResourceError::TaskIsLate(late));
        }
        if let Some(trouble) = view.trouble {
            return Some(self.error_of(trouble));
        }
        self.handle
            .shared
            .book()
            .failure
            .clone()
            .map(ResourceError::NotConnected)
    }

    /// Waits for a lease, for `timeout` at most.
    ///
    /// # Errors
    ///
    /// If the resource is unknown or refused, if no server answered in time, or if the client is
    /// closed.
    pub async fn wait_for_lease(&self, timeout: Duration) -> Result<Capacity, ResourceError> {
        let decided = |view: &View| view.closed || view.is_refused() || view.lease.is_some();
        let view = self.wait(decided, "lease", timeout).await?;
        match view.trouble {
            _ if view.lease.is_some() => Ok(view.allowance.capacity),
            Some(trouble) => Err(self.error_of(trouble)),
            None => Err(ResourceError::Closed),
        }
    }

    /// Waits for a view, for `timeout` at most.
    async fn wait(
        &self,
        decided: impl FnMut(&View) -> bool,
        what: &str,
        timeout: Duration,
    ) -> Result<View, ResourceError> {
        let mut views = self.handle.slot.view.subscribe();
        match tokio::time::timeout(timeout, views.wait_for(decided)).await {
            Ok(Ok(view)) => Ok(view.clone()),
            Ok(Err(_)) => Err(ResourceError::Closed),
            Err(_) => Err(self.not_in_time(&format!("no {what} within {timeout:?}"))),
        }
    }

    /// Waits until a server has answered a request with these wants, for `timeout` at most.
    ///
    /// # Errors
    ///
    /// As [`Resource::wait_for_lease`].
    pub async fn wait_for_answer(
        &self,
        wants: f64,
        timeout: Duration,
    ) -> Result<Capacity, ResourceError> {
        let decided = |view: &View| view.closed || view.is_refused() || view.is_answer_to(wants);
        self.wait(decided, "answer", timeout).await?;
        match self.problem() {
            Some(problem) => Err(problem),
            None => Ok(self.capacity()),
        }
    }

    /// Returns the rate limiter of this resource, for amounts per second. A resource has one: the burst of the first
    /// call counts. The default burst is the amount of 20 ms and one request; [`Burst`] says how to choose another.
    pub fn rate_limiter(&self, burst: Burst) -> RateLimiter {
        self.limiter(|now| LeasedRate::new(burst, now))
    }

    /// Returns the rate limiter, which a call may create.
    pub(crate) fn limiter(&self, new: impl FnOnce(Time) -> LeasedRate) -> RateLimiter {
        let Handle { slot, shared, .. } = &*self.handle;
        let _first = slot.rate.get_or_init(|| new(shared.clock.now()));
        self.handle.catch_up();
        RateLimiter::new(self.handle.clone())
    }

    /// Returns the concurrency limiter of this resource, for amounts at once. A resource has one.
    pub fn concurrency_limiter(&self) -> ConcurrencyLimiter {
        let gate = self.handle.slot.concurrency.get_or_init(OpenGate::default);
        self.handle.catch_up();
        ConcurrencyLimiter::new(self.handle.clone(), gate.0)
    }

    /// Returns the limiter of a budget.
    pub(crate) fn budget(&self) -> Result<BudgetLimiter, ResourceError> {
        let limiter = BudgetLimiter::new(self.handle.clone());
        limiter.ok_or_else(|| ResourceError::OtherKind(self.id().to_owned()))
    }

    pub(crate) fn is_budget(&self) -> bool {
        self.handle.slot.budget.is_some()
    }

    fn error_of(&self, trouble: Trouble) -> ResourceError {
        let resource = self.id().to_owned();
        let Trouble { kind, message } = trouble;
        match kind {
            RefusalKind::Unknown => ResourceError::Unknown { resource, message },
            RefusalKind::NotReady | RefusalKind::Other => {
                ResourceError::Refused { resource, message }
            }
        }
    }

    /// Returns the best known reason for a timeout.
    fn not_in_time(&self, otherwise: &str) -> ResourceError {
        let failure = self.handle.shared.book().failure.clone();
        let trouble = self.handle.slot.view.borrow().trouble.clone();
        match (failure, trouble) {
            (Some(failure), _) => ResourceError::NotConnected(failure),
            (None, Some(trouble)) => ResourceError::NotConnected(trouble.message),
            (None, None) => ResourceError::NotConnected(otherwise.to_owned()),
        }
    }
}

/// Checks that a server accepts the number as wants.
pub(crate) fn check_wants(wants: f64) -> Result<(), ResourceError> {
    if (0.0..=AMOUNT_MAX).contains(&wants) {
        Ok(())
    } else {
        Err(ResourceError::BadWants(wants))
    }
}
