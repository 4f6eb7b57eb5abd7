//! Problems on the way to the parent, for people.

use std::error::Error;

use doorward_etcd::error::innermost;
use doorward_session::visible;
use tonic::Status as RpcStatus;

/// Returns the text of a gRPC status, with every character visible.
pub(super) fn problem_of(status: &RpcStatus) -> String {
    let source = status.source().map(innermost);
    let text = source.as_deref().unwrap_or(status.message());
    format!("{:?}: {}", status.code(), visible::cut(text))
}
