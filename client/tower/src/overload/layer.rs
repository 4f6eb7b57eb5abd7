//! The layer of a server: rules, a lease and overload control together.
//!
//! A request passes all of them or none: if a later one refuses it, the earlier ones get back what it took. Rules decide
//! first, so a caller that is over its limit takes no room in the queue. When the service has answered, the lease and the
//! prediction are settled by the real cost.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use doorward_client::{AcquireError, RateLimiter};
use doorward_rules::answer::PROBLEM_TYPE;
use doorward_throttle::{Reason, Refusal};
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};
use tower_layer::Layer;
use tower_service::Service;

use super::call::{Cost, Head};
use super::{Overload, Permit, with_criticality};
use crate::limits::Limits;
use crate::request::is_grpc;
use crate::server::{self, RefusableBody};

/// A layer that refuses requests which the service cannot serve in time. Place it outside of slow layers, and inside of
/// those that find out who the caller is.
#[derive(Clone)]
pub struct OverloadLayer {
    overload: Overload,
    limits: Option<Limits>,
    lease: Option<RateLimiter>,
}

/// A service behind an [`OverloadLayer`].
#[derive(Clone)]
pub struct OverloadService<S> {
    inner: S,
    layer: OverloadLayer,
}

/// Amount that a request has taken from the lease. It goes back if the request is not served.
struct Taken {
    lease: Option<(RateLimiter, f64)>,
    is_served: bool,
}

impl OverloadLayer {
    /// Creates a layer.
    pub const fn new(overload: Overload) -> Self {
        Self {
            overload,
            limits: None,
            lease: None,
        }
    }

    /// Decides by rules too. Give the service no `RulesLayer` of the same limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Takes the cost of each request from a lease too, whose unit is that of the costs: first the predicted one, and at
    /// the end the rest.
    pub fn lease(mut self, lease: RateLimiter) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Takes the predicted cost from the lease.
    fn take_lease(&self, operation: &str) -> Result<Taken, Refusal> {
        let taken = |lease| Taken {
            lease,
            is_served: false,
        };
        let Some(lease) = &self.lease else {
            return Ok(taken(None));
        };
        let estimate = self.overload.predicted_cost(operation);
        match lease.try_acquire(estimate) {
            Ok(()) => Ok(taken(Some((lease.clone(), estimate)))),
            Err(error) => Err(Refusal {
                reason: Reason::Full,
                retry_after: match error {
                    AcquireError::RetryAfter { retry_after } => retry_after,
                    _ => Duration::from_secs(1),
                },
            }),
        }
    }

    async fn admit(&self, head: &Head) -> Result<(Permit, Taken), Refusal> {
        let taken = self.take_lease(&head.operation)?;
        let permit = self.overload.admit(&head.call()).await?;
        Ok((permit, taken))
    }
}

impl Taken {
    fn settle(&self, used: f64) {
        if let Some((lease, estimate)) = &self.lease {
            lease.settle(*estimate, used);
        }
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        if let (false, Some((lease, estimate))) = (self.is_served, &self.lease) {
            lease.settle(*estimate, 0.0);
        }
    }
}

impl<S> Layer<S> for OverloadLayer {
    type Service = OverloadService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        OverloadService {
            inner,
            layer: self.clone(),
        }
    }
}

impl<S, B, O> Service<Request<B>> for OverloadService<S>
where
    S: Service<Request<B>, Response = Response<O>> + Clone + Send + 'static,
    S::Future: Send,
    B: Send + 'static,
    O: Send + 'static,
{
    type Response = Response<RefusableBody<O>>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        // The service is asked when the request is admitted.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(serve(self.layer.clone(), self.inner.clone(), request))
    }
}

/// Lets a request pass all parts, serves it, and settles its cost.
async fn serve<S, B, O>(
    layer: OverloadLayer,
    mut service: S,
    request: Request<B>,
) -> Result<Response<RefusableBody<O>>, S::Error>
where
    S: Service<Request<B>, Response = Response<O>>,
{
    let (parts, body) = request.into_parts();
    let head = Head::read(&parts);
    // Only the head is shared with a wait, because a body need not be `Sync`.
    let mut request = Request::from_parts(parts, ());
    let mut ruled = None;
    let mut headers = HeaderMap::new();
    if let Some(limits) = &layer.limits {
        match server::pass(&limits.inner, &mut request, None).await {
            Ok((decision, passed)) => (ruled, headers) = (Some((&limits.inner, decision)), passed),
            Err(response) => return Ok(response.map(|body| Either::Left(Full::new(body)))),
        }
    }
    let (permit, mut taken) = match layer.admit(&head).await {
        Ok(admitted) => admitted,
        Err(refusal) => {
            if let Some((limits, decision)) = &ruled {
                limits.undo(&request, decision);
            }
            let response = answer(&refusal, is_grpc(request.headers()));
            return Ok(response.map(|body| Either::Left(Full::new(body))));
        }
    };
    taken.is_served = true;
    let cost = Cost::new();
    let extensions = request.extensions_mut();
    extensions.insert(cost.clone());
    extensions.insert(head.criticality);
    let served = with_criticality(head.criticality, async {
        poll_fn(|context| service.poll_ready(context)).await?;
        service.call(request.map(|()| body)).await
    });
    let response = served.await;
    let used = permit.end(cost.get());
    taken.settle(used);
    Ok(server::with_headers(response?, headers))
}

/// Makes the answer to a refused request: 503, or UNAVAILABLE with RetryInfo.
fn answer(refusal: &Refusal, is_grpc: bool) -> Response<Bytes> {
    let detail = match refusal.reason {
        Reason::Full => "the service is overloaded",
        Reason::PushedOut => "a more critical request took the place of this one",
        Reason::TooLate => "the service cannot answer in time",
    };
    if is_grpc {
        let mut details = ErrorDetails::new();
        details.set_retry_info(Some(refusal.retry_after));
        return Status::with_error_details(Code::Unavailable, detail, details).into_http();
    }
    let problem = format!("{{\"title\":\"overloaded\",\"status\":503,\"detail\":\"{detail}\"}}");
    let mut response = Response::new(problem.into());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let seconds = refusal.retry_after.as_secs_f64().ceil();
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from(seconds as u64));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_TYPE));
    response
}
