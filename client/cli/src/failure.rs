//! Failures of a command, and the exit codes that scripts see.

use std::io;

use thiserror::Error;

/// Result of a command or a part of it.
pub(crate) type Result<T = (), E = Failure> = std::result::Result<T, E>;

/// Why a command did not do what it was asked.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The answer is no: refused, unknown, or an invalid document.
    #[error("{0}")]
    No(String),
    /// Wrong usage.
    #[error("{0}")]
    Usage(String),
    /// No server could be asked.
    #[error("{0}")]
    Unreachable(String),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// The output says all, and this is the exit code.
    #[error("exit code {0}")]
    Printed(u8),
}

/// With advice.
impl From<doorward_etcd::Error> for Failure {
    fn from(error: doorward_etcd::Error) -> Self {
        match error {
            doorward_etcd::Error::Unreachable { .. } => Self::Unreachable(format!(
                "{error}. Is etcd running there? --etcd-endpoints says where to look"
            )),
            doorward_etcd::Error::Refused { .. } | doorward_etcd::Error::LeaseGone => {
                Self::No(error.to_string())
            }
        }
    }
}

impl Failure {
    /// As `--help` says.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::No(_) | Self::Output(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
            Self::Printed(code) => *code,
        }
    }
}
