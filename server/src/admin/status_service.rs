//! The admin service, for operators and tools.
//!
//! An answer may have some megabytes. The thread for looks makes and encodes it ([`ServerState::look`]); the worker
//! that serves calls only sends its bytes. The generated service would encode it on that worker, so this module replaces
//! it.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::yield_now;

use axum::body::Bytes;
use bytes::BufMut;
use doorward_proto::admin::v1::GetStatusRequest;
use doorward_proto::admin::v1::admin_server::SERVICE_NAME;
use prost::Message;
use tonic::body::Body;
use tonic::codec::{Codec, EncodeBuf, Encoder};
use tonic::codegen::http::{Request, Response};
use tonic::codegen::{Body as HttpBody, StdError};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::{Code, Status as RpcStatus};
use tonic_prost::ProstDecoder;
use tower::Service;

use crate::status::{Query, ServerState, Status};

/// The only method of the service.
const GET_STATUS: &str = "/doorward.admin.v1.Admin/GetStatus";

/// Resources encoded between two yields to other threads.
const RESOURCES_PER_STEP: usize = 256;

/// The admin service.
#[derive(Clone, Debug)]
pub struct AdminService {
    state: Arc<ServerState>,
}

impl AdminService {
    /// Makes the service of a server.
    pub const fn new(state: Arc<ServerState>) -> Self {
        Self { state }
    }
}

impl NamedService for AdminService {
    const NAME: &'static str = SERVICE_NAME;
}

impl<B> Service<Request<B>> for AdminService
where
    B: HttpBody + Send + 'static,
    B::Error: Into<StdError> + Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if request.uri().path() != GET_STATUS {
            let unknown = RpcStatus::new(Code::Unimplemented, "");
            return Box::pin(std::future::ready(Ok(unknown.into_http())));
        }
        let method = GetStatus(Arc::clone(&self.state));
        Box::pin(async move {
            let mut grpc = Grpc::new(StatusCodec).max_decoding_message_size(usize::MAX);
            Ok(grpc.unary(method, request).await)
        })
    }
}

/// The method that returns the status of the server.
struct GetStatus(Arc<ServerState>);

impl UnaryService<GetStatusRequest> for GetStatus {
    type Response = Bytes;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<Bytes>, RpcStatus>> + Send>>;

    fn call(&mut self, request: tonic::Request<GetStatusRequest>) -> Self::Future {
        let state = Arc::clone(&self.0);
        Box::pin(async move {
            let query = Query::of(request.get_ref()).map_err(RpcStatus::invalid_argument)?;
            let look = move |state: &ServerState| encoded(state.answer(&query));
            Ok(tonic::Response::new(state.look(look).await))
        })
    }
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
