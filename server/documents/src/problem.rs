//! Problems of a document, and their places.
//!
//! All problems are kept. The number of those shown has a limit, since they go to a log line, the status page and
//! a gRPC message, and a document of a megabyte can have a hundred thousand problems.

use std::error::Error;
use std::fmt;

use doorward_yaml::{Position, shortened};

/// The most problems that `Display` shows.
pub const PROBLEMS_SHOWN_MAX: usize = 1000;

/// Everything that is wrong with a document. `Display` gives a line for each problem, up to
/// [`PROBLEMS_SHOWN_MAX`], and says how many more there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError {
    /// The document's name.
    pub file: String,
    /// At least one, in the order they stand.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: u64,
    /// The column, from 1.
    pub column: u64,
    /// Which template, from 1, and its glob if it has one.
    pub template: Option<(usize, Option<String>)>,
    /// Which field of it, as a path: `algorithm.kind`.
    pub field: Option<String>,
    /// The problem and the remedy.
    pub message: String,
}

impl Problem {
    /// One that concerns the document as a whole.
    pub fn of_document(place: Position, message: impl Into<String>) -> Self {
        Self {
            line: place.line,
            column: place.column,
            template: None,
            field: None,
            message: message.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.template {
            Some((number, Some(glob))) => {
                let (glob, more) = shortened(glob);
                write!(f, "template {number} ({glob:?}{more}): ")?;
            }
            Some((number, None)) => write!(f, "template {number}: ")?,
            None => {}
        }
        if let Some(field) = &self.field {
            write!(f, "{field}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().take(PROBLEMS_SHOWN_MAX).enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            let Problem { line, column, .. } = problem;
            write!(f, "{separator}{}:{line}:{column}: {problem}", self.file)?;
        }
        match self.problems.len().saturating_sub(PROBLEMS_SHOWN_MAX) {
            0 => Ok(()),
            more => write!(f, "\n{}: and {more} more problems", self.file),
        }
    }
}

impl Error for DocumentError {}
