//! Errors as documents of RFC 9457, and waits of refused callers.

use std::time::Duration;

use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use doorward::rules::answer::PROBLEM_TYPE;
use serde::Serialize;

use crate::clock;

/// Longest body of a request, in bytes.
pub const BODY_BYTES_MAX: usize = 64 * 1024;

/// Longest random addition to a wait.
const JITTER_MAX: Duration = Duration::from_secs(1);

/// Body of a request, as read or refused.
pub(super) type Body<T> = Result<Json<T>, JsonRejection>;

/// An error: its status, and the remedy.
#[derive(Debug)]
pub(super) struct Problem {
    status: StatusCode,
    detail: String,
    retry_after: Option<Duration>,
}

#[derive(Serialize)]
struct Document<'a> {
    title: &'a str,
    status: u16,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<f64>,
}

impl Problem {
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self {
            status,
            detail: detail.into(),
            retry_after: None,
        }
    }

    /// Makes the problem of a body with an invalid value.
    pub(super) fn invalid(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Sets the time after which the request may succeed.
    pub(super) fn retry_in(self, wait: Option<Duration>) -> Self {
        let retry_after = wait.map(|wait| wait.saturating_add(jitter(wait)));
        Self {
            retry_after,
            ..self
        }
    }
}

/// The problem of a body that was not read, or does not fit. An invalid value is a bad request, too.
impl From<JsonRejection> for Problem {
    fn from(rejection: JsonRejection) -> Self {
        match rejection.status() {
            status @ StatusCode::PAYLOAD_TOO_LARGE => {
                let detail = format!("the body has more than {BODY_BYTES_MAX} bytes");
                Self::new(status, detail)
            }
            StatusCode::UNPROCESSABLE_ENTITY => Self::invalid(rejection.body_text()),
            status => Self::new(status, rejection.body_text()),
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = Json(Document {
            title: self.status.canonical_reason().unwrap_or_default(),
            status: self.status.as_u16(),
            detail: &self.detail,
            retry_after_seconds: self.retry_after.map(|wait| wait.as_secs_f64()),
        });
        let mut response = (self.status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_TYPE));
        if let Some(wait) = self.retry_after {
            headers.insert(header::RETRY_AFTER, whole_seconds(wait).into());
        }
        response
    }
}

/// Returns a random addition to a wait, so that callers do not return together. At most the wait itself.
pub(super) fn jitter(wait: Duration) -> Duration {
    wait.min(JITTER_MAX).mul_f64(clock::chance())
}

/// Returns the value of `Retry-After`.
pub(super) fn whole_seconds(wait: Duration) -> u64 {
    let part = u64::from(wait.subsec_nanos() > 0);
    wait.as_secs().saturating_add(part).max(1)
}
