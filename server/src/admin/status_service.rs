//! The admin service, for operators and tools.
//!
//! An answer may have some megabytes. The thread for looks makes and encodes it ([`ServerState::look`]); the worker
//! that serves calls only sends its bytes. The generated service would encode it on that worker, so this module replaces
//! it.

use std::sync::Arc;
use std::thread::yield_now;

use axum::body::Bytes;
use axum::extract::Request;
use axum::routing::{MethodRouter, any};
use bytes::BufMut;
use doorward_proto::admin::v1::GetStatusRequest;
use prost::Message;
use tonic::Status as RpcStatus;
use tonic::codec::{Codec, EncodeBuf, Encoder};
use tonic::server::Grpc;
use tonic_prost::ProstDecoder;
use tower::service_fn;

use crate::status::{Query, ServerState, Status};

/// Resources encoded between two yields to other threads.
const RESOURCES_PER_STEP: usize = 256;

/// Returns the only method of the service, which answers with the status of a server.
pub fn get_status(state: Arc<ServerState>) -> MethodRouter {
    let answer = service_fn(move |request: tonic::Request<GetStatusRequest>| {
        let state = Arc::clone(&state);
        async move {
            let query = Query::of(request.get_ref()).map_err(RpcStatus::invalid_argument)?;
            let look = move |state: &ServerState| encoded(state.answer(&query));
            Ok(tonic::Response::new(state.look(look).await))
        }
    });
    any(move |request: Request| async move {
        // The door limits the size of messages.
        let mut grpc = Grpc::new(StatusCodec).max_decoding_message_size(usize::MAX);
        grpc.unary(answer, request).await
    })
}

/// Encodes a status part by part. Concatenated messages are one message that has the resources of all.
fn encoded(mut status: Status) -> Bytes {
    let resources = std::mem::take(&mut status.resources);
    let mut encoded = status.encode_to_vec();
    let mut resources = resources.into_iter();
    loop {
        let part = Status {
            resources: resources.by_ref().take(RESOURCES_PER_STEP).collect(),
            ..Status::default()
        };
        if part.resources.is_empty() {
            return encoded.into();
        }
        encoded.extend(part.encode_to_vec());
        yield_now();
    }
}

/// A codec for decoded requests and encoded answers.
#[derive(Clone, Copy, Debug, Default)]
struct StatusCodec;

impl Codec for StatusCodec {
    type Encode = Bytes;
    type Decode = GetStatusRequest;
    type Encoder = Encoded;
    type Decoder = ProstDecoder<GetStatusRequest>;

    fn encoder(&mut self) -> Encoded {
        Encoded
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstDecoder::default()
    }
}

/// An encoder that copies encoded bytes.
#[derive(Clone, Copy, Debug)]
struct Encoded;

impl Encoder for Encoded {
    type Item = Bytes;
    type Error = RpcStatus;

    fn encode(&mut self, message: Bytes, into: &mut EncodeBuf<'_>) -> Result<(), RpcStatus> {
        // One reservation avoids repeated copies.
        into.reserve(message.len());
        into.put(message);
        Ok(())
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
            assert_eq!(Status::decode(encoded(status.clone())), Ok(status));
        }
    }
}
