//! Counts and times every call, and corrects one code.
//!
//! It wraps all services. The code of a call that fails at once is in its headers. A call that streams counts as OK,
//! because the meter does not see its end.
//!
//! A message that is not valid Protobuf (for instance with a text that is not UTF-8) is the caller's mistake, so its
//! code is `INVALID_ARGUMENT`. The codec calls it `INTERNAL`, which reads like a bug of the server and makes callers
//! retry. Its error has a [`DecodeError`] as its source.

use std::error::Error;
use std::time::Duration;

use doorward_clock::Instant;
use prost::DecodeError;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::{Code, Status as RpcStatus};
use tracing::debug;

use crate::calls::CallService;
use crate::request_body::RequestBody;

/// Services whose calls are counted and timed.
#[derive(Debug)]
pub struct Metered<S, O> {
    services: S,
    methods: &'static [&'static str],
    observe: O,
}

impl<S, O> Metered<S, O> {
    /// Reports the position of the method among `methods` (none: any other one), the code and the duration of each call
    /// to `observe`.
    pub fn new(services: S, methods: &'static [&'static str], observe: O) -> Self {
        Self {
            services,
            methods,
            observe,
        }
    }
}

impl<S, O, B> CallService<B> for Metered<S, O>
where
    S: CallService<B>,
    O: Fn(Option<usize>, Code, Duration) + Send + Sync + 'static,
    B: Send + 'static,
{
    fn answer(
        &self,
        request: Request<RequestBody<B>>,
    ) -> impl Future<Output = Response<Body>> + Send {
        let started = Instant::now();
        let path = request.uri().path();
        let method = self.methods.iter().position(|method| *method == path);
        let unknown: Option<Box<str>> = method.is_none().then(|| path.into());
        let answer = self.services.answer(request);
        async move {
            let mut response = answer.await;
            let failure = response.extensions().get::<RpcStatus>();
            if let Some(status) = failure.and_then(decode_failure) {
                response = status.into_http();
            }
            let code = RpcStatus::from_header_map(response.headers())
                .map_or(Code::Ok, |status| status.code());
            let took = started.elapsed();
            (self.observe)(method, code, took);
            let known = method.and_then(|method| self.methods.get(method));
            let known = known.map(|path| path.trim_start_matches('/'));
            let method = unknown.as_deref().or(known);
            debug!(method, ?code, ?took, "call answered");
            response
        }
    }
}

/// Returns the corrected status, if `status` says that the codec could not read a message.
pub fn decode_failure(status: &RpcStatus) -> Option<RpcStatus> {
    let error = status.source()?.downcast_ref::<DecodeError>()?;
    Some(RpcStatus::invalid_argument(format!(
        "the request is no valid message, and its texts must be UTF-8: {error}"
    )))
}
