//! What went wrong on the way to the parent, for people.

use std::error::Error;

use doorward_etcd::error::innermost;
use tonic::Status as RpcStatus;

/// What a status says.
pub(super) fn told_by(status: &RpcStatus) -> String {
    match status.source() {
        Some(source) => format!("{:?}: {}", status.code(), innermost(source)),
        None => format!("{:?}: {}", status.code(), status.message()),
    }
}
