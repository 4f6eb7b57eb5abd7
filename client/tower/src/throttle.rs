//! The layer of a client that makes its requests wait for a lease.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use doorward_client::{AcquireError, RateLimiter};
use thiserror::Error;
use tower_layer::Layer;
use tower_service::Service;

/// A layer that lets requests through as the lease of a resource allows: in the order of arrival, each at most for a
/// time. A dropped request leaves the queue, and has used nothing.
#[derive(Clone)]
pub struct ThrottleLayer {
    limiter: RateLimiter,
    max_wait: Duration,
}

/// A service behind a [`ThrottleLayer`].
#[derive(Clone)]
pub struct Throttle<S> {
    inner: S,
    layer: ThrottleLayer,
}

/// An error of a throttled request.
#[derive(Debug, Error)]
pub enum ThrottleError<E> {
    /// The lease did not allow the request in time. Nothing was sent.
    #[error("the lease allowed no request within {0:?}")]
    TooLate(Duration),
    /// The limiter refuses all requests.
    #[error(transparent)]
    Refused(AcquireError),
    /// The service failed.
    #[error(transparent)]
    Service(E),
}

impl ThrottleLayer {
    /// Creates a layer. A request waits for at most `max_wait`.
    pub const fn new(limiter: RateLimiter, max_wait: Duration) -> Self {
        Self { limiter, max_wait }
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
        let ThrottleLayer { limiter, max_wait } = self.layer.clone();
        Box::pin(async move {
            match tokio::time::timeout(max_wait, limiter.acquire(1.0)).await {
                Ok(Ok(())) => inner.call(request).await.map_err(ThrottleError::Service),
                Ok(Err(error)) => Err(ThrottleError::Refused(error)),
                Err(_) => Err(ThrottleError::TooLate(max_wait)),
            }
        })
    }
}
