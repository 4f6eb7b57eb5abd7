//! Errors of commands, and their exit codes.

use std::io;

use thiserror::Error;

/// Reason for which a command failed.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The usage is wrong, or a given file is invalid.
    #[error("{0:#}")]
    Usage(#[from] anyhow::Error),
    /// A report cannot be written.
    #[error("{0:#}")]
    Report(anyhow::Error),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// The command has reported everything and ends with this exit code.
    #[error("exit code {0}")]
    Reported(u8),
}

impl Failure {
    /// Returns the exit code, as `--help` lists it.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Report(_) | Self::Output(_) => 1,
            Self::Usage(_) => 2,
            Self::Reported(code) => *code,
        }
    }
}
