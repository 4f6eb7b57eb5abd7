//! A call of one message and one answer, without what streams need.
//!
//! tonic serves every call as streams: both messages pass through buffers of 8 KiB, and four boxes are made on the way.
//! That is a good part of what a small call costs, so `GetCapacity`, which nearly all calls are, is served here. Only
//! what gRPC puts around a message is different ("gRPC over HTTP2", responses): what is in it comes from the same code.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use bytes::{BufMut, BytesMut};
use http_body::Frame;
use prost::Message;
use tonic::Status as RpcStatus;
use tonic::body::Body;
use tonic::codegen::http::header::CONTENT_TYPE;
use tonic::codegen::http::{HeaderMap, HeaderName, HeaderValue, Response};
use tonic::metadata::GRPC_CONTENT_TYPE;

/// The header by which a caller says that messages are compressed.
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// The trailer that says how a call ended.
const STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// What stands before each message: that it is not compressed, and its length.
const PREFIX: usize = 5;

/// Whether a caller with these headers may be answered here: its messages are not compressed.
pub(super) fn is_plain(headers: &HeaderMap) -> bool {
    !headers.contains_key(ENCODING)
}

/// Reads a message.
///
/// # Errors
///
/// What the codec says of one that is no valid Protobuf; [`meter`](super::meter) sets the code right.
pub(super) fn read<M: Message + Default>(message: Bytes) -> Result<M, RpcStatus> {
    M::decode(message).map_err(|error| RpcStatus::internal(error.to_string()))
}

/// The response to a call.
pub(super) fn response<M: Message>(answer: &M) -> Response<Body> {
    let message = match encode(answer) {
        Ok(message) => message,
        Err(status) => return status.into_http(),
    };
    let body = Body::new(OneMessage {
        next: Some(Part::Message(message)),
    });
    let mut response = Response::new(body);
    response
        .headers_mut()
        .insert(CONTENT_TYPE, GRPC_CONTENT_TYPE);
    response
}

/// A message as it stands in a body.
fn encode<M: Message>(message: &M) -> Result<Bytes, RpcStatus> {
    let length = message.encoded_len();
    let Ok(announced) = u32::try_from(length) else {
        return Err(RpcStatus::resource_exhausted(
            "the answer has more than 4 GiB; ask for fewer resources at once",
        ));
    };
    let mut bytes = BytesMut::with_capacity(PREFIX + length);
    bytes.put_u8(0);
    bytes.put_u32(announced);
    message
        .encode(&mut bytes)
        .map_err(|error| RpcStatus::internal(error.to_string()))?;
    Ok(bytes.freeze())
}

/// One message, and that all went well.
#[derive(Debug)]
struct OneMessage {
    /// None: all of it was taken.
    next: Option<Part>,
}

/// A part of a body.
#[derive(Debug)]
enum Part {
    Message(Bytes),
    Trailers,
}

impl HttpBody for OneMessage {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = match self.next.take() {
            Some(Part::Message(message)) => {
                self.next = Some(Part::Trailers);
                Frame::data(message)
            }
            Some(Part::Trailers) => {
                let mut trailers = HeaderMap::with_capacity(1);
                trailers.insert(STATUS, HeaderValue::from_static("0"));
                Frame::trailers(trailers)
            }
            None => return Poll::Ready(None),
        };
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.next.is_none()
    }
}
