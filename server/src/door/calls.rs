//! Calls of a gRPC connection: counted for the address of the caller, and received before work on them starts.

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
use crate::door::request_body::{RequestBody, Size};
use crate::door::response_body::{InFlightCall, ResponseBody};
use crate::limits::ServerLimit;
use crate::rpc::overload;

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

/// Calls of child servers.
const OF_CHILD_SERVERS: [&str; 2] = [
    "/doorman.Capacity/GetServerCapacity",
    "/doorward.v1.CapacityStream/StreamServerCapacity",
];

/// Calls with a rate of their own, shared with the calls of child servers. The server answers discovery, releases and
/// health checks even if the address makes too many other calls.
const CONTROL_METHODS: [&str; 4] = [
    "/doorman.Capacity/Discovery",
    "/doorman.Capacity/ReleaseCapacity",
    "/grpc.health.v1.Health/Check",
    WATCH,
];

/// A call that stays open while its caller listens.
const WATCH: &str = "/grpc.health.v1.Health/Watch";

/// Calls whose cost grows with the number of resources, rules or instances.
const LOOKS: [&str; 5] = [
    "/doorward.admin.v1.Admin/GetStatus",
    "/doorward.admin.v1.Rules/List",
    "/doorward.admin.v1.Rules/Get",
    "/doorward.admin.v1.Rules/Check",
    "/doorward.admin.v1.Rules/ListInstances",
];

/// Calls with one message, like all [`LOOKS`]. Work on such a call begins when its message is complete.
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
    /// Serves the calls of `connection`.
    pub fn new(services: Arc<S>, door: Arc<Door>, connection: Arc<Connection>) -> Self {
        Self {
            services,
            door,
            connection,
        }
    }

    /// Returns the refusal of a call, if its address made too many calls.
    fn refusal(&self, path: &str, now: Duration) -> Option<RpcStatus> {
        let address = self.connection.of_address();
        let is_vital = CONTROL_METHODS.contains(&path) || OF_CHILD_SERVERS.contains(&path);
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
    type Response = Response<ResponseBody<Body>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        // A watch leaves its connection silent.
        let is_busy = request.uri().path() != WATCH;
        let now = self.door.now();
        let call = InFlightCall::begin(&self.door, &self.connection, is_busy, now);
        if let Some(status) = self.refusal(request.uri().path(), now) {
            let answer = tracked(status.into_http(), call);
            return Box::pin(std::future::ready(Ok(answer)));
        }
        let path = request.uri().path();
        let looks = LOOKS.contains(&path);
        let waits = looks || WITH_ONE_MESSAGE.contains(&path);
        let size = self.door.size_of(OF_CHILD_SERVERS.contains(&path));
        let is_gzip = gzip::take_encoding(request.headers_mut());
        let mut request = request.map(|body| {
            let (door, connection) = (Arc::clone(&self.door), Arc::clone(&self.connection));
            RequestBody::new(body, door, connection, size).unpacking(is_gzip)
        });
        let services = Arc::clone(&self.services);
        Box::pin(async move {
            if waits && let Err(status) = poll_fn(|cx| request.body_mut().poll_only(cx)).await {
                return Ok(tracked(status.into_http(), call));
            }
            if !looks {
                return Ok(tracked(services.answer(request).await, call));
            }
            let look = async move { services.answer(request).await };
            // A look is rare, and its future is large.
            match Box::pin(call.look(look)).await {
                Ok(answer) => Ok(tracked(answer, call)),
                Err(limit) => {
                    let status = call.door().exhausted(limit);
                    Ok(tracked(status.into_http(), call))
                }
            }
        })
    }
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

impl Door {
    /// Counts a refusal for `limit`. Returns its status, with a retry delay.
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
