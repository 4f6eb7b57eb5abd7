//! Which service a call is for.
//!
//! Nearly all calls are for Doorman's `Capacity`: those go there at once. The others are looked for among the routes,
//! where each body is put into two more boxes.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use doorward_proto::doorman::capacity_server::{CapacityServer, SERVICE_NAME};
use tonic::body::Body;
use tonic::codegen::StdError;
use tonic::codegen::http::{Request, Response};
use tonic::service::Routes;
use tower::Service;

use crate::rpc::CapacityService;

/// Every gRPC service of a server.
#[derive(Clone, Debug)]
pub struct Services {
    capacity: CapacityServer<CapacityService>,
    others: Routes,
}

impl Services {
    /// Calls that are not for `capacity` are looked for among the others.
    pub(super) fn new(capacity: CapacityServer<CapacityService>, others: Routes) -> Self {
        Self {
            capacity,
            others: others.prepare(),
        }
    }
}

impl<B> Service<Request<B>> for Services
where
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<StdError> + Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    /// Whether both are ready, which they always are.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        std::task::ready!(Service::<Request<B>>::poll_ready(&mut self.capacity, cx))?;
        Service::<Request<B>>::poll_ready(&mut self.others, cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if is_for_capacity(request.uri().path()) {
            return self.capacity.call(request);
        }
        let others = self.others.call(request);
        Box::pin(others)
    }
}

/// Whether a call with that path is for Doorman's service.
fn is_for_capacity(path: &str) -> bool {
    let service = path
        .strip_prefix('/')
        .and_then(|it| it.strip_prefix(SERVICE_NAME));
    service.is_some_and(|method| method.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_the_service_whole() {
        for (path, expected) in [
            ("/doorman.Capacity/GetCapacity", true),
            ("/doorman.Capacity/Unheard", true),
            ("/doorman.Capacity", false),
            ("/doorman.CapacityStream/Get", false),
            ("doorman.Capacity/GetCapacity", false),
            ("/grpc.health.v1.Health/Check", false),
        ] {
            assert_eq!(is_for_capacity(path), expected, "{path}");
        }
    }
}
