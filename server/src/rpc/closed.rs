//! How a parent tells a child server why it ends a stream, or refuses it or a call: by name, in a trailer of
//! its own. The text of the status is for people, and decides nothing.
//!
//! **Absent**, both ways: a parent of an older release tells no name, and a later one may tell a name that this
//! release does not know. Then the code of the status decides, as far as it can. A child of the release
//! before reads no name: it goes by the codes too, and, of [`CloseReason::is_replacement`], by how the text
//! begins ([`REPLACED`]).

use std::time::Duration;

use doorward_session::backoff;
use doorward_session::close_reason::{CloseReason, ConnectionEnd};
use tonic::metadata::MetadataValue;
use tonic::{Code, Status as RpcStatus};

use crate::rpc::overload::PUSHBACK;

/// The trailer: one of the names of [`CloseReason`].
const CLOSED: &str = "doorward-closed";

/// How the text begins by which a child of the release before knows that its node has a newer stream.
pub const REPLACED: &str = "a newer";

/// A status that says why, by name.
pub fn told(closing: CloseReason, mut status: RpcStatus) -> RpcStatus {
    let name = MetadataValue::from_static(closing.as_str());
    status.metadata_mut().insert(CLOSED, name);
    status
}

/// What a child server makes of the end of its stream, or of a call that failed.
pub fn heard(status: &RpcStatus) -> ConnectionEnd {
    let name = status.metadata().get(CLOSED);
    let known = name.and_then(|name| CloseReason::parse(name.to_str().ok()?));
    if let Some(closing) = known {
        return ConnectionEnd::ByParent(closing);
    }
    if let Some(retry_in) = pushback(status) {
        return ConnectionEnd::Overloaded(retry_in);
    }
    match status.code() {
        Code::Aborted => ConnectionEnd::ByParent(CloseReason::Replaced),
        Code::AlreadyExists => ConnectionEnd::ByParent(CloseReason::AnotherProcess),
        Code::FailedPrecondition => ConnectionEnd::ByParent(CloseReason::Cycle),
        Code::Unimplemented => ConnectionEnd::Unimplemented,
        // These decide nothing, whoever made them: a parent, or the connection.
        _ => ConnectionEnd::Failed,
    }
}

/// When to come back, if the parent is too busy and says so.
fn pushback(status: &RpcStatus) -> Option<Duration> {
    let is_busy = matches!(status.code(), Code::ResourceExhausted | Code::Unavailable);
    let told = status.metadata().get(PUSHBACK).filter(|_| is_busy)?;
    backoff::pushback(told.to_str().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_hears_the_reason_that_its_parent_tells_whatever_the_code_and_the_text() {
        for closing in CloseReason::ALL {
            for code in [Code::Ok, Code::Aborted, Code::Unavailable] {
                let status = told(closing, RpcStatus::new(code, "a newer way to say it"));
                assert_eq!(heard(&status), ConnectionEnd::ByParent(closing));
            }
        }
    }

    #[test]
    fn of_a_parent_that_tells_no_name_or_an_unknown_one_the_code_counts() {
        for (code, closed) in [
            (
                Code::Aborted,
                ConnectionEnd::ByParent(CloseReason::Replaced),
            ),
            (
                Code::AlreadyExists,
                ConnectionEnd::ByParent(CloseReason::AnotherProcess),
            ),
            (
                Code::FailedPrecondition,
                ConnectionEnd::ByParent(CloseReason::Cycle),
            ),
            (Code::Unimplemented, ConnectionEnd::Unimplemented),
            (Code::ResourceExhausted, ConnectionEnd::Failed),
            (Code::Unavailable, ConnectionEnd::Failed),
            (Code::DeadlineExceeded, ConnectionEnd::Failed),
            (Code::InvalidArgument, ConnectionEnd::Failed),
            (Code::Internal, ConnectionEnd::Failed),
            (Code::Unknown, ConnectionEnd::Failed),
        ] {
            let mut status = RpcStatus::new(code, "a newer stream took the place of this one");
            assert_eq!(heard(&status), closed, "{code:?}");
            let unknown = MetadataValue::from_static("of-a-later-release");
            status.metadata_mut().insert(CLOSED, unknown);
            assert_eq!(heard(&status), closed, "{code:?}");
        }
    }
}
