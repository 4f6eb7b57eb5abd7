//! Kinds of documents: servers, the command line and etcd treat them alike.

use std::error::Error;

use crate::{BUILT_IN, DOCUMENT_BYTES_MAX, DocumentError, Located, locate_bytes};

/// Content of a valid document. The default is the content where there is no document.
pub trait Kind: Default {
    /// Noun of one of its parts. With an s, it names the document and the command.
    const NOUN: &'static str;
    /// Key in etcd, unless the operator gives another.
    const KEY: &'static str;
    /// Environment variable with the place of the document.
    const VARIABLE: &'static str;
    /// Text that a first document starts from.
    const EXAMPLE: &'static str;
    /// Largest file, in bytes.
    const BYTES_MAX: usize;
    /// All problems of a document. `Display` gives a line for each, with its place.
    type Error: Error;

    /// Reads a document; its name is for messages.
    ///
    /// # Errors
    ///
    /// All problems.
    fn parse(name: &str, bytes: &[u8]) -> Result<Self, Self::Error>;

    /// Returns the line of each problem, from 1, and its text. At least one.
    fn problems(error: &Self::Error) -> Vec<(u64, String)>;
}

impl Kind for Located {
    const NOUN: &'static str = "template";
    const KEY: &'static str = "/doorward/templates";
    const VARIABLE: &'static str = "DOORWARD_TEMPLATES";
    const EXAMPLE: &'static str = BUILT_IN;
    const BYTES_MAX: usize = DOCUMENT_BYTES_MAX;
    type Error = DocumentError;

    fn parse(name: &str, bytes: &[u8]) -> Result<Self, DocumentError> {
        locate_bytes(bytes, name)
    }

    fn problems(error: &DocumentError) -> Vec<(u64, String)> {
        let problems = error.problems.iter();
        problems.map(|it| (it.line, it.to_string())).collect()
    }
}
