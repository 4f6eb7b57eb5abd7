//! Counts and times every call, and sets one code right.
//!
//! A layer around all services. The code of a call that fails at once stands in its headers; one
//! that streams is counted as OK, since its end is not seen here.
//!
//! The code that is set right: a message that is no valid Protobuf (a text that is not UTF-8, for
//! instance) is the caller's mistake, hence `INVALID_ARGUMENT`, but the codec calls it `INTERNAL`,
//! which reads like a bug of the server and makes callers retry.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::{Code, Status as RpcStatus};
use tower::{Layer, Service};
use tracing::debug;

use crate::clock::Clock;
use crate::metrics::Metrics;

/// What the codec's message starts with.
const DECODE_FAILURE: &str = "failed to decode Protobuf message";

/// Wraps services in a [`Metered`].
#[derive(Clone, Debug)]
pub struct MeterLayer {
    metrics: Arc<Metrics>,
    clock: Clock,
}

impl MeterLayer {
    /// A layer that reports to `metrics`.
    pub fn new(metrics: Arc<Metrics>, clock: Clock) -> Self {
        Self { metrics, clock }
    }
}

impl<S> Layer<S> for MeterLayer {
    type Service = Metered<S>;

    fn layer(&self, inner: S) -> Metered<S> {
        Metered {
            inner,
            meter: self.clone(),
        }
    }
}

/// A service whose calls are counted and timed.
#[derive(Clone, Debug)]
pub struct Metered<S> {
    inner: S,
    meter: MeterLayer,
}

impl<S, B> Service<Request<B>> for Metered<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let path = request.uri().path().to_owned();
        let MeterLayer { metrics, clock } = self.meter.clone();
        let started = clock.now();
        let answer = self.inner.call(request);
        Box::pin(async move {
            let mut response = answer.await?;
            if let Some(status) = malformed(&response) {
                response = status.into_http();
            }
            let code = RpcStatus::from_header_map(response.headers())
                .map_or(Code::Ok, |status| status.code());
            let took = clock.now().since(started);
            metrics.observe_call(&path, code, took);
            debug!(method = path, ?code, ?took, "call answered");
            Ok(response)
        })
    }
}

/// What to answer instead, if the codec could not read the request.
fn malformed(response: &Response<Body>) -> Option<RpcStatus> {
    decode_failure(response.extensions().get::<RpcStatus>()?)
}

/// What a status should be, if it says that the codec could not read a message.
pub(super) fn decode_failure(status: &RpcStatus) -> Option<RpcStatus> {
    let detail = status.message().strip_prefix(DECODE_FAILURE)?;
    (status.code() == Code::Internal).then(|| {
        RpcStatus::invalid_argument(format!(
            "the request is no valid Protobuf message{detail}; texts must be UTF-8"
        ))
    })
}
