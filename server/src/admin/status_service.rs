//! The admin service, for operators and tools.
//!
//! An answer may have some megabytes. The thread for looks makes and encodes it ([`ServerState::look`]); the worker
//! that serves calls only sends its bytes. The generated service would encode it on that worker, so this module replaces
//! it.

use std::sync::Arc;
use std::thread::yield_now;

use axum::body::Body;
use axum::extract::Request;
use axum::routing::{MethodRouter, any};
use bytes::BytesMut;
use doorward_proto::admin::v1::GetStatusRequest;
use prost::Message;
use tonic::{Status as RpcStatus, Streaming};
use tonic_prost::ProstDecoder;

use crate::status::{Query, ServerState, Status};
use crate::unary;

/// Resources encoded between two yields to other threads.
const RESOURCES_PER_STEP: usize = 256;

/// Returns the only method of the service, which answers with the status of a server.
pub fn get_status(state: Arc<ServerState>) -> MethodRouter {
    any(move |request: Request| async move {
        let encoding = request.headers().get("grpc-encoding");
        if encoding.is_some_and(|it| it != "identity") {
            let problem = "this server takes no compressed messages";
            return RpcStatus::unimplemented(problem).into_http();
        }
        match answer(&state, request.into_body()).await {
            Ok(status) => unary::respond(status),
            Err(status) => status.into_http(),
        }
    })
}

async fn answer(state: &Arc<ServerState>, body: Body) -> Result<BytesMut, RpcStatus> {
    // The door limits the size of messages.
    let decoder = ProstDecoder::<GetStatusRequest>::default();
    let mut requests = Streaming::new_request(decoder, body, None, Some(usize::MAX));
    let request = requests.message().await?;
    let request = request.ok_or_else(|| RpcStatus::internal("Missing request message."))?;
    let query = Query::of(request).map_err(RpcStatus::invalid_argument)?;
    let look = move |state: &ServerState| encoded(state.answer(&query));
    Ok(state.look(look).await)
}

/// Encodes a status part by part, with room for its prefix. Concatenated messages are one message that has the resources
/// of all.
fn encoded(mut status: Status) -> BytesMut {
    let resources = std::mem::take(&mut status.resources);
    let mut encoded = BytesMut::zeroed(unary::PREFIX);
    encoded.extend(status.encode_to_vec());
    let mut resources = resources.into_iter();
    loop {
        let part = Status {
            resources: resources.by_ref().take(RESOURCES_PER_STEP).collect(),
            ..Status::default()
        };
        if part.resources.is_empty() {
            return encoded;
        }
        encoded.extend(part.encode_to_vec());
        yield_now();
    }
}

#[cfg(test)]
mod tests {
    use doorward_proto::admin::v1::ResourceStatus;

    use super::*;

    #[test]
    fn parts_are_the_whole() {
        for resources in [0, 1, RESOURCES_PER_STEP, 3 * RESOURCES_PER_STEP + 1] {
            let resource = |number: usize| ResourceStatus {
                resource_id: format!("r{number}"),
                ..ResourceStatus::default()
            };
            let status = Status {
                node: "root".to_owned(),
                schema_version: 1,
                next_token: Some("r".to_owned()),
                resources: (0..resources).map(resource).collect(),
                ..Status::default()
            };
            assert_eq!(
                Status::decode(&encoded(status.clone())[unary::PREFIX..]),
                Ok(status)
            );
        }
    }
}
