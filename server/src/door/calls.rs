//! The calls of a gRPC connection: counted for the address they come from, and taken in before anybody
//! works on them.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use http_body::Frame;
use hyper::body::Incoming;
use tonic::Status as RpcStatus;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response};

use crate::door::Door;
use crate::door::connection::Connection;
use crate::door::guarded::PAUSE;
use crate::door::gzip;
use crate::door::intake::{Intake, Size};
use crate::door::outflow::{CallOnConnection, Outflow};
use crate::limits::ServerLimit;
use crate::rpc::overload;

/// What answers calls. One stands for all connections.
///
/// A request is large. Whoever looks at it, or passes it on, does so before the future begins: what a future is given, it
/// keeps.
pub trait CallService<B>: Send + Sync + 'static {
    /// The answer to a call; that it failed is an answer, too.
    fn answer(&self, request: Request<Intake<B>>) -> impl Future<Output = Response<Body>> + Send;
}

/// What child servers call.
const OF_CHILD_SERVERS: [&str; 2] = [
    "/doorman.Capacity/GetServerCapacity",
    "/doorward.v1.CapacityStream/StreamServerCapacity",
];

/// What is counted apart, as what child servers call: whatever else an address calls, who looks for the master,
/// gives back, or asks whether the server lives, is answered.
const VITAL: [&str; 4] = [
    "/doorman.Capacity/Discovery",
    "/doorman.Capacity/ReleaseCapacity",
    "/grpc.health.v1.Health/Check",
    WATCH,
];

/// Call that lasts as long as its caller listens.
const WATCH: &str = "/grpc.health.v1.Health/Watch";

/// Calls whose cost grows with the number of resources, rules or instances.
const LOOKS: [&str; 5] = [
    "/doorward.admin.v1.Admin/GetStatus",
    "/doorward.admin.v1.Rules/List",
    "/doorward.admin.v1.Rules/Get",
    "/doorward.admin.v1.Rules/Check",
    "/doorward.admin.v1.Rules/ListInstances",
];

/// Calls with one message, as all [`LOOKS`] are: work on such a call begins once the message has arrived.
const WITH_ONE_MESSAGE: [&str; 6] = [
    "/doorman.Capacity/GetCapacity",
    "/doorman.Capacity/ReleaseCapacity",
    "/doorman.Capacity/Discovery",
    "/doorman.Capacity/GetServerCapacity",
    "/grpc.health.v1.Health/Check",
    WATCH,
];

/// The services, as one connection calls them.
#[derive(Debug)]
pub struct ConnectionCalls<S> {
    services: Arc<S>,
    door: Arc<Door>,
    connection: Arc<Connection>,
}

impl<S> ConnectionCalls<S> {
    /// For a connection.
    pub fn new(services: Arc<S>, door: Arc<Door>, connection: Arc<Connection>) -> Self {
        Self {
            services,
            door,
            connection,
        }
    }

    /// What is answered instead of serving the call, if the address has called too much.
    fn refusal(&self, path: &str, now: Duration) -> Option<RpcStatus> {
        let address = self.connection.of_address();
        let is_vital = VITAL.contains(&path) || OF_CHILD_SERVERS.contains(&path);
        let rate = if is_vital {
            &address.vital_calls
        } else {
            &address.calls
        };
        if rate.take(now).is_err() {
            self.connection.pause(now + PAUSE);
            return Some(self.door.exhausted(ServerLimit::CallsPerAddress));
        }
        None
    }
}

impl<S> hyper::service::Service<Request<Incoming>> for ConnectionCalls<S>
where
    S: CallService<Incoming>,
{
    type Response = Response<Outflow<Body>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        // Who only listens is silent.
        let is_busy = request.uri().path() != WATCH;
        let now = self.door.now();
        let call = CallOnConnection::begin(&self.door, &self.connection, is_busy, now);
        if let Some(status) = self.refusal(request.uri().path(), now) {
            let answer = outflow(status.into_http(), call);
            return Box::pin(std::future::ready(Ok(answer)));
        }
        let path = request.uri().path();
        let looks = LOOKS.contains(&path);
        let waits = looks || WITH_ONE_MESSAGE.contains(&path);
        let size = self.door.size_of(OF_CHILD_SERVERS.contains(&path));
        let is_gzip = gzip::take_encoding(request.headers_mut());
        let mut request = request.map(|body| {
            let (door, connection) = (Arc::clone(&self.door), Arc::clone(&self.connection));
            Intake::new(body, door, connection, size).unpacking(is_gzip)
        });
        let services = Arc::clone(&self.services);
        Box::pin(async move {
            if waits && let Err(status) = poll_fn(|cx| request.body_mut().poll_only(cx)).await {
                return Ok(outflow(status.into_http(), call));
            }
            if !looks {
                return Ok(outflow(services.answer(request).await, call));
            }
            let look = async move { services.answer(request).await };
            // Rare, and large.
            match Box::pin(call.look(look)).await {
                Ok(answer) => Ok(outflow(answer, call)),
                Err(limit) => {
                    let status = call.door().exhausted(limit);
                    Ok(outflow(status.into_http(), call))
                }
            }
        })
    }
}

fn outflow(answer: Response<Body>, call: CallOnConnection) -> Response<Outflow<Body>> {
    answer.map(|body| Outflow::new(body, unread_too_much, call))
}

/// The end of an answer that is not read.
fn unread_too_much(number: u64) -> Result<Frame<Bytes>, Box<dyn std::error::Error + Send + Sync>> {
    let status = overload::unread(number);
    let mut trailers = HeaderMap::new();
    status.add_header(&mut trailers)?;
    Ok(Frame::trailers(trailers))
}

impl Door {
    /// Something is refused for a limit: what to answer, and when to come back.
    pub fn exhausted(&self, limit: ServerLimit) -> RpcStatus {
        overload::exhausted(limit, self.refuse(limit))
    }

    fn size_of(&self, child_server: bool) -> Size {
        let config = self.config();
        if child_server {
            Size {
                max: config.child_message_bytes_max,
                limit: ServerLimit::ChildMessageBytes,
            }
        } else {
            Size {
                max: config.message_bytes_max,
                limit: ServerLimit::MessageBytes,
            }
        }
    }
}
