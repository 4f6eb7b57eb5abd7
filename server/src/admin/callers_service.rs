//! The service that tells a caller who it is.

use doorward_door::access::Operator;
use doorward_door::caller_id::CallerId;
use doorward_proto::admin::v1::callers_server::Callers;
use doorward_proto::admin::v1::{WhoAmIRequest, WhoAmIResponse};
use doorward_tls::identity::Identity;
use tonic::{Request, Response, Status as RpcStatus};

use crate::caller;

/// The service.
#[derive(Clone, Copy, Debug)]
pub struct CallersService;

/// Returns whether a caller may change rules: an operator, or a caller on the server's own machine without an identity,
/// if the server needs none.
pub(super) fn may_write<T>(request: &Request<T>) -> bool {
    let extensions = request.extensions();
    let is_here = extensions
        .get::<CallerId>()
        .is_some_and(|id| id.is_loopback());
    let is_open = is_here && extensions.get::<Identity>().is_none();
    is_open || extensions.get::<Operator>().is_some()
}

#[tonic::async_trait]
impl Callers for CallersService {
    async fn who_am_i(
        &self,
        request: Request<WhoAmIRequest>,
    ) -> Result<Response<WhoAmIResponse>, RpcStatus> {
        let address = request.extensions().get::<CallerId>();
        let address = address.filter(|it| it.is_address());
        Ok(Response::new(WhoAmIResponse {
            identity: caller::identity(&request).map(ToString::to_string),
            address: address.map_or_else(String::new, ToString::to_string),
            may_write: may_write(&request),
        }))
    }
}
