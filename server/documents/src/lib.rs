//! Documents: YAML in, templates or every problem out; and what documents of all kinds have in common.
//!
//! The format is Doorman's (`docs/configuration.md`). An invalid document is refused
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

mod duration;
mod kind;
mod places;
mod problem;
mod reader;
#[cfg(feature = "warnings")]
mod template_status;
#[cfg(feature = "warnings")]
pub mod warnings;

use doorward_engine::templates::Templates;
use doorward_yaml::Format;
pub use duration::{DurationError, parse_duration, parse_duration_within};
pub use kind::Kind;
pub use places::{Located, TemplatePlaces};
pub use problem::{DocumentError, PROBLEMS_SHOWN_MAX, Problem};
#[cfg(feature = "warnings")]
pub use template_status::template_status;

use crate::reader::TemplateReader;

/// The largest document, in bytes.
pub const DOCUMENT_BYTES_MAX: usize = 1024 * 1024;

const FORMAT: Format = Format {
    bytes_max: DOCUMENT_BYTES_MAX,
    if_larger: "",
    if_several: "put everything into one",
};

/// Reads a document; `file` is its name for messages.
///
/// # Errors
///
/// Every problem in it.
pub fn parse_yaml(text: &str, file: &str) -> Result<Templates, DocumentError> {
    parse_bytes(text.as_bytes(), file)
}

/// Reads a document that may not even be text.
///
/// # Errors
///
/// Every problem in it.
pub fn parse_bytes(bytes: &[u8], file: &str) -> Result<Templates, DocumentError> {
    locate_bytes(bytes, file).map(|located| located.templates)
}

/// The same, with where the templates stand.
///
/// # Errors
///
/// Every problem in it.
pub fn locate_bytes(bytes: &[u8], file: &str) -> Result<Located, DocumentError> {
    let located = match FORMAT.read(bytes) {
        Ok(document) => TemplateReader::default().read(document.as_ref()),
        Err((place, message)) => Err(vec![Problem::of_document(place, message)]),
    };
    located.map_err(|mut problems| {
        problems.sort_by_key(|problem| (problem.line, problem.column));
        DocumentError {
            file: file.to_owned(),
            problems,
        }
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

/// Returns the known word that is meant by a misspelt one, if one is near.
pub fn near<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let known = known.iter();
    let distances = known.map(|word| (strsim::levenshtein(written, word), *word));
    let (distance, word) = distances.min()?;
    (distance <= 1 + word.len() / 5).then_some(word)
}

#[cfg(test)]
mod remark_tests;
#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod tests;
