//! Problems of a rule document: what is wrong, where, and what to write instead.

use thiserror::Error;

/// One problem of a document.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}: {message}")]
pub struct Problem {
    /// Name of the file, as the caller gave it.
    pub file: String,
    /// Line, from 1.
    pub line: u64,
    /// The field, its problem, and what to write instead.
    pub message: String,
}
