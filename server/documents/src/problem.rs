//! What is wrong with a document, and where.

use std::error::Error;
use std::fmt;

use crate::tree::Place;

/// Everything that is wrong with a document. `Display` gives a line for each problem.
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
    /// What is wrong and what to do.
    pub message: String,
}

impl Problem {
    /// One that concerns the document as a whole.
    pub(crate) fn of_document(place: Place, message: impl Into<String>) -> Self {
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
            Some((number, Some(glob))) => write!(f, "template {number} ({glob:?}): ")?,
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
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            let Problem { line, column, .. } = problem;
            write!(f, "{separator}{}:{line}:{column}: {problem}", self.file)?;
        }
        Ok(())
    }
}

impl Error for DocumentError {}
