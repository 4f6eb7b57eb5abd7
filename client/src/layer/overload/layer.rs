//! The layer of a server: rules, a lease and overload control together.
//!
//! A request passes all of them or none: if a later one refuses it, or its caller goes away, the earlier ones get back
//! what it took. Rules decide first, so a caller that is over its limit takes no room in the queue. When the service
//! has answered, the lease and the prediction are settled by the real cost.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use tower_layer::Layer;
use tower_service::Service;

use super::call::{Cost, Head};
use super::{InFlight, Overload, with_criticality};
use crate::Refusal;
use crate::layer::clock;
use crate::layer::leases::LeaseOfWork;
use crate::layer::limits::{Inner, Limits};
use crate::layer::request::Decided;
#[cfg(feature = "tonic")]
use crate::layer::request::is_grpc;
use crate::layer::server::{self, RefusableBody};
use crate::rules::Decision;
use crate::rules::answer::PROBLEM_TYPE;

/// Shortest time after which a refused caller comes back.
const RETRY_MIN: Duration = Duration::from_secs(1);

/// A layer that refuses requests which the service cannot serve in time. Place it outside of slow layers, and inside of
/// those that find out who the caller is.
#[derive(Clone)]
pub struct OverloadLayer {
    overload: Overload,
    limits: Option<Limits>,
    lease: Option<Arc<dyn LeaseOfWork>>,
}

/// A service behind an [`OverloadLayer`].
#[derive(Clone)]
pub struct OverloadService<S> {
    inner: S,
    layer: OverloadLayer,
}

/// Count of a request by the rules. It is undone if the request is not served.
struct Ruled<'a> {
    limits: &'a Inner,
    request: &'a Request<()>,
    decision: Decision,
    is_served: bool,
}

/// Refusal of a request that the rules allow.
enum Refused {
    Overload(Refusal),
    Lease(Duration),
}

debug_by_name!(OverloadLayer, @S OverloadService<S>);

impl OverloadLayer {
    /// Creates a layer.
    pub const fn new(overload: Overload) -> Self {
        Self {
            overload,
            limits: None,
            lease: None,
        }
    }

    /// Decides by rules too. A request that a `RulesLayer` of the same limits has decided is not counted again.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Takes the cost of each request from a lease too, whose unit is that of the costs: first the predicted one, and
    /// at the end the rest. A lease that is not in debt admits a request of any cost.
    #[cfg(feature = "leases")]
    pub fn lease(mut self, lease: crate::RateLimiter) -> Self {
        self.lease = Some(Arc::new(lease));
        self
    }

    /// Waits for the throttler, and then takes the predicted cost from the lease. So no waiting request holds an amount
    /// that a more critical one needs.
    async fn admit(&self, head: &Head, cost: &Cost) -> Result<InFlight, Refused> {
        let admitted = self.overload.admit(&head.call()).await;
        let permit = admitted.map_err(Refused::Overload)?;
        let Some(lease) = &self.lease else {
            return Ok(InFlight::new(permit, None, cost.clone()));
        };
        let paid = permit.predicted_cost();
        // A lease that is not in debt pays for any request, and later ones wait until it is paid back. Otherwise, a
        // cost above the burst would never be paid, and its prediction never be corrected.
        let first = paid.min(1.0);
        if let Err(retry_after) = lease.take(first) {
            self.overload.shared.meters.count_no_lease(head.criticality);
            return Err(Refused::Lease(retry_after.unwrap_or(RETRY_MIN)));
        }
        lease.settle(first, paid);
        let paid = Some((lease.clone(), paid));
        Ok(InFlight::new(permit, paid, cost.clone()))
    }
}

impl Ruled<'_> {
    fn keep(mut self) {
        self.is_served = true;
    }
}

impl Drop for Ruled<'_> {
    fn drop(&mut self) {
        if !self.is_served {
            self.limits.undo(self.request, &self.decision);
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
    let mut decision = None;
    let mut headers = HeaderMap::new();
    let limits = layer.limits.as_ref().map(|limits| &*limits.inner);
    if let Some(limits) = limits
        && !Decided::is_marked(request.extensions_mut(), limits.number)
    {
        if let Some(response) = limits.without_address(&request) {
            return Ok(response.map(|body| Either::Left(Full::new(body))));
        }
        match server::pass(limits, &mut request, None).await {
            Ok(passed) => (decision, headers) = (Some(passed.0), passed.1),
            Err(response) => return Ok(response.map(|body| Either::Left(Full::new(body)))),
        }
    }
    let ruled = limits.zip(decision).map(|(limits, decision)| Ruled {
        limits,
        request: &request,
        decision,
        is_served: false,
    });
    let cost = Cost::new();
    let in_flight = match layer.admit(&head, &cost).await {
        Ok(in_flight) => in_flight,
        Err(refused) => {
            let response = answer(&refused, request.headers());
            return Ok(response.map(|body| Either::Left(Full::new(body))));
        }
    };
    ruled.into_iter().for_each(Ruled::keep);
    let extensions = request.extensions_mut();
    extensions.insert(cost);
    extensions.insert(in_flight.clone());
    extensions.insert(head.criticality);
    let served = with_criticality(head.criticality, async {
        poll_fn(|context| service.poll_ready(context)).await?;
        service.call(request.map(|()| body)).await
    });
    let response = served.await?;
    in_flight.answer(response.status().is_server_error());
    Ok(server::with_headers(response, headers))
}

/// Makes the answer to a refused request: 503, or UNAVAILABLE with RetryInfo.
#[cfg_attr(
    not(feature = "tonic"),
    expect(unused_variables, reason = "only gRPC has them")
)]
fn answer(refused: &Refused, headers: &HeaderMap) -> Response<Bytes> {
    let (detail, retry_after) = match refused {
        Refused::Overload(refusal) => {
            let wait = refusal.retry_after.unwrap_or(RETRY_MIN);
            (refusal.to_string(), wait)
        }
        Refused::Lease(retry_after) => {
            let spread = clock::part_of(RETRY_MIN * 2);
            (
                "the lease of the service is used up".to_owned(),
                *retry_after.max(&RETRY_MIN) + spread,
            )
        }
    };
    #[cfg(feature = "tonic")]
    if is_grpc(headers) {
        return crate::layer::grpc::overloaded(&detail, retry_after);
    }
    let problem = format!("{{\"title\":\"overloaded\",\"status\":503,\"detail\":\"{detail}\"}}");
    let mut response = Response::new(problem.into());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let seconds = retry_after.as_secs_f64().ceil();
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from(seconds as u64));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_TYPE));
    response
}
