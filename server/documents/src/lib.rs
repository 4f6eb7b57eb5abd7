//! Template documents: YAML in, templates or every problem out.
//!
//! The format is Doorman's (`docs/configuration.md`). A document that is not in order is refused
//! as a whole, with every problem in it at once: its line and column, which template, which field,
//! what is wrong and what to do. Servers and the command line read documents with this one crate.
//!
//! ```
//! let text = "
//! resources:
//! - identifier_glob: db/*
//!   capacity: 100
//!   algorithm: {kind: FAIR_SHARE, lease_length: 1m, refresh_interval: 5}
//! ";
//! let templates = doorward_documents::parse_yaml(text, "templates.yaml").unwrap();
//! assert_eq!(templates.len(), 1);
//!
//! let wrong = text.replace("100", "many");
//! let error = doorward_documents::parse_yaml(&wrong, "templates.yaml").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "templates.yaml:4:13: template 1 (\"db/*\"): capacity: is \"many\"; give a number",
//! );
//! ```

mod problem;
mod reader;
mod tree;

use doorward_engine::template::Templates;
pub use problem::{DocumentError, PROBLEMS_SHOWN_MAX, Problem};
use serde_saphyr::Error as YamlError;
use serde_saphyr::options::{DuplicateKeyPolicy, NonFiniteFloatPolicy};

use crate::reader::Reader;
use crate::tree::{Node, Place};

/// The largest document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

/// Reads a document; `file` is its name for messages.
///
/// # Errors
///
/// Every problem in it.
pub fn parse_yaml(text: &str, file: &str) -> Result<Templates, DocumentError> {
    parse(text).map_err(|mut problems| {
        problems.sort_by_key(|problem| (problem.line, problem.column));
        DocumentError {
            file: file.to_owned(),
            problems,
        }
    })
}

/// Reads a document that may not even be text.
///
/// # Errors
///
/// Every problem in it.
pub fn parse_bytes(bytes: &[u8], file: &str) -> Result<Templates, DocumentError> {
    let problem = match std::str::from_utf8(bytes) {
        Ok(text) => return parse_yaml(text, file),
        // The reader of a file stops behind the limit, perhaps in the middle of a character.
        Err(_) if bytes.len() > DOCUMENT_BYTES_MAX => too_large(),
        Err(error) => {
            let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
            let line = before.iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
            let place = Place { line, column: 1 };
            Problem::of_document(place, "is not UTF-8 text; save it as UTF-8")
        }
    };
    Err(DocumentError {
        file: file.to_owned(),
        problems: vec![problem],
    })
}

/// The example templates that a server without a template file starts with, as YAML.
pub const BUILT_IN: &str = include_str!("built_in.yaml");

/// The example templates that a server without a template file starts with.
///
/// # Errors
///
/// None: a test reads them.
pub fn built_in() -> Result<Templates, DocumentError> {
    parse_yaml(BUILT_IN, "built-in examples")
}

fn parse(text: &str) -> Result<Templates, Vec<Problem>> {
    if text.len() > DOCUMENT_BYTES_MAX {
        return Err(vec![too_large()]);
    }
    let options = serde_saphyr::options! {
        with_snippet: false,
        // Numbers that are none, and keys given twice, are reported with their field. Despite its
        // name this policy hands over both entries to who asks for them one by one, as we do.
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        duplicate_keys: DuplicateKeyPolicy::LastWins,
    };
    let document = serde_saphyr::from_str_with_options::<Option<Node>>(text, options);
    let document = document.map_err(|error| vec![no_document(&error)])?;
    Reader::default().read(document.as_ref())
}

/// How many bytes there are is not known: whoever reads a file stops behind the limit.
fn too_large() -> Problem {
    let message = format!("is larger than the {DOCUMENT_BYTES_MAX} bytes that a document may have");
    Problem::of_document(Place::START, message)
}

/// What the parser could make nothing of.
fn no_document(error: &YamlError) -> Problem {
    let place = error.location().map_or(Place::START, |location| Place {
        line: location.line().max(1),
        column: location.column().max(1),
    });
    if let YamlError::MultipleDocuments { .. } = error {
        let message = "a second document starts here; put all templates into one";
        return Problem::of_document(place, message);
    }
    // The place is ours to say; the rest of the first line says what is wrong.
    let message = error.render();
    let message = message.lines().next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let message = message
        .split_once(" at line ")
        .map_or(message, |(message, _)| message);
    let hint = if message.contains("alias") {
        "; a glob that starts with '*' needs quotes"
    } else {
        ""
    };
    Problem::of_document(place, format!("is no YAML: {message}{hint}"))
}

#[cfg(test)]
mod tests;
