//! Refusals as responses of HTTP.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use crate::layer::clock;
use crate::layer::limits::{Inner, JITTER_MAX};
use crate::rules::answer::PROBLEM_TYPE;
use crate::rules::{Advice, Decision, Why};

impl Inner {
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

/// Returns the time to come back if there is no lease: no rule knows one.
pub(crate) fn without_lease(decision: &Decision) -> Option<Duration> {
    let is_refused = !decision.is_allowed && decision.why == Why::NoLease;
    is_refused.then(|| Duration::from_secs(1) + clock::part_of(JITTER_MAX))
}
