//! What can go wrong, and the exit code that scripts see.

use std::io;

use thiserror::Error;

/// Why a command did not do what it was asked.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The answer is no: refused, unknown, or a document that is not in order.
    #[error("{0}")]
    No(String),
    /// What was asked makes no sense.
    #[error("{0}")]
    Usage(String),
    /// No server could be asked.
    #[error("{0}")]
    Unreachable(String),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// All has been said, and this is the exit code.
    #[error("exit code {0}")]
    Told(u8),
}

impl Failure {
    /// The same kind of failure, of a script of which so many commands failed.
    pub(crate) fn of_script(self, failures: usize) -> Self {
        let message = format!("{failures} of the script's commands failed");
        match self {
            Self::No(_) => Self::No(message),
            Self::Usage(_) => Self::Usage(message),
            Self::Unreachable(_) => Self::Unreachable(message),
            Self::Output(error) => Self::Output(error),
            Self::Told(code) => Self::Told(code),
        }
    }

    /// As `--help` says.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::No(_) | Self::Output(_) => 1,
            Self::Usage(_) => 2,
            Self::Unreachable(_) => 3,
            Self::Told(code) => *code,
        }
    }
}
