//! gzip-compressed messages. The door unpacks them, so the code behind it never sees them, and no unpacked message
//! exceeds the size limit (gRPC, "Compression").

use std::io::{self, Read};

use axum::body::Bytes;
use flate2::read::GzDecoder;
use thiserror::Error;
use tonic::codegen::http::HeaderMap;

/// Bytes before each message: a flag for compression, and the length.
pub(super) const PREFIX: usize = 5;

const ENCODING: &str = "grpc-encoding";

/// Reason why a message cannot be unpacked.
#[derive(Debug, Error)]
pub(super) enum GzipError {
    #[error("the message is larger than it may be")]
    TooLarge,
    #[error("the message is not valid gzip: {0}")]
    Invalid(#[from] io::Error),
}

/// Removes the gzip encoding header of a call. Returns whether the call had one.
pub(super) fn take_encoding(headers: &mut HeaderMap) -> bool {
    let is_gzip = headers
        .get(ENCODING)
        .is_some_and(|encoding| encoding == "gzip");
    if is_gzip {
        headers.remove(ENCODING);
    }
    is_gzip
}

/// Unpacks complete messages that arrived together, to at most `max` bytes. Keeps uncompressed messages unchanged.
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
