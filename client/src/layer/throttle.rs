//! The layer of a client that makes its requests wait for a lease.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use thiserror::Error;
use tower_layer::Layer;
use tower_service::Service;

use crate::{RateLimiter, Refusal};

/// Largest number of waiting requests, unless the program says otherwise.
const WAITING_MAX: usize = 1_000;

/// A layer that lets requests through as the lease of a resource allows: in the order of arrival, each at most for a
/// time. A dropped request leaves the queue, and has used nothing. At most 1,000 requests wait, unless
/// [`ThrottleLayer::waiting_max`] says otherwise; more are refused at once.
#[derive(Clone, Debug)]
pub struct ThrottleLayer {
    limiter: RateLimiter,
    max_wait: Duration,
    waiting_max: usize,
    /// Number of requests that wait, of all clones.
    waiting: Arc<AtomicUsize>,
}

/// A service behind a [`ThrottleLayer`].
#[derive(Clone, Debug)]
pub struct Throttle<S> {
    inner: S,
    layer: ThrottleLayer,
}

/// An error of a throttled request.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ThrottleError<E> {
    /// The lease did not allow the request in time. Nothing was sent.
    #[error("the lease allowed no request within {0:?}")]
    TooLate(Duration),
    /// Too many requests wait already. Nothing was sent.
    #[error("{0} requests wait for the lease already")]
    TooMany(usize),
    /// The limiter refuses all requests.
    #[error(transparent)]
    Refused(Refusal),
    /// The service failed.
    #[error(transparent)]
    Service(E),
}

impl ThrottleLayer {
    /// Creates a layer. A request waits for at most `max_wait`.
    pub fn new(limiter: RateLimiter, max_wait: Duration) -> Self {
        Self {
            limiter,
            max_wait,
            waiting_max: WAITING_MAX,
            waiting: Arc::default(),
        }
    }

    /// Sets the largest number of requests that wait at once; at least 1. Default: 1,000.
    pub fn waiting_max(mut self, waiting_max: usize) -> Self {
        self.waiting_max = waiting_max.max(1);
        self
    }

    /// Waits for the lease.
    async fn admit<E>(&self) -> Result<(), ThrottleError<E>> {
        let Some(_place) = Place::take(&self.waiting, self.waiting_max) else {
            return Err(ThrottleError::TooMany(self.waiting_max));
        };
        match tokio::time::timeout(self.max_wait, self.limiter.acquire(1)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(refusal)) => Err(ThrottleError::Refused(refusal)),
            Err(_) => Err(ThrottleError::TooLate(self.max_wait)),
        }
    }
}

/// A place among the waiting requests, as long as it lives.
struct Place<'a>(&'a AtomicUsize);

impl<'a> Place<'a> {
    fn take(waiting: &'a AtomicUsize, most: usize) -> Option<Self> {
        let place = Self(waiting);
        (waiting.fetch_add(1, Ordering::Relaxed) < most).then_some(place)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<S> Layer<S> for ThrottleLayer {
    type Service = Throttle<S>;

    fn layer(&self, inner: S) -> Self::Service {
        Throttle {
            inner,
            layer: self.clone(),
        }
    }
}

impl<S, R> Service<R> for Throttle<S>
where
    S: Service<R> + Clone + Send + 'static,
    S::Future: Send,
    R: Send + 'static,
{
    type Response = S::Response;
    type Error = ThrottleError<S::Error>;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner
            .poll_ready(context)
            .map_err(ThrottleError::Service)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let layer = self.layer.clone();
        Box::pin(async move {
            layer.admit().await?;
            inner.call(request).await.map_err(ThrottleError::Service)
        })
    }
}
