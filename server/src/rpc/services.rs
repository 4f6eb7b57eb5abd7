//! Which service a call is for.
//!
//! Nearly all calls are `GetCapacity`, with one plain message: those are served [without streams](super::unary). The
//! others of Doorman's `Capacity` go to tonic's service at once. The rest is looked for among the routes, where each
//! body is put into two more boxes.

use std::sync::Arc;

use axum::body::{Bytes, HttpBody};
use doorward_proto::doorman::capacity_server::{CapacityServer, SERVICE_NAME};
use tonic::body::Body;
use tonic::codegen::StdError;
use tonic::codegen::http::{Request, Response};
use tonic::service::Routes;
use tower::Service;

use crate::door::calls::CallService;
use crate::door::intake::Intake;
use crate::rpc::{CapacityService, unary};

/// The call that nearly all calls are.
const GET_CAPACITY: &str = "/doorman.Capacity/GetCapacity";

/// Every gRPC service of a server.
#[derive(Debug)]
pub struct Services {
    service: Arc<CapacityService>,
    capacity: CapacityServer<CapacityService>,
    others: Routes,
}

impl Services {
    /// Calls that are not for `service` are looked for among the others.
    pub(super) fn new(service: CapacityService, others: Routes) -> Self {
        let service = Arc::new(service);
        let capacity = CapacityServer::from_arc(Arc::clone(&service));
        Self {
            service,
            // The door says how large a message may be.
            capacity: capacity.max_decoding_message_size(usize::MAX),
            others: others.prepare(),
        }
    }
}

impl<B> CallService<B> for Services
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<StdError> + Send,
{
    async fn answer(&self, mut request: Request<Intake<B>>) -> Response<Body> {
        let caller = request.body().caller();
        if request.uri().path() == GET_CAPACITY
            && unary::is_plain(request.headers())
            && let Some(message) = request.body_mut().take_only_message()
        {
            // Its room is for others while it waits.
            drop(request);
            return unary::response(match unary::read(message) {
                Ok(request) => self.service.answer(request, Some(caller.into())).await,
                Err(status) => Err(status),
            });
        }
        // Read by `rpc::caller`.
        request.extensions_mut().insert(caller);
        // Both are always ready, and never fail.
        if is_for_capacity(request.uri().path()) {
            let Ok(response) = self.capacity.clone().call(request).await;
            return response;
        }
        let Ok(response) = self.others.clone().call(request).await;
        response
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
mod tests;
