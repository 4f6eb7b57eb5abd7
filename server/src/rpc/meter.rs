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

use doorward_engine::time::Time;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::{Code, Status as RpcStatus};
use tower::{Layer, Service};
use tracing::debug;

use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::metrics::calls::Method;

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
    S::Future: Unpin,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = MeteredAnswer<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let started = self.meter.clock.now();
        let path = request.uri().path();
        let method = Method::of(path);
        let unknown = (!method.is_known()).then(|| path.into());
        MeteredAnswer {
            answer: self.inner.call(request),
            meter: self.meter.clone(),
            method,
            unknown,
            started,
        }
    }
}

/// The answer to a call that is counted and timed.
#[derive(Debug)]
pub struct MeteredAnswer<F> {
    answer: F,
    meter: MeterLayer,
    method: Method,
    /// The path, if there is no such method.
    unknown: Option<Box<str>>,
    started: Time,
}

impl<F, E> Future for MeteredAnswer<F>
where
    F: Future<Output = Result<Response<Body>, E>> + Unpin,
{
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut response = std::task::ready!(Pin::new(&mut self.answer).poll(cx))?;
        if let Some(status) = malformed(&response) {
            response = status.into_http();
        }
        let code =
            RpcStatus::from_header_map(response.headers()).map_or(Code::Ok, |status| status.code());
        let MeterLayer { metrics, clock } = &self.meter;
        let took = clock.now().since(self.started);
        metrics.observe_call(self.method, code, took);
        let method = self.unknown.as_deref().unwrap_or(self.method.name());
        debug!(method, ?code, ?took, "call answered");
        Poll::Ready(Ok(response))
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
