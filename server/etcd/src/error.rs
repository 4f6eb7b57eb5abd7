//! What can go wrong with etcd.

use std::error::Error as StdError;

use thiserror::Error;

/// Why etcd did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Error {
    /// An endpoint did not answer, or could not: another one, or the same one later, may.
    #[error("etcd at {endpoint} does not answer ({what}): {problem}")]
    Unreachable {
        /// Which.
        endpoint: String,
        /// What it was asked.
        what: &'static str,
        /// Why, for people.
        problem: String,
    },
    /// etcd says no, and would elsewhere: wrong credentials, no permission, too large.
    #[error("etcd at {endpoint} refuses ({what}): {problem}")]
    Refused {
        /// Which.
        endpoint: String,
        /// What it was asked.
        what: &'static str,
        /// Why, for people.
        problem: String,
    },
    /// The lease is not there any more: it expired, or was revoked.
    #[error("the lease is gone")]
    LeaseGone,
}

impl Error {
    pub(crate) fn of(endpoint: &str, what: &'static str, error: &etcd_client::Error) -> Self {
        use tonic::Code;

        let endpoint = endpoint.to_owned();
        let problem = described(error);
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
                ) =>
            {
                Self::Refused {
                    endpoint,
                    what,
                    problem,
                }
            }
            _ => Self::Unreachable {
                endpoint,
                what,
                problem,
            },
        }
    }
}

/// What an error says, with its innermost cause: "connection refused" stands there.
fn described(error: &etcd_client::Error) -> String {
    let (said, mut cause): (String, Option<&(dyn StdError + 'static)>) = match error {
        // Whatever speaks gRPC answers so.
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
    let mut innermost = None;
    while let Some(error) = cause {
        innermost = Some(error.to_string());
        cause = error.source();
    }
    match innermost {
        Some(cause) if !said.contains(&cause) => format!("{said} ({cause})"),
        _ => said,
    }
}
