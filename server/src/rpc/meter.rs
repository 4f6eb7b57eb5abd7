//! Counts and times every call, and corrects one code.
//!
//! It wraps all services. The code of a call that fails at once is in its headers. A call that streams counts as OK,
//! because the meter does not see its end.
//!
//! A message that is not valid Protobuf (for instance with a text that is not UTF-8) is the caller's mistake, so its
//! code is `INVALID_ARGUMENT`. The codec calls it `INTERNAL`, which reads like a bug of the server and makes callers
//! retry.

use std::sync::Arc;

use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::{Code, Status as RpcStatus};
use tracing::debug;

use crate::clock::Clock;
use crate::door::calls::CallService;
use crate::door::request_body::RequestBody;
use crate::metrics::Metrics;
use crate::metrics::calls::Method;

/// Beginning of the codec's message.
const DECODE_FAILURE: &str = "failed to decode Protobuf message";

/// Services whose calls are counted and timed.
#[derive(Debug)]
pub struct Metered<S> {
    services: S,
    metrics: Arc<Metrics>,
    clock: Clock,
}

impl<S> Metered<S> {
    /// Reports to `metrics`.
    pub fn new(services: S, metrics: Arc<Metrics>, clock: Clock) -> Self {
        Self {
            services,
            metrics,
            clock,
        }
    }
}

impl<S, B> CallService<B> for Metered<S>
where
    S: CallService<B>,
    B: Send + 'static,
{
    fn answer(
        &self,
        request: Request<RequestBody<B>>,
    ) -> impl Future<Output = Response<Body>> + Send {
        let started = self.clock.now();
        let path = request.uri().path();
        let method = Method::of(path);
        let unknown: Option<Box<str>> = (!method.is_known()).then(|| path.into());
        let answer = self.services.answer(request);
        async move {
            let mut response = answer.await;
            if let Some(status) = malformed(&response) {
                response = status.into_http();
            }
            let code = RpcStatus::from_header_map(response.headers())
                .map_or(Code::Ok, |status| status.code());
            let took = self.clock.now().since(started);
            self.metrics.observe_call(method, code, took);
            let method = unknown.as_deref().unwrap_or(method.name());
            debug!(method, ?code, ?took, "call answered");
            response
        }
    }
}

/// Returns the corrected status, if the codec could not read the request.
fn malformed(response: &Response<Body>) -> Option<RpcStatus> {
    decode_failure(response.extensions().get::<RpcStatus>()?)
}

/// Returns the corrected status, if `status` says that the codec could not read a message.
pub(super) fn decode_failure(status: &RpcStatus) -> Option<RpcStatus> {
    let detail = status.message().strip_prefix(DECODE_FAILURE)?;
    (status.code() == Code::Internal).then(|| {
        RpcStatus::invalid_argument(format!(
            "the request is no valid Protobuf message{detail}; texts must be UTF-8"
        ))
    })
}
