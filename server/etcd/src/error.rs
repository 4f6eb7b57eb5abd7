//! Errors of calls to etcd.

use std::error::Error as StdError;

use thiserror::Error;

/// Why etcd did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// An endpoint did not answer, or could not: another one, or the same one later, may.
    #[error("etcd at {} does not answer ({}): {}", .0.endpoint, .0.what, .0.problem)]
    Unreachable(FailedCall),
    /// etcd says no, and would elsewhere: wrong credentials, no permission, too large.
    #[error("etcd at {} refuses ({}): {}", .0.endpoint, .0.what, .0.problem)]
    Refused(FailedCall),
    /// The lease is not there any more: it expired, or was revoked.
    #[error("the lease is gone")]
    LeaseGone,
}

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCall {
    /// The endpoint.
    pub endpoint: String,
    /// Name of the call.
    pub what: &'static str,
    /// The reason, for people.
    pub problem: String,
}

impl Error {
    /// Adds a hint to an error of an endpoint that has never answered so far.
    pub(crate) fn of_stranger(mut self) -> Self {
        if let Self::Unreachable(call) | Self::Refused(call) = &mut self
            && let Some(hint) = hint(&call.endpoint, &call.problem)
        {
            call.problem = format!("{}; {hint}", call.problem);
        }
        self
    }

    pub(crate) fn of(endpoint: &str, what: &'static str, error: &etcd_client::Error) -> Self {
        use tonic::Code;

        let failed = FailedCall {
            endpoint: endpoint.to_owned(),
            what,
            problem: described(error),
        };
        match error {
            etcd_client::Error::LeaseKeepAliveError(_) => Self::LeaseGone,
            etcd_client::Error::GRpcStatus(status)
                if status.message().contains("requested lease not found") =>
            {
                Self::LeaseGone
            }
            etcd_client::Error::GRpcStatus(status)
                if matches!(
                    status.code(),
                    Code::InvalidArgument
                        | Code::PermissionDenied
                        | Code::Unauthenticated
                        | Code::FailedPrecondition
                        | Code::OutOfRange
                        | Code::Unimplemented
                ) || status.message().contains("database space exceeded") =>
            {
                Self::Refused(failed)
            }
            _ => Self::Unreachable(failed),
        }
    }
}

/// Returns a hint at the cause, for operators who have yet to find the right flags.
fn hint(endpoint: &str, problem: &str) -> Option<&'static str> {
    const HUNG_UP: [&str; 5] = [
        "broken pipe",
        "connection closed",
        "connection reset",
        "reset by peer",
        "protocol error",
    ];
    let is_tls = endpoint.starts_with("https:");
    let says = |what: &[&str]| what.iter().any(|what| problem.contains(what));
    let hint = if says(&["UnknownIssuer", "BadSignature"]) {
        "its certificate is not from the authority that was given"
    } else if says(&["fatal alert"]) {
        "it may ask for a client certificate, or not believe the one it got"
    } else if says(&["handshake eof", "InvalidContentType"]) {
        "it may speak no TLS: then give http://"
    } else if is_tls && says(&HUNG_UP) {
        "it may ask for a client certificate, or not believe the one it got, or speak no TLS: then \
         give http://"
    } else if says(&HUNG_UP) {
        "it may be no etcd, or speak TLS: then give https://"
    } else if says(&["user name is empty"]) {
        "it asks for a user and a password"
    } else if says(&["authentication is not enabled"]) {
        "it has no users: give none"
    } else {
        return None;
    };
    Some(hint)
}

/// Returns the innermost cause of an error, such as "connection refused".
pub fn innermost(error: &(dyn StdError + 'static)) -> String {
    let cause = error.source();
    cause.map_or_else(|| error.to_string(), innermost)
}

/// Returns the message of an error, with its innermost cause.
fn described(error: &etcd_client::Error) -> String {
    let (said, cause): (String, Option<&(dyn StdError + 'static)>) = match error {
        // Any gRPC server gives this answer to an unknown call.
        etcd_client::Error::GRpcStatus(status) if status.code() == tonic::Code::Unimplemented => {
            ("it does not know this call: is it etcd?".to_owned(), None)
        }
        etcd_client::Error::GRpcStatus(status) if status.message().is_empty() => {
            (status.code().description().to_owned(), status.source())
        }
        etcd_client::Error::GRpcStatus(status) => (status.message().to_owned(), status.source()),
        etcd_client::Error::TransportError(error) => (error.to_string(), error.source()),
        other => (other.to_string(), None),
    };
    match cause.map(innermost) {
        Some(cause) if !said.contains(&cause) => format!("{said} ({cause})"),
        _ => said,
    }
}
