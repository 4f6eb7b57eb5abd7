//! Which service a call is for.
//!
//! Nearly all calls are `GetCapacity`, with one plain message: those are served [without streams](super::unary). The
//! others of Doorman's `Capacity` go to tonic's service at once. The rest is looked for among the routes, where each
//! body is put into two more boxes.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Bytes, HttpBody};
use doorward_proto::doorman::capacity_server::{CapacityServer, SERVICE_NAME};
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{BoxFuture, StdError};
use tonic::service::Routes;
use tower::Service;

use crate::door::caller_address::CallerAddress;
use crate::door::calls::CallService;
use crate::door::intake::Intake;
use crate::rpc::{Answer, CapacityService, unary};

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

    /// Answers `GetCapacity`, of one plain message.
    fn answer_plain(&self, message: Bytes, caller: CallerAddress) -> Answering {
        let decided = unary::read(message)
            .and_then(|request| self.service.answer(request, Some(caller.into())));
        match decided {
            Ok(Answer::Ready(answer)) => Answering::Ready(unary::response(&answer)),
            Err(status) => Answering::Ready(status.into_http()),
            Ok(Answer::Later(unfinished)) => {
                let service = Arc::clone(&self.service);
                Answering::Later(Box::pin(async move {
                    Ok(unary::response(&service.finish(*unfinished).await))
                }))
            }
        }
    }

    /// All are ready at any time.
    fn answer_by_tonic<B>(
        &self,
        request: Request<Intake<B>>,
    ) -> BoxFuture<Response<Body>, Infallible>
    where
        B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
        B::Error: Into<StdError> + Send,
    {
        if is_for_capacity(request.uri().path()) {
            return self.capacity.clone().call(request);
        }
        Box::pin(self.others.clone().call(request))
    }
}

impl<B> CallService<B> for Services
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<StdError> + Send,
{
    fn answer(
        &self,
        mut request: Request<Intake<B>>,
    ) -> impl Future<Output = Response<Body>> + Send {
        let caller = request.body().caller();
        let path = request.uri().path();
        let is_plain = path == GET_CAPACITY && unary::is_plain(request.headers());
        let message = is_plain.then(|| request.body_mut().take_only_message());
        let answer = match message.flatten() {
            Some(message) => self.answer_plain(message, caller),
            None => {
                // Read by `rpc::caller`.
                request.extensions_mut().insert(caller);
                Answering::Later(self.answer_by_tonic(request))
            }
        };
        async move {
            match answer {
                Answering::Ready(response) => response,
                Answering::Later(answer) => {
                    // It never fails.
                    let Ok(response) = answer.await;
                    response
                }
            }
        }
    }
}

/// What is known of an answer at once.
enum Answering {
    /// All of it.
    Ready(Response<Body>),
    /// Nothing.
    Later(BoxFuture<Response<Body>, Infallible>),
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
