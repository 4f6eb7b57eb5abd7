//! Problems of rule documents: what is wrong, where, and what to write instead.

use std::fmt;
use std::ops::Deref;

use thiserror::Error;

debug_by_text!(Problems);

/// Largest number of problems that a text shows.
const SHOWN_MAX: usize = 1_000;

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

/// All problems of documents, in their order and by line. The text has a line for each.
#[derive(Clone, Default, PartialEq, Eq, Error)]
pub struct Problems(pub Vec<Problem>);

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.iter().take(SHOWN_MAX);
        let lines: Vec<String> = shown.map(ToString::to_string).collect();
        f.write_str(&lines.join("\n"))?;
        match self.0.len() - lines.len() {
            0 => Ok(()),
            more => write!(f, "\nand {more} more problems"),
        }
    }
}

impl Deref for Problems {
    type Target = Vec<Problem>;

    fn deref(&self) -> &Vec<Problem> {
        &self.0
    }
}
