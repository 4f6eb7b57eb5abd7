//! Dispatch of a call to its service.
//!
//! Nearly all calls are `GetCapacity` of clients, or `ShouldRateLimit` of Envoys, with one plain message. They are served
//! [without streams](crate::unary). Other calls of Doorman's `Capacity` go to tonic's service at once. The rest is looked
//! up among the routes, which put each body into two more boxes.

use std::convert::Infallible;
use std::sync::Arc;

use axum::body::{Bytes, HttpBody};
use doorward_door::caller_id::CallerId;
use doorward_door::calls::CallService;
use doorward_door::request_body::RequestBody;
use doorward_edge::asker::Asker;
use doorward_edge::rls::{CLIENT, Rls};
use doorward_engine::id::Caller;
use doorward_proto::doorman::capacity_server::{CapacityServer, SERVICE_NAME};
use doorward_tls::identity::Identity;
use tonic::Status as RpcStatus;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{BoxFuture, StdError};
use tonic::service::Routes;
use tower::Service;

use crate::methods::{GET_CAPACITY, SHOULD_RATE_LIMIT};
use crate::rpc::{Answer, CapacityService};
use crate::unary;

/// Every gRPC service of a server.
#[derive(Debug)]
pub struct Services {
    service: Arc<CapacityService>,
    capacity: CapacityServer<CapacityService>,
    rls: Option<Rls>,
    others: Routes,
}

impl Services {
    /// Looks up calls that are not for `service` or `rls` among `others`.
    pub(super) fn new(service: CapacityService, rls: Option<Rls>, others: Routes) -> Self {
        let service = Arc::new(service);
        let capacity = CapacityServer::from_arc(Arc::clone(&service));
        Self {
            service,
            // The door limits the size of messages.
            capacity: capacity.max_decoding_message_size(usize::MAX),
            rls,
            others: others.prepare(),
        }
    }

    /// Answers `GetCapacity` with one plain message.
    fn answer_plain(
        &self,
        message: Bytes,
        caller: CallerId,
        identity: Option<&Identity>,
    ) -> Answering {
        let decided = unary::read(message).and_then(|request| {
            self.service
                .answer(request, Some(Caller::new(caller.get())), identity)
        });
        match decided {
            Ok(Answer::Ready(answer)) => Answering::Ready(unary::response(&answer)),
            Err(status) => Answering::Ready(status.into_http()),
            Ok(Answer::Later(answer)) => Answering::Later(Box::pin(async move {
                Ok(match answer.await {
                    Ok(answer) => unary::response(&answer),
                    Err(status) => status.into_http(),
                })
            })),
        }
    }

    /// Answers `ShouldRateLimit` with one plain message.
    fn limit_plain(rls: Rls, message: Bytes, caller: Asker) -> Answering {
        Answering::Later(Box::pin(async move {
            let answer = match unary::read(message) {
                Ok(request) => rls.answer(&request, &caller).await,
                Err(status) => Err(status),
            };
            Ok(answer.map_or_else(RpcStatus::into_http, |answer| unary::response(&answer)))
        }))
    }
}

impl<B> CallService<B> for Services
where
    B: HttpBody<Data = Bytes> + Send + Unpin + 'static,
    B::Error: Into<StdError> + Send,
{
    fn answer(
        &self,
        mut request: Request<RequestBody<B>>,
    ) -> impl Future<Output = Response<Body>> + Send {
        let caller = request.body().caller();
        let is_plain = unary::is_plain(request.headers());
        let path = request.uri().path();
        let (asks, limits) = (path == GET_CAPACITY, path == SHOULD_RATE_LIMIT);
        // A call may wait for a lease, or for its turn.
        let counted = match limits {
            true => request.body().count_large(),
            false => Ok(None),
        };
        let rls = self.rls.clone().filter(|_| limits);
        let takes = is_plain && counted.is_ok() && (asks || rls.is_some());
        let message = takes.then(|| request.body_mut().take_only_message());
        let identity = request.extensions().get::<Identity>();
        let answer = match (&counted, message.flatten(), rls) {
            (Err(status), ..) => Answering::Ready(status.clone().into_http()),
            (Ok(_), Some(message), None) => self.answer_plain(message, caller, identity),
            (Ok(_), Some(message), Some(rls)) => {
                let name = request.headers().get(CLIENT);
                let name = name.and_then(|name| name.to_str().ok());
                Self::limit_plain(rls, message, Asker::new(name, identity, Some(&caller)))
            }
            (Ok(_), None, _) => {
                // For [`caller`](crate::caller).
                request.extensions_mut().insert(caller);
                // The services are always ready, so they are not polled.
                Answering::Later(match is_for_capacity(request.uri().path()) {
                    true => self.capacity.clone().call(request),
                    false => Box::pin(self.others.clone().call(request)),
                })
            }
        };
        async move {
            let _counted = counted;
            match answer {
                Answering::Ready(response) => response,
                Answering::Later(answer) => {
                    // The call is infallible.
                    let Ok(response) = answer.await;
                    response
                }
            }
        }
    }
}

/// An answer, as far as it is known at once.
enum Answering {
    /// The whole answer.
    Ready(Response<Body>),
    /// A future of the answer.
    Later(BoxFuture<Response<Body>, Infallible>),
}

/// Returns whether a call with that path is for Doorman's service.
fn is_for_capacity(path: &str) -> bool {
    let service = path.strip_prefix('/');
    let service = service.and_then(|it| it.strip_prefix(SERVICE_NAME));
    service.is_some_and(|method| method.starts_with('/'))
}

#[cfg(test)]
mod tests;
