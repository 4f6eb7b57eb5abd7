//! Messages that a caller has compressed with gzip. They are unpacked here, so that nothing behind the door knows of
//! them, and none becomes larger than a message may be (gRPC, "Compression").

use std::io::{self, Read};

use axum::body::Bytes;
use flate2::read::GzDecoder;
use thiserror::Error;
use tonic::codegen::http::HeaderMap;

use crate::door::intake::PREFIX;

const ENCODING: &str = "grpc-encoding";

/// Why a message cannot be unpacked.
#[derive(Debug, Error)]
pub(super) enum GzipError {
    #[error("the message is larger than it may be")]
    TooLarge,
    #[error("the message is not valid gzip: {0}")]
    Invalid(#[from] io::Error),
}

/// Removes the header that says so from a call whose messages are compressed with gzip.
pub(super) fn take_encoding(headers: &mut HeaderMap) -> bool {
    let is_gzip = headers
        .get(ENCODING)
        .is_some_and(|encoding| encoding == "gzip");
    if is_gzip {
        headers.remove(ENCODING);
    }
    is_gzip
}

/// Unpacks complete messages that arrived together, to at most `max` bytes. A message that is not compressed stays as
/// it is.
///
/// # Errors
///
/// See [`GzipError`].
pub(super) fn unpack(messages: &[u8], max: usize) -> Result<Bytes, GzipError> {
    let mut unpacked = Vec::new();
    let mut rest = messages;
    while let Some((prefix, behind)) = rest.split_first_chunk::<PREFIX>() {
        let [is_compressed, length @ ..] = *prefix;
        let length = u32::from_be_bytes(length) as usize;
        let Some((message, behind)) = behind.split_at_checked(length) else {
            break;
        };
        rest = behind;
        if is_compressed == 0 {
            unpacked.extend_from_slice(prefix);
            unpacked.extend_from_slice(message);
            continue;
        }
        let begins = unpacked.len();
        unpacked.extend_from_slice(&[0; PREFIX]);
        let left = max.saturating_sub(begins);
        let most = u64::try_from(left).unwrap_or(u64::MAX);
        let reader = GzDecoder::new(message);
        let size = reader
            .take(most.saturating_add(1))
            .read_to_end(&mut unpacked)?;
        let length = u32::try_from(size).ok().filter(|_| size <= left);
        let length = length.ok_or(GzipError::TooLarge)?.to_be_bytes();
        if let Some(prefix) = unpacked.get_mut(begins + 1..begins + PREFIX) {
            prefix.copy_from_slice(&length);
        }
    }
    Ok(unpacked.into())
}
