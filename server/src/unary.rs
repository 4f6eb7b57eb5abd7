//! Service of a call with one message and one answer, without streams.
//!
//! tonic serves every call as streams: both messages pass through buffers of 8 KiB, and each call makes four boxes.
//! That is a good part of the cost of a small call. So this module serves `GetCapacity` and `ShouldRateLimit`, which are
//! nearly all calls.
//! Only the gRPC framing differs ("gRPC over HTTP2", responses); the same code makes the content.

use std::convert::Infallible;

use axum::body::Bytes;
use bytes::{BufMut, BytesMut};
use doorward_proto::codec::undecodable;
use http_body::Frame;
use http_body_util::StreamBody;
use prost::Message;
use tokio_stream::{Stream, StreamExt};
use tonic::Status as RpcStatus;
use tonic::body::Body;
use tonic::codegen::http::header::CONTENT_TYPE;
use tonic::codegen::http::{HeaderMap, HeaderName, HeaderValue, Response};
use tonic::metadata::GRPC_CONTENT_TYPE;

/// Header by which a caller says that its messages are compressed.
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// Trailer with the status of a call.
const STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// Bytes before each message: a flag for compression, and the length.
pub(crate) const PREFIX: usize = 5;

/// Returns whether a call with these headers has uncompressed messages, so that this module can answer it.
pub(crate) fn is_plain(headers: &HeaderMap) -> bool {
    !headers.contains_key(ENCODING)
}

/// Decodes a message.
///
/// # Errors
///
/// The codec's error if the message is not valid Protobuf; [`meter`](doorward_door::meter) corrects its code.
pub(crate) fn read<M: Message + Default>(message: Bytes) -> Result<M, RpcStatus> {
    M::decode(message).map_err(undecodable)
}

/// Returns the response to a call.
pub(crate) fn response<M: Message>(answer: &M) -> Response<Body> {
    let mut framed = BytesMut::with_capacity(PREFIX + answer.encoded_len());
    framed.put_bytes(0, PREFIX);
    match answer.encode(&mut framed) {
        Ok(()) => respond(framed),
        Err(error) => RpcStatus::internal(error.to_string()).into_http(),
    }
}

/// Returns a response with a message, which has room for its prefix before it.
pub(crate) fn respond(mut framed: BytesMut) -> Response<Body> {
    let Ok(length) = u32::try_from(framed.len().saturating_sub(PREFIX)) else {
        let problem = "the answer has more than 4 GiB; ask for fewer resources at once";
        return RpcStatus::resource_exhausted(problem).into_http();
    };
    if let Some(place) = framed.get_mut(1..PREFIX) {
        place.copy_from_slice(&length.to_be_bytes());
    }
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(STATUS, HeaderValue::from_static("0"));
    let frames = [Frame::data(framed.freeze()), Frame::trailers(trailers)];
    of_frames(tokio_stream::iter(frames))
}

/// Returns a response with these frames.
pub(crate) fn of_frames(
    frames: impl Stream<Item = Frame<Bytes>> + Send + 'static,
) -> Response<Body> {
    let frames = StreamBody::new(frames.map(Ok::<_, Infallible>));
    let mut response = Response::new(Body::new(frames));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, GRPC_CONTENT_TYPE);
    response
}
