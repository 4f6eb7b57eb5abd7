//! The reason why a parent ends a stream of a child server, or refuses a stream or a call. The parent sends it as a
//! name, in a trailer of its own. The text of the status is only for people.
//!
//! **Absent or unknown**: a parent of an older release sends no name, and a newer one may send a name that this release
//! does not know. Then the child decides by the code of the status, as far as it can. A child of the previous release
//! reads no name. It decides by the code too, and for [`CloseReason::is_replacement`] by the beginning of the text
//! ([`REPLACED`]).

use std::time::Duration;

use doorward_door::overload::PUSHBACK;
use doorward_session::backoff;
use doorward_session::close_reason::{CloseReason, ConnectionEnd};
use tonic::metadata::MetadataValue;
use tonic::{Code, Status as RpcStatus};

/// Trailer with one of the names of [`CloseReason`].
const CLOSED: &str = "doorward-closed";

/// Beginning of the text that tells a child of the previous release about a newer stream of its node.
pub const REPLACED: &str = "a newer";

/// Adds the name of the reason to a status.
pub fn with_reason(closing: CloseReason, mut status: RpcStatus) -> RpcStatus {
    let name = MetadataValue::from_static(closing.as_str());
    status.metadata_mut().insert(CLOSED, name);
    status
}

/// Returns the meaning, for a child server, of the end of its stream or of a failed call.
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
        // Either a parent or the connection may produce these codes, so they carry no decision of the parent.
        _ => ConnectionEnd::Failed,
    }
}

/// Returns the retry delay of a parent that is too busy, if it sends one.
fn pushback(status: &RpcStatus) -> Option<Duration> {
    let is_busy = matches!(status.code(), Code::ResourceExhausted | Code::Unavailable);
    let wait = status.metadata().get(PUSHBACK).filter(|_| is_busy)?;
    backoff::pushback(wait.to_str().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_hears_the_reason_that_its_parent_tells_whatever_the_code_and_the_text() {
        for closing in CloseReason::ALL {
            for code in [Code::Ok, Code::Aborted, Code::Unavailable] {
                let status = with_reason(closing, RpcStatus::new(code, "a newer way to say it"));
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
            (Code::PermissionDenied, ConnectionEnd::Failed),
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
