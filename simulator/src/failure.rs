//! What can go wrong, and the exit code that scripts see.

use std::error::Error;
use std::io;

use thiserror::Error as ThisError;

/// Why a command did not do what it was asked.
#[derive(Debug, ThisError)]
pub(crate) enum Failure {
    /// What was asked makes no sense, or a file that was given is invalid.
    #[error("{0}")]
    Usage(String),
    /// A report cannot be written.
    #[error("{0}")]
    Report(String),
    /// The output cannot be written.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
    /// All has been said, and this is the exit code.
    #[error("exit code {0}")]
    Reported(u8),
}

impl Failure {
    /// Wrong usage, with whatever caused it.
    pub(crate) fn usage(error: &dyn Error) -> Self {
        Self::Usage(with_sources(error))
    }

    /// A report cannot be written, with whatever caused it.
    pub(crate) fn report(error: &dyn Error) -> Self {
        Self::Report(with_sources(error))
    }

    /// As `--help` says.
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
