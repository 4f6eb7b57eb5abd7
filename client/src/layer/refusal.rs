//! Refusals as responses of HTTP.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode};
#[cfg(feature = "tonic")]
use tonic_types::StatusExt as _;

use crate::Refusal;
use crate::layer::clock;
use crate::layer::limits::{Inner, JITTER_MAX};
use crate::layer::request::{peer, with_request};
use crate::rules::answer::PROBLEM_TYPE;
use crate::rules::{Advice, Decision, Why};

/// Shortest time after which a caller comes back that is not above a limit of its own.
const RETRY_MIN: Duration = Duration::from_secs(1);

/// Text for a program whose server does not tell the addresses of callers.
const NO_ADDRESS: &str = "a limit is by the caller's address, and the request has none: serve axum's router by \
                          `into_make_service_with_connect_info::<SocketAddr>()`, put a `SocketAddr` into the \
                          extensions of each request, or behind a Unix socket take the address from a header; until then, all callers share one limit";

impl Inner {
    /// Tells that a request lacks the address that a limit is by: once in the log, and each time in a metric. In a debug
    /// build, the request fails with the text. Returns its response.
    pub(crate) fn without_address<B>(&self, request: &Request<B>) -> Option<Box<Response<Bytes>>> {
        let has_address = peer(request.extensions()).is_some();
        if has_address || !with_request(request, |request| self.service.lacks_address(request)) {
            return None;
        }
        let domain = self.service.domain().to_owned();
        metrics::counter!("doorward_requests_without_address_total", "domain" => domain)
            .increment(1);
        if !self.has_told.swap(true, Ordering::Relaxed) {
            tracing::error!("{NO_ADDRESS}");
        }
        #[cfg(feature = "tonic")]
        if crate::layer::request::is_grpc(request.headers()) && cfg!(debug_assertions) {
            return Some(Box::new(tonic::Status::internal(NO_ADDRESS).into_http()));
        }
        let mut response = Response::new(Bytes::from_static(NO_ADDRESS.as_bytes()));
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        cfg!(debug_assertions).then(|| Box::new(response))
    }

    /// Returns the response to a refused request of HTTP.
    pub(crate) fn refuse_http(&self, decision: &Decision) -> Response<Bytes> {
        let mut response = Response::new(Bytes::new());
        let status = decision.http_status().map(StatusCode::from_u16);
        *response.status_mut() = match status {
            Some(Ok(status)) => status,
            Some(Err(_)) | None => StatusCode::TOO_MANY_REQUESTS,
        };
        match (decision.advice, &self.answers.redirect_to) {
            (Advice::Drop, _) => {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
                return response;
            }
            (Advice::Redirect, Some(location)) => {
                *response.status_mut() = StatusCode::TEMPORARY_REDIRECT;
                response.headers_mut().insert(LOCATION, location.clone());
            }
            _ => {
                let kind = HeaderValue::from_static(PROBLEM_TYPE);
                response.headers_mut().insert(CONTENT_TYPE, kind);
                *response.body_mut() = decision.problem().unwrap_or_default().into();
            }
        }
        self.add_headers(decision, response.headers_mut());
        response
    }

    /// Adds `RateLimit` and the others.
    pub(crate) fn add_headers(&self, decision: &Decision, headers: &mut HeaderMap) {
        for (name, value) in decision.headers(clock::part_of(JITTER_MAX)) {
            // The names are valid, and the values are printable.
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                headers.insert(name, value);
            }
        }
        if let Some(delay) = without_lease(decision) {
            let seconds = delay.as_secs_f64().ceil();
            headers.insert(RETRY_AFTER, HeaderValue::from(seconds as u64));
        }
    }
}

/// Returns the response to a request that overload control refuses.
pub(crate) fn overloaded(refusal: &Refusal, headers: &HeaderMap) -> Box<Response<Bytes>> {
    let wait = refusal.retry_after.unwrap_or(RETRY_MIN);
    unavailable(&refusal.to_string(), wait, headers)
}

/// Returns the response to a request that the program's own lease does not allow. Callers of a service learn no name of it.
/// The refusal is in the extensions: by it a client tells its own refusal from the server's.
pub(crate) fn lease_used_up(refusal: Refusal, headers: &HeaderMap) -> Box<Response<Bytes>> {
    let wait = refusal.retry_after.unwrap_or_default().max(RETRY_MIN);
    let wait = wait + clock::part_of(RETRY_MIN * 2);
    let mut response = unavailable("the lease of the service is used up", wait, headers);
    response.extensions_mut().insert(refusal);
    response
}

/// Makes the answer 503, or UNAVAILABLE with RetryInfo. `headers`: the request's.
#[cfg_attr(
    not(feature = "tonic"),
    expect(unused_variables, reason = "only gRPC has them")
)]
fn unavailable(detail: &str, wait: Duration, headers: &HeaderMap) -> Box<Response<Bytes>> {
    #[cfg(feature = "tonic")]
    if crate::layer::request::is_grpc(headers) {
        let mut details = tonic_types::ErrorDetails::new();
        details.set_retry_info(Some(wait));
        let code = tonic::Code::Unavailable;
        let status = tonic::Status::with_error_details(code, detail, details);
        return Box::new(status.into_http());
    }
    let problem = serde_json::json!({"title": "overloaded", "status": 503, "detail": detail});
    let mut response = Response::new(problem.to_string().into());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let seconds = HeaderValue::from(wait.as_secs_f64().ceil() as u64);
    response.headers_mut().insert(RETRY_AFTER, seconds);
    let kind = HeaderValue::from_static(PROBLEM_TYPE);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    Box::new(response)
}

/// Returns the time to come back if there is no lease: no rule knows one.
pub(crate) fn without_lease(decision: &Decision) -> Option<Duration> {
    let is_refused = !decision.is_allowed && decision.why == Why::NoLease;
    is_refused.then(|| Duration::from_secs(1) + clock::part_of(JITTER_MAX))
}
