//! What went wrong on the way to the parent, for people.

use std::error::Error;

use tonic::Status as RpcStatus;

/// What a status says.
pub(super) fn told_by(status: &RpcStatus) -> String {
    match status.source() {
        Some(source) => format!("{:?}: {}", status.code(), innermost(source)),
        None => format!("{:?}: {}", status.code(), status.message()),
    }
}

/// The innermost cause: "connection refused" stands there.
pub(super) fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}
