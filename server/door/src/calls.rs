//! Calls of a gRPC connection: counted for their caller, and received before work on them starts.

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;

use axum::body::Bytes;
use http_body::Frame;
use hyper::body::Incoming;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response};

use crate::overload;
use crate::request_body::RequestBody;
use crate::response_body::{InFlightCall, Refusal, ResponseBody};
use crate::visit::Visit;

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

/// Answers a call of a connection.
pub(crate) fn answer<S: CallService<Incoming>>(
    services: Arc<S>,
    visit: Visit,
    mut request: Request<Incoming>,
) -> impl Future<Output = Result<Response<ResponseBody<Body>>, Infallible>> + Send + use<S> {
    let now = visit.door.now();
    let (call, mut admitted) = InFlightCall::admit(visit.clone(), &mut request, now);
    let (paths, path) = (visit.door.paths(), request.uri().path());
    let looks = paths.looks.contains(&path);
    // Its message may be large, and is not read then.
    if admitted.is_ok()
        && looks
        && let Some(limit) = call.refusal_to_look(now)
    {
        admitted = Err(Refusal::Limit(limit));
    }
    let waits = looks || paths.with_one_message.contains(&path);
    let is_large = paths.large.contains(&path);
    let mut request = request.map(|body| RequestBody::new(body, visit, is_large));
    async move {
        if let Err(refusal) = admitted {
            return Ok(refused(refusal, call));
        }
        if waits && let Err(status) = poll_fn(|cx| request.body_mut().poll_only(cx)).await {
            return Ok(tracked(status.into_http(), call));
        }
        if !looks {
            return Ok(tracked(services.answer(request).await, call));
        }
        let counted = match request.body().count_only(0) {
            Ok(counted) => counted,
            Err(status) => return Ok(tracked(status.into_http(), call)),
        };
        let look = async move {
            let _counted = counted;
            services.answer(request).await
        };
        // A look is rare, and its future is large.
        match Box::pin(call.look(look)).await {
            Ok(answer) => Ok(tracked(answer, call)),
            Err(limit) => Ok(refused(Refusal::Limit(limit), call)),
        }
    }
}

fn refused(refusal: Refusal, call: InFlightCall) -> Response<ResponseBody<Body>> {
    let status = match refusal {
        Refusal::Denied(denied) => denied.status(),
        Refusal::Limit(limit) => {
            call.pause();
            call.door().exhausted(&limit)
        }
    };
    tracked(status.into_http(), call)
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
