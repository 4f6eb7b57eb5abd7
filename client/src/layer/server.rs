//! The layer of a server: it decides each request by rules before the service sees it.
//!
//! A request is usually decided within the call, without an allocation of its own. A boxed future takes over where it
//! must wait: for its turn, or for the first lease of a shared rule. The turn of a request that is dropped while it
//! waits goes to no other one.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body_util::{Either, Full};
use pin_project_lite::pin_project;
use tower_layer::Layer;
use tower_service::Service;

use crate::layer::limits::{Inner, Limits};
#[cfg(feature = "tonic")]
use crate::layer::request::is_grpc;
use crate::layer::request::{Decided, degrade, with_request};
use crate::rules::{Advice, Decision};

/// Body of a response: of a refusal, or of the service.
pub type RefusableBody<B> = Either<Full<Bytes>, B>;

/// A layer that limits the requests of a server. A request that passes several layers of the same [`Limits`] counts
/// once. A request that waits keeps the inner service that is ready, so a limit of requests in flight belongs outside of
/// this layer.
///
/// ```
/// use doorward::layer::{Limits, RulesLayer};
/// use doorward::rules::{Rules, header};
///
/// let limits = Limits::new(Rules::named("api").per(header("x-user"), "5/s"))?;
/// let app = axum::Router::<()>::new().layer(RulesLayer::new(limits));
/// # drop(app);
/// # Ok::<(), doorward::layer::BuildError>(())
/// ```
#[derive(Clone, Debug)]
pub struct RulesLayer {
    limits: Limits,
}

/// A service behind a [`RulesLayer`].
#[derive(Clone, Debug)]
pub struct RulesService<S> {
    limits: Limits,
    inner: S,
}

impl RulesLayer {
    /// Creates a layer of these limits.
    pub const fn new(limits: Limits) -> Self {
        Self { limits }
    }
}

impl<S> Layer<S> for RulesLayer {
    type Service = RulesService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        RulesService {
            limits: self.limits.clone(),
            inner,
        }
    }
}

impl<S, B, O> Service<Request<B>> for RulesService<S>
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
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let limits = &self.limits.inner;
        if Decided::is_marked(request.extensions_mut(), limits.number) {
            return ResponseFuture::passed(self.inner.call(request), HeaderMap::new());
        }
        if let Some(response) = limits.without_address(&request) {
            return ResponseFuture::refused(response);
        }
        if limits.leases.is_some() && waits_for_lease(limits, &request) {
            return self.wait(request, None);
        }
        let decision = decide(limits, &request);
        match decision.advice {
            Advice::ProceedAfter(_) => self.wait(request, Some(decision)),
            _ => match admit(limits, &mut request, &decision) {
                Ok(headers) => ResponseFuture::passed(self.inner.call(request), headers),
                Err(response) => ResponseFuture::refused(response),
            },
        }
    }
}

impl<S: Clone> RulesService<S> {
    /// Lets a request wait with the service that is ready. The next request gets a clone, which may not be ready yet.
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
        let waiting = wait(self.limits.clone(), inner, request, decision);
        ResponseFuture {
            state: State::Waiting {
                waiting: Box::pin(waiting),
            },
        }
    }
}

/// Waits for the leases of shared rules, decides, waits for the turn of the request, and calls the service.
async fn wait<S, B, O>(
    limits: Limits,
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
    match pass(&limits.inner, &mut head, decision).await {
        Ok((_, headers)) => {
            let response = service.call(head.map(|()| body)).await?;
            Ok(with_headers(response, headers))
        }
        Err(response) => Ok(response.map(|body| Either::Left(Full::new(body)))),
    }
}

/// Decides a request, unless that is done, and waits for its turn. Returns the decision and the headers of the answer;
/// otherwise the refusal.
pub(crate) async fn pass(
    limits: &Inner,
    request: &mut Request<()>,
    decision: Option<Decision>,
) -> Result<(Decision, HeaderMap), Box<Response<Bytes>>> {
    let decision = match decision {
        Some(decision) => decision,
        None if waits_for_lease(limits, request) => decide_by_new_leases(limits, request).await,
        None => decide(limits, request),
    };
    if let Advice::ProceedAfter(delay) = decision.advice {
        tokio::time::sleep(delay).await;
    }
    let headers = admit(limits, request, &decision)?;
    Ok((decision, headers))
}

/// Waits for the first leases of shared rules, and for an amount that their burst lacks. Each wait is at most that of the
/// rule.
async fn decide_by_new_leases(limits: &Inner, request: &Request<()>) -> Decision {
    let mut longest = Duration::ZERO;
    if let Some(leases) = &limits.leases {
        for (key, max_wait) in shared(limits, request) {
            leases.ready(&key, max_wait).await;
            longest = longest.max(max_wait);
        }
    }
    let decision = decide(limits, request);
    match decision.retry_after().filter(|wait| *wait <= longest) {
        Some(wait) if !decision.is_allowed => {
            tokio::time::sleep(wait).await;
            decide(limits, request)
        }
        _ => decision,
    }
}

/// Returns the keys of the request's shared rules, each with the longest wait.
fn shared<B>(limits: &Inner, request: &Request<B>) -> Vec<(String, Duration)> {
    with_request(request, |request| limits.service.shared(request))
}

fn waits_for_lease<B>(limits: &Inner, request: &Request<B>) -> bool {
    let leases = limits.leases.as_ref();
    leases.is_some_and(|leases| {
        let shared = shared(limits, request);
        shared
            .iter()
            .any(|(key, max_wait)| leases.is_new(key, *max_wait))
    })
}

fn decide<B>(limits: &Inner, request: &Request<B>) -> Decision {
    with_request(request, |request| limits.decide(request))
}

/// Marks a request that passes, and returns the headers of its answer; otherwise the refusal.
fn admit<B>(
    limits: &Inner,
    request: &mut Request<B>,
    decision: &Decision,
) -> Result<HeaderMap, Box<Response<Bytes>>> {
    if !decision.is_allowed {
        #[cfg(feature = "tonic")]
        if is_grpc(request.headers()) {
            return Err(Box::new(limits.refuse_grpc(decision).into_http()));
        }
        return Err(Box::new(limits.refuse_http(decision)));
    }
    degrade(decision, request.extensions_mut());
    let mut headers = HeaderMap::new();
    if limits.answers.on_all {
        limits.add_headers(decision, &mut headers);
    }
    Ok(headers)
}

pub(crate) fn with_headers<O>(
    response: Response<O>,
    headers: HeaderMap,
) -> Response<RefusableBody<O>> {
    let mut response = response.map(Either::Right);
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
                Poll::Ready(Ok(response.map(|body| Either::Left(Full::new(body)))))
            }
            StateProjection::Passed { future, headers } => {
                let response = ready!(future.poll(context))?;
                Poll::Ready(Ok(with_headers(response, std::mem::take(headers))))
            }
            StateProjection::Waiting { waiting } => waiting.as_mut().poll(context),
        }
    }
}
