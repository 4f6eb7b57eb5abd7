//! The codec of all services here. It is that of [`tonic_prost`], and an error of its decoder has [`DecodeError`] as its
//! source. So a server tells an invalid message of its caller from a failure of its own, by type.

use std::marker::PhantomData;
use std::sync::Arc;

use prost::{DecodeError, Message};
use tonic::Status;
use tonic::codec::{DecodeBuf, Decoder};
use tonic_prost::ProstEncoder;

/// The codec.
#[derive(Clone, Debug)]
pub struct Codec<T, U>(PhantomData<(T, U)>);

impl<T, U> Default for Codec<T, U> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<T, U> tonic::codec::Codec for Codec<T, U>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    type Encode = T;
    type Decode = U;
    type Encoder = ProstEncoder<T>;
    type Decoder = MessageDecoder<U>;

    fn encoder(&mut self) -> Self::Encoder {
        ProstEncoder::default()
    }

    fn decoder(&mut self) -> Self::Decoder {
        MessageDecoder(PhantomData)
    }
}

/// Decoder of messages.
#[derive(Clone, Debug)]
pub struct MessageDecoder<U>(PhantomData<U>);

impl<U: Message + Default> Decoder for MessageDecoder<U> {
    type Item = U;
    type Error = Status;

    fn decode(&mut self, bytes: &mut DecodeBuf<'_>) -> Result<Option<U>, Status> {
        U::decode(bytes).map(Some).map_err(undecodable)
    }
}

/// Returns the status of a call with a message that is not valid Protobuf, as gRPC's libraries have it.
pub fn undecodable(error: DecodeError) -> Status {
    let mut status = Status::internal(error.to_string());
    status.set_source(Arc::new(error));
    status
}
