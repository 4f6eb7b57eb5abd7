//! What went wrong on the way to the parent, for people.

use std::error::Error;

use doorward_etcd::error::innermost;
use doorward_session::visible;
use tonic::Status as RpcStatus;

/// What a status says, so that everything in it can be seen.
pub(super) fn told_by(status: &RpcStatus) -> String {
    let source = status.source().map(innermost);
    let told = source.as_deref().unwrap_or(status.message());
    format!("{:?}: {}", status.code(), visible::cut(told))
}
