//! Errors of commands, and their exit codes.

use std::error::Error;
use std::io;

use thiserror::Error as ThisError;

/// Reason for which a command failed.
#[derive(Debug, ThisError)]
pub(crate) enum Failure {
    /// The usage is wrong, or a given file is invalid.
    #[error("{0}")]
    Usage(String),
    /// A report cannot be written.
    #[error("{0}")]
    Report(String),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// The command has reported everything and ends with this exit code.
    #[error("exit code {0}")]
    Reported(u8),
}

impl Failure {
    /// Returns a usage error with its causes.
    pub(crate) fn usage(error: &dyn Error) -> Self {
        Self::Usage(with_sources(error))
    }

    /// Returns an error of the report with its causes.
    pub(crate) fn report(error: &dyn Error) -> Self {
        Self::Report(with_sources(error))
    }

    /// Returns the exit code, as `--help` lists it.
    pub(crate) const fn exit_code(&self) -> u8 {
        match self {
            Self::Report(_) | Self::Output(_) => 1,
            Self::Usage(_) => 2,
            Self::Reported(code) => *code,
        }
    }
}

fn with_sources(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text += &format!(": {source}");
        next = source.source();
    }
    text
}
