//! Calls of a gRPC connection: counted for their caller, and received before work on them starts.

use std::convert::Infallible;
use std::future::{poll_fn, ready};
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Bytes;
use http_body::Frame;
use hyper::body::Incoming;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response};

use crate::connection::Connection;
use crate::door::Door;
use crate::limit::Limit;
use crate::overload;
use crate::request_body::RequestBody;
use crate::response_body::{InFlightCall, ResponseBody};

/// A service that answers calls. All connections share one.
///
/// A request is large. An implementation inspects it, or passes it on, before the future starts, because a future keeps
/// all that it is given.
pub trait CallService<B>: Send + Sync + 'static {
    /// Answers a call. A failure is an answer too.
    fn answer(
        &self,
        request: Request<RequestBody<B>>,
    ) -> impl Future<Output = Response<Body>> + Send;
}

/// The services, as one connection calls them.
#[derive(Debug)]
pub(crate) struct ConnectionCalls<S> {
    pub(crate) services: Arc<S>,
    pub(crate) door: Arc<Door>,
    pub(crate) connection: Arc<Connection>,
}

impl<S> hyper::service::Service<Request<Incoming>> for ConnectionCalls<S>
where
    S: CallService<Incoming>,
{
    type Response = Response<ResponseBody<Body>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        let paths = self.door.paths();
        let is_busy = !paths.silent.contains(&request.uri().path());
        let now = self.door.now();
        let call = InFlightCall::begin(&self.door, &self.connection, is_busy, now);
        let path = request.uri().path();
        if let Some(limit) = call.refusal(path, now) {
            return Box::pin(ready(Ok(refused(&limit, call))));
        }
        match self.door.prove(&self.connection, path, request.headers()) {
            Ok(proof) => proof.extend(request.extensions_mut()),
            Err(denied) => {
                return Box::pin(ready(Ok(tracked(denied.status().into_http(), call))));
            }
        }
        let path = request.uri().path();
        let looks = paths.looks.contains(&path);
        // Its message may be large, and is not read then.
        if looks && let Some(limit) = call.refusal_to_look(now) {
            return Box::pin(ready(Ok(refused(&limit, call))));
        }
        let waits = looks || paths.with_one_message.contains(&path);
        let is_large = paths.large.contains(&path);
        let mut request = request.map(|body| {
            let (door, connection) = (Arc::clone(&self.door), Arc::clone(&self.connection));
            RequestBody::new(body, door, connection, is_large)
        });
        let services = Arc::clone(&self.services);
        Box::pin(async move {
            if waits && let Err(status) = poll_fn(|cx| request.body_mut().poll_only(cx)).await {
                return Ok(tracked(status.into_http(), call));
            }
            if !looks {
                return Ok(tracked(services.answer(request).await, call));
            }
            if let Err(status) = request.body_mut().count_waiting() {
                return Ok(tracked(status.into_http(), call));
            }
            let look = async move { services.answer(request).await };
            // A look is rare, and its future is large.
            match Box::pin(call.look(look)).await {
                Ok(answer) => Ok(tracked(answer, call)),
                Err(limit) => Ok(refused(&limit, call)),
            }
        })
    }
}

fn refused(limit: &Limit, call: InFlightCall) -> Response<ResponseBody<Body>> {
    call.pause();
    tracked(call.door().exhausted(limit).into_http(), call)
}

fn tracked(answer: Response<Body>, call: InFlightCall) -> Response<ResponseBody<Body>> {
    answer.map(|body| ResponseBody::new(body, unread_too_much, call))
}

/// Returns the last frame of an answer that its caller does not read.
fn unread_too_much(number: u64) -> Result<Frame<Bytes>, Box<dyn std::error::Error + Send + Sync>> {
    let status = overload::unread(number);
    let mut trailers = HeaderMap::new();
    status.add_header(&mut trailers)?;
    Ok(Frame::trailers(trailers))
}
