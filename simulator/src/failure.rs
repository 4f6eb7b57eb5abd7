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
    /// The command has reported everything: a limit is violated, or a seed fails.
    #[error("reported")]
    Reported,
}
