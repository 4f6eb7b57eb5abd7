//! The service that tells a caller who it is.

use doorward_door::caller_id::CallerId;
use doorward_proto::admin::v1::callers_server::Callers;
use doorward_proto::admin::v1::{WhoAmIRequest, WhoAmIResponse};
use tonic::{Request, Response};

use crate::caller;
use crate::methods::Answer;

/// The service.
#[derive(Clone, Copy, Debug)]
pub struct CallersService;

#[tonic::async_trait]
impl Callers for CallersService {
    async fn who_am_i(&self, request: Request<WhoAmIRequest>) -> Answer<WhoAmIResponse> {
        let address = request.extensions().get::<CallerId>();
        let address = address.filter(|it| it.is_address());
        Ok(Response::new(WhoAmIResponse {
            identity: caller::identity(&request).map(ToString::to_string),
            address: address.map_or_else(String::new, ToString::to_string),
            may_write: caller::may_write(request.extensions()),
        }))
    }
}
