//! HTTP connections, for few clients. Every request is a look at the whole server, except for vital ones, and for those
//! with one message, which must come in time. A request has its `CallerId` as an extension, and its identity.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, Response, StatusCode, header};
use axum::response::IntoResponse as _;
use http_body::Frame;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use crate::access::Denied;
use crate::door::Door;
use crate::guarded::Guarded;
use crate::limit::LimitTexts;
use crate::listener::Listener;
use crate::listening;
use crate::response_body::{InFlightCall, Refusal, ResponseBody};
use crate::socket::Socket;
use crate::visit::Visit;

/// Bytes of a request or an answer that are in memory at once.
const BUFFER: usize = 16 * 1024;

/// Largest number of headers in a request.
const HEADERS_MAX: usize = 64;

/// Serves pages until `stop`, then finishes the requests in progress.
pub async fn serve(
    listener: impl Into<Listener>,
    door: Arc<Door>,
    pages: Router,
    stop: CancellationToken,
) {
    let serve = move |socket, visit, stop| converse(socket, visit, pages.clone(), stop);
    listening::serve(listener, door, stop, serve).await;
}

async fn converse(
    socket: Socket,
    visit: Visit,
    pages: Router,
    stop: CancellationToken,
) -> Result<(), hyper::Error> {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // It also limits how long a connection stays open between requests.
        .header_read_timeout(visit.door.patience())
        .max_headers(HEADERS_MAX)
        .max_buf_size(BUFFER);
    let io = Guarded::new(socket, visit.clone(), None);
    let pages = service_fn(|request| answer(pages.clone(), visit.clone(), request));
    let mut serving = pin!(builder.serve_connection(TokioIo::new(io), pages));
    tokio::select! {
        served = serving.as_mut() => return served,
        () = stop.cancelled() => serving.as_mut().graceful_shutdown(),
    }
    serving.await
}

/// Answers a request of a connection by a page.
fn answer(
    mut pages: Router,
    visit: Visit,
    mut request: Request<Incoming>,
) -> impl Future<Output = Result<Response<ResponseBody<Body>>, Infallible>> + Send + use<> {
    request.extensions_mut().insert(visit.connection.caller);
    let now = visit.door.now();
    let (call, admitted) = InFlightCall::admit(visit, &mut request, now);
    let (paths, path) = (call.door().paths(), request.uri().path());
    let is_vital = paths.vital.contains(&path);
    let has_message = paths.with_one_message.contains(&path);
    let patience = call.door().patience();
    async move {
        if let Err(refusal) = admitted {
            return Ok(refused(&refusal, call));
        }
        let page = pages.call(request);
        let answer = if is_vital {
            Ok(page.await)
        } else if has_message {
            let answer = tokio::time::timeout(patience, page).await;
            Ok(answer.unwrap_or_else(|_| Ok(StatusCode::REQUEST_TIMEOUT.into_response())))
        } else {
            call.look(page).await
        };
        match answer {
            Ok(answer) => Ok(answer?.map(|body| ResponseBody::new(body, cut_off, call))),
            Err(limit) => Ok(refused(&Refusal::Limit(limit), call)),
        }
    }
}

fn refused(refusal: &Refusal, call: InFlightCall) -> Response<ResponseBody<Body>> {
    let answer = match refusal {
        Refusal::Limit(limit) => {
            call.door().refuse(limit);
            let LimitTexts { what, flag, .. } = limit.texts();
            let body = format!("too many {what}; try again ({flag})\n");
            let headers = [(header::RETRY_AFTER, "1")];
            (StatusCode::SERVICE_UNAVAILABLE, headers, body).into_response()
        }
        Refusal::Denied(denied) => {
            let body = format!("{denied}\n");
            match denied {
                Denied::NotHere | Denied::NoRole(..) => {
                    (StatusCode::FORBIDDEN, body).into_response()
                }
                Denied::Guesses(..) => (StatusCode::TOO_MANY_REQUESTS, body).into_response(),
                Denied::NoIdentity | Denied::UnknownToken => {
                    let headers = [(header::WWW_AUTHENTICATE, "Bearer")];
                    (StatusCode::UNAUTHORIZED, headers, body).into_response()
                }
            }
        }
    };
    answer.map(|body| ResponseBody::new(body, cut_off, call))
}

/// Ends an answer that its client does not read.
fn cut_off(_: u64) -> Result<Frame<Bytes>, Box<dyn std::error::Error + Send + Sync>> {
    Err("this address does not read its answers".into())
}
