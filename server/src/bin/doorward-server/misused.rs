//! Wrong usage of the command line.

use std::fmt::Display;

use thiserror::Error;

/// Flags that are invalid together.
#[derive(Debug, Error)]
#[error("{0}")]
pub(crate) struct Misused(pub(crate) String);

impl Misused {
    /// Takes the text of an error.
    pub(crate) fn of(error: impl Display) -> Self {
        Self(error.to_string())
    }
}
