//! HTTP connections: pages and metrics, for few clients.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderValue, Request, Response, StatusCode, header};
use http_body::Frame;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tower::Service;
use tracing::debug;

use crate::door::connection::Connection;
use crate::door::guarded::{Guarded, PAUSE};
use crate::door::response_body::{InFlightCall, ResponseBody};
use crate::door::{Door, listening};
use crate::limits::ServerLimit;

/// Bytes of a request or an answer that are in memory at once.
const BUFFER: usize = 16 * 1024;

/// Largest number of headers in a request.
const HEADERS_MAX: usize = 64;

/// Serves pages until `stop`, then finishes the requests in progress.
pub async fn serve(listener: TcpListener, door: Arc<Door>, pages: Router, stop: CancellationToken) {
    let stopping = stop.clone();
    let door_of = Arc::clone(&door);
    listening::serve(listener, door, stop, move |socket, connection| {
        let (door, pages) = (Arc::clone(&door_of), pages.clone());
        let stop = stopping.clone();
        async move {
            if let Err(error) = converse(socket, door, connection, pages, stop).await {
                debug!(%error, "a connection ended");
            }
        }
    })
    .await;
}

async fn converse(
    socket: TcpStream,
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
    let io = Guarded::http1(socket, Arc::clone(&door), Arc::clone(&connection));
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

impl Requests {
    fn refusal(&self, at_once: bool) -> Option<ServerLimit> {
        let now = self.door.now();
        let address = self.connection.of_address();
        let rate = if at_once {
            &address.vital_calls
        } else {
            &address.calls
        };
        if rate.take(now).is_err() {
            self.connection.pause(now + PAUSE);
            return Some(ServerLimit::HttpRequestsPerAddress);
        }
        None
    }
}

impl hyper::service::Service<Request<Incoming>> for Requests {
    type Response = Response<ResponseBody<Body>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let call = InFlightCall::begin(&self.door, &self.connection, true, self.door.now());
        let at_once = AT_ONCE.contains(&request.uri().path());
        if let Some(limit) = self.refusal(at_once) {
            return Box::pin(std::future::ready(Ok(refused(limit, call))));
        }
        let mut pages = self.pages.clone();
        Box::pin(async move {
            let page = pages.call(request);
            let answer = if at_once {
                Ok(page.await)
            } else {
                call.look(page).await
            };
            match answer {
                Ok(answer) => Ok(answer?.map(|body| ResponseBody::new(body, cut_off, call))),
                Err(limit) => Ok(refused(limit, call)),
            }
        })
    }
}

/// Paths of frequent, cheap requests.
const AT_ONCE: [&str; 2] = ["/healthz", "/readyz"];

fn refused(limit: ServerLimit, call: InFlightCall) -> Response<ResponseBody<Body>> {
    call.door().refuse(limit);
    let body = format!("too many {}; try again ({})\n", limit.what(), limit.flag());
    let mut answer = Response::new(Body::from(body));
    *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = answer.headers_mut();
    headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    answer.map(|body| ResponseBody::new(body, cut_off, call))
}

/// Ends an answer that its client does not read.
fn cut_off(_: u64) -> Result<Frame<Bytes>, Box<dyn std::error::Error + Send + Sync>> {
    Err("this address does not read its answers".into())
}
