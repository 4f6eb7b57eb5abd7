//! HTTP connections, for few clients. Every request is a look at the whole server, except for vital ones, and for those
//! with one message, which must come in time. A request has its `CallerId` as an extension, and its identity.

use std::convert::Infallible;
use std::future::ready;
use std::pin::{Pin, pin};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{Request, Response, StatusCode, header};
use axum::response::IntoResponse as _;
use http_body::Frame;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio_util::sync::CancellationToken;
use tower_service::Service;

use crate::access::Denied;
use crate::connection::Connection;
use crate::door::Door;
use crate::guarded::Guarded;
use crate::limit::{Limit, LimitTexts};
use crate::listener::Listener;
use crate::listening;
use crate::response_body::{InFlightCall, ResponseBody};
use crate::socket::Socket;

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
    let serve = move |socket, door, connection, stop| {
        converse(socket, door, connection, pages.clone(), stop)
    };
    listening::serve(listener, door, stop, serve).await;
}

async fn converse(
    socket: Socket,
    door: Arc<Door>,
    connection: Arc<Connection>,
    pages: Router,
    stop: CancellationToken,
) -> Result<(), hyper::Error> {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // It also limits how long a connection stays open between requests.
        .header_read_timeout(door.patience())
        .max_headers(HEADERS_MAX)
        .max_buf_size(BUFFER);
    let io = Guarded::new(socket, Arc::clone(&door), Arc::clone(&connection), None);
    let requests = Requests {
        pages,
        door,
        connection,
    };
    let mut serving = pin!(builder.serve_connection(TokioIo::new(io), requests));
    tokio::select! {
        served = serving.as_mut() => return served,
        () = stop.cancelled() => serving.as_mut().graceful_shutdown(),
    }
    serving.await
}

/// The pages, as one connection requests them.
#[derive(Debug)]
struct Requests {
    pages: Router,
    door: Arc<Door>,
    connection: Arc<Connection>,
}

impl hyper::service::Service<Request<Incoming>> for Requests {
    type Response = Response<ResponseBody<Body>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(self.connection.caller);
        let now = self.door.now();
        let path = request.uri().path();
        let is_busy = !self.door.paths().silent.contains(&path);
        let call = InFlightCall::begin(&self.door, &self.connection, is_busy, now);
        if let Some(limit) = call.refusal(path, now) {
            return Box::pin(ready(Ok(refused(&limit, call))));
        }
        match self.door.prove(&self.connection, path, request.headers()) {
            Ok(proof) => proof.extend(request.extensions_mut()),
            Err(denied) => return Box::pin(ready(Ok(unproven(&denied, call)))),
        }
        let path = request.uri().path();
        let paths = self.door.paths();
        let is_vital = paths.vital.contains(&path);
        let has_message = paths.with_one_message.contains(&path);
        let patience = self.door.patience();
        let mut pages = self.pages.clone();
        Box::pin(async move {
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
                Err(limit) => Ok(refused(&limit, call)),
            }
        })
    }
}

fn unproven(denied: &Denied, call: InFlightCall) -> Response<ResponseBody<Body>> {
    let body = Body::from(format!("{denied}\n"));
    let answer = match denied {
        Denied::NotHere | Denied::NoRole(..) => (StatusCode::FORBIDDEN, body).into_response(),
        Denied::Guesses(..) => (StatusCode::TOO_MANY_REQUESTS, body).into_response(),
        Denied::NoIdentity | Denied::UnknownToken => {
            let headers = [(header::WWW_AUTHENTICATE, "Bearer")];
            (StatusCode::UNAUTHORIZED, headers, body).into_response()
        }
    };
    answer.map(|body| ResponseBody::new(body, cut_off, call))
}

fn refused(limit: &Limit, call: InFlightCall) -> Response<ResponseBody<Body>> {
    call.door().refuse(limit);
    let LimitTexts { what, flag, .. } = limit.texts();
    let body = Body::from(format!("too many {what}; try again ({flag})\n"));
    let headers = [(header::RETRY_AFTER, "1")];
    let answer = (StatusCode::SERVICE_UNAVAILABLE, headers, body).into_response();
    answer.map(|body| ResponseBody::new(body, cut_off, call))
}

/// Ends an answer that its client does not read.
fn cut_off(_: u64) -> Result<Frame<Bytes>, Box<dyn std::error::Error + Send + Sync>> {
    Err("this address does not read its answers".into())
}
