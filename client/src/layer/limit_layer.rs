//! The one layer: around a service, it refuses requests; around a client, it makes them wait.
//!
//! Rules alone usually decide within the call, without an allocation of its own. A boxed future takes over where a request
//! must wait, and where a [limiter of another kind](crate::layer::pass) decides too.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use pin_project_lite::pin_project;
use tokio::sync::Semaphore;
use tower_layer::Layer;
use tower_service::Service;

use crate::layer::body::RefusableBody;
use crate::layer::limits::Limits;
use crate::layer::overload::{Overload, with_criticality};
use crate::layer::pass::{self, Limiters};
use crate::layer::request::{Decided, degrade};
use crate::rules::{Advice, Decision};

/// A layer that limits requests by one limiter, or by [several](LimitLayer::and): a request passes all of them or none, and
/// one that is refused has used nothing.
///
/// - [`Limits`] decide by rules. A request that passes several layers of the same limits counts once.
/// - [`Overload`] admits the most critical requests that the service can serve in time. Place such a layer outside of slow
///   layers, and inside of those that find out who the caller is.
/// - A `RateLimiter` or a `ConcurrencyLimiter` of a client obeys a lease. A place is taken until the answer begins, or as
///   long as there is a clone of the [`InFlight`](crate::layer::overload::InFlight) in the request's extensions. Beside
///   overload control, a rate pays the predicted cost of a request, and at the end the real one. If it is not in debt, it
///   admits a request of any cost.
///
/// Without overload control, a request that waits keeps the inner service that is ready, so a limit of requests in flight
/// belongs outside of this layer.
///
/// ```
/// use doorward::layer::{LimitLayer, Limits, Overload};
/// use doorward::rules::{Rules, header};
///
/// let limits = Limits::new(Rules::named("api").per(header("x-user"), "5/s"))?;
/// let layer = LimitLayer::new(limits).and(Overload::new("api"));
/// let app = axum::Router::<()>::new().layer(layer);
/// # drop(app);
/// # Ok::<(), doorward::layer::BuildError>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct LimitLayer(Arc<Limiters>);

/// A service behind a [`LimitLayer`].
#[derive(Clone)]
pub struct LimitService<S> {
    limiters: Arc<Limiters>,
    inner: S,
}

debug_by_name!(LimitLayer, @S LimitService<S>);

impl LimitLayer {
    /// Creates a layer of a limiter.
    pub fn new(limiter: impl Into<Self>) -> Self {
        limiter.into()
    }

    /// Adds a limiter, or those of another layer. In any order of adding, rules decide first, so that a caller above its
    /// limit takes no room in a queue; then overload control, of which a layer has one; then places, and then rates, in the
    /// order of adding. While a request waits, it holds what came before, so layers with the same leases should have them in
    /// the same order.
    pub fn and(self, other: impl Into<Self>) -> Self {
        let Self(other) = other.into();
        self.with(|limiters| limiters.add(Arc::unwrap_or_clone(other)))
    }

    /// Sets how long a request may wait for all leases, in the order of arrival. Default: not at all. Beside overload control,
    /// no request waits for a lease. Of two layers, the longer wait counts.
    pub fn max_wait(self, max_wait: Duration) -> Self {
        self.with(|limiters| limiters.max_wait = max_wait)
    }

    /// Sets the largest number of requests that wait for leases at once; at least 1. Default: 1,000. More are refused at
    /// once.
    pub fn waiting_max(self, waiting_max: usize) -> Self {
        let places = waiting_max.clamp(1, Semaphore::MAX_PERMITS);
        self.with(|limiters| limiters.places = Arc::new(Semaphore::new(places)))
    }

    fn with(self, change: impl FnOnce(&mut Limiters)) -> Self {
        let mut limiters = Arc::unwrap_or_clone(self.0);
        change(&mut limiters);
        Self(Arc::new(limiters))
    }
}

impl From<Limits> for LimitLayer {
    fn from(limits: Limits) -> Self {
        Self(Arc::default()).with(|it| it.rules.push(limits))
    }
}

impl From<Overload> for LimitLayer {
    fn from(overload: Overload) -> Self {
        Self(Arc::default()).with(|it| it.overload = Some(overload))
    }
}

#[cfg(feature = "leases")]
impl From<crate::RateLimiter> for LimitLayer {
    fn from(lease: crate::RateLimiter) -> Self {
        Self(Arc::default()).with(|it| it.leases.rates.push(lease))
    }
}

#[cfg(feature = "leases")]
impl From<crate::ConcurrencyLimiter> for LimitLayer {
    fn from(lease: crate::ConcurrencyLimiter) -> Self {
        Self(Arc::default()).with(|it| it.leases.places.push(lease))
    }
}

impl<S> Layer<S> for LimitLayer {
    type Service = LimitService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        LimitService {
            limiters: Arc::clone(&self.0),
            inner,
        }
    }
}

impl<S, B, O> Service<Request<B>> for LimitService<S>
where
    S: Service<Request<B>, Response = Response<O>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    O: 'static,
{
    type Response = Response<RefusableBody<O>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, B, O>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        match self.limiters.overload {
            None => self.inner.poll_ready(context),
            // Requests wait for overload control, and not unseen for the service: that is asked when they are admitted.
            Some(_) => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let Some(limits) = self.limiters.rules_alone() else {
            return self.wait(request, None);
        };
        let limits = &limits.inner;
        if Decided::is_marked(request.extensions_mut(), limits.number) {
            return ResponseFuture::passed(self.inner.call(request), HeaderMap::new());
        }
        if let Some(response) = limits.without_address(&request) {
            return ResponseFuture::refused(response);
        }
        if !pass::waits(limits, &request).is_empty() {
            return self.wait(request, None);
        }
        let decision = pass::decide(limits, &request);
        match decision.advice {
            Advice::ProceedAfter(_) => self.wait(request, Some(decision)),
            _ => match pass::admit(limits, request.headers(), &decision) {
                Ok(headers) => {
                    degrade(decision.advice, request.extensions_mut());
                    ResponseFuture::passed(self.inner.call(request), headers)
                }
                Err(response) => ResponseFuture::refused(response),
            },
        }
    }
}

impl<S: Clone> LimitService<S> {
    /// Lets a request wait with the service that may be ready. The next request gets a clone, which may not be. `decision`:
    /// that of rules alone.
    fn wait<B, O>(
        &mut self,
        request: Request<B>,
        decision: Option<Decision>,
    ) -> ResponseFuture<S, B, O>
    where
        S: Service<Request<B>, Response = Response<O>> + Send + 'static,
        S::Future: Send,
        B: Send + 'static,
        O: 'static,
    {
        let clone = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, clone);
        let waiting = serve(Arc::clone(&self.limiters), inner, request, decision);
        ResponseFuture {
            state: State::Waiting {
                waiting: Box::pin(waiting),
            },
        }
    }
}

/// Lets a request pass all limiters, serves it, and settles its cost.
async fn serve<S, B, O>(
    limiters: Arc<Limiters>,
    mut service: S,
    request: Request<B>,
    decision: Option<Decision>,
) -> Result<Response<RefusableBody<O>>, S::Error>
where
    S: Service<Request<B>, Response = Response<O>>,
{
    // Only the head is shared with a wait, because a body need not be `Sync`.
    let (parts, body) = request.into_parts();
    let mut head = Request::from_parts(parts, ());
    let served = match limiters.pass(&mut head, decision).await {
        Ok(served) => served,
        Err(response) => return Ok(response.map(RefusableBody::refusal)),
    };
    let response = async {
        poll_fn(|context| service.poll_ready(context)).await?;
        service.call(head.map(|()| body)).await
    };
    let response = match served.criticality {
        Some(criticality) => with_criticality(criticality, response).await?,
        None => response.await?,
    };
    served.in_flight.answer(response.status().is_server_error());
    Ok(with_headers(response, served.headers))
}

fn with_headers<O>(response: Response<O>, headers: HeaderMap) -> Response<RefusableBody<O>> {
    let mut response = response.map(RefusableBody::service);
    if !headers.is_empty() {
        response.headers_mut().extend(headers);
    }
    response
}

pin_project! {
    /// The response to a request: of the service, or a refusal.
    pub struct ResponseFuture<S, B, O>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        state: State<S::Future, Response<RefusableBody<O>>, S::Error>,
    }
}

type Waiting<R, E> = Pin<Box<dyn Future<Output = Result<R, E>> + Send>>;

pin_project! {
    #[project = StateProjection]
    enum State<F, R, E> {
        Refused { response: Box<Response<Bytes>> },
        Passed { #[pin] future: F, headers: HeaderMap },
        Waiting { waiting: Waiting<R, E> },
    }
}

impl<S: Service<Request<B>>, B, O> fmt::Debug for ResponseFuture<S, B, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}

impl<S: Service<Request<B>>, B, O> ResponseFuture<S, B, O> {
    fn refused(response: Box<Response<Bytes>>) -> Self {
        Self {
            state: State::Refused { response },
        }
    }

    fn passed(future: S::Future, headers: HeaderMap) -> Self {
        Self {
            state: State::Passed { future, headers },
        }
    }
}

impl<S, B, O> Future for ResponseFuture<S, B, O>
where
    S: Service<Request<B>, Response = Response<O>>,
{
    type Output = Result<Response<RefusableBody<O>>, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProjection::Refused { response } => {
                let response = std::mem::take(&mut **response);
                Poll::Ready(Ok(response.map(RefusableBody::refusal)))
            }
            StateProjection::Passed { future, headers } => {
                let response = ready!(future.poll(context))?;
                Poll::Ready(Ok(with_headers(response, std::mem::take(headers))))
            }
            StateProjection::Waiting { waiting } => waiting.as_mut().poll(context),
        }
    }
}
