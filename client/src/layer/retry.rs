//! Retries of refused requests: exponential backoff with full jitter, within a budget, and not before the server says.
//!
//! Full jitter is a wait that is uniform between 0 and the backoff, as
//! [AWS describes](https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/). The budget bounds
//! retries to a part of the requests, so a failing server gets no storm.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderMap, Request, Response, StatusCode};
use tower::retry::Policy;
use tower::retry::budget::{Budget, TpsBudget};

use crate::Refusal;
use crate::layer::clock;

/// Settings of retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryConfig {
    /// Largest number of retries of one request.
    pub retries_max: u32,
    /// Longest wait before the first retry, if the server names none; it doubles with each retry.
    pub base: Duration,
    /// Upper bound of that wait.
    pub cap: Duration,
    /// Longest wait that a server may ask for. A request that would wait longer is not repeated.
    pub told_max: Duration,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            retries_max: 4,
            base: Duration::from_millis(100),
            cap: Duration::from_secs(10),
            told_max: Duration::from_secs(30),
        }
    }
}

/// A policy for [`tower::retry::RetryLayer`]: it repeats requests after HTTP 429 and 503, and gRPC's UNAVAILABLE, and
/// RESOURCE_EXHAUSTED with RetryInfo. Use it for requests that may be sent twice: a proxy answers 503 also after a
/// server has begun. An answer whose `Retry-After` is a date is not repeated. Waits are at least those of `Retry-After`
/// and RetryInfo. Clones share one budget: a fifth of the requests of ten seconds, and ten a second.
#[derive(Clone, Debug)]
pub struct RetryPolicy {
    config: RetryConfig,
    budget: Arc<TpsBudget>,
    retries: u32,
}

impl RetryPolicy {
    /// Creates a policy with a budget of its own.
    pub fn new(config: RetryConfig) -> Self {
        Self {
            config,
            budget: Arc::new(TpsBudget::new(Duration::from_secs(10), 10, 0.2)),
            retries: 0,
        }
    }

    /// Returns the wait before the next retry, and counts it. `None`: no retry. Programs whose requests cannot be
    /// cloned, such as those of tonic, call this with the answer's [`Refusal`] and wait themselves.
    pub fn next_wait(&mut self, refusal: Option<Refusal>) -> Option<Duration> {
        let Some(refusal) = refusal else {
            self.budget.deposit();
            return None;
        };
        let told = refusal.retry_after.unwrap_or_default();
        if self.retries >= self.config.retries_max
            || told > self.config.told_max
            || !self.budget.withdraw()
        {
            return None;
        }
        let doubled = self.config.base.saturating_mul(1 << self.retries.min(20));
        self.retries += 1;
        Some(told + clock::part_of(doubled.min(self.config.cap)))
    }
}

impl Refusal {
    /// Returns the refusal that a response of HTTP is, or one of gRPC without a message. None: it is none, or may not be
    /// repeated.
    pub fn of_response(status: StatusCode, headers: &HeaderMap) -> Option<Self> {
        match status {
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                let retry_after = retry_after(headers);
                let is_unread = retry_after.is_none() && headers.contains_key(RETRY_AFTER);
                (!is_unread).then_some(Self::over(retry_after))
            }
            #[cfg(feature = "tonic")]
            _ => Self::of_status(&tonic::Status::from_header_map(headers)?),
            #[cfg(not(feature = "tonic"))]
            _ => None,
        }
    }
}

/// Returns `Retry-After` in seconds. A date is not read, because the client's clock may be wrong.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    text.trim().parse().ok().map(Duration::from_secs)
}

impl<B: Clone, O, E> Policy<Request<B>, Response<O>, E> for RetryPolicy {
    type Future = Pin<Box<dyn Future<Output = ()> + Send>>;

    fn retry(
        &mut self,
        _request: &mut Request<B>,
        result: &mut Result<Response<O>, E>,
    ) -> Option<Self::Future> {
        // After an error of the connection, the server may have begun.
        let response = result.as_ref().ok()?;
        // A layer of this program refused it: the request was not sent, and has waited for as long as it may.
        if response.extensions().get::<Refusal>().is_some() {
            return None;
        }
        let wait = self.next_wait(Refusal::of_response(response.status(), response.headers()))?;
        Some(Box::pin(tokio::time::sleep(wait)))
    }

    fn clone_request(&mut self, request: &Request<B>) -> Option<Request<B>> {
        Some(request.clone())
    }
}
