//! A document, and its content if it is valid.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use doorward_documents::Kind;

use crate::failure::{Failure, Result};
use crate::output;

/// A document under its name.
#[derive(Debug)]
pub(crate) struct Document<K: Kind> {
    /// For messages.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) read: Result<K, K::Error>,
}

impl<K: Kind> Document<K> {
    pub(crate) fn new(name: &str, bytes: Vec<u8>) -> Self {
        Self {
            name: name.to_owned(),
            read: K::parse(name, &bytes),
            bytes,
        }
    }

    /// Reads a file, or standard input for `-`.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let name = match path.to_string_lossy() {
            name if name == "-" => "standard input".to_owned(),
            name => name.into_owned(),
        };
        read(path, K::BYTES_MAX)
            .map(|bytes| Self::new(&name, bytes))
            .map_err(|error| {
                let advice = match path.is_dir() {
                    true => format!("; give its files, as in {name}/*.yaml"),
                    false => String::new(),
                };
                Failure::Usage(format!("{name}: cannot be read: {error}{advice}"))
            })
    }

    /// Returns the line of each problem, and its text; none if it is valid.
    pub(crate) fn problems(&self) -> Vec<(u64, String)> {
        self.read.as_ref().err().map_or_else(Vec::new, K::problems)
    }

    /// Returns its content. Prints all problems of an invalid one; `then` says what comes of them.
    pub(crate) fn valid(&self, then: &str) -> Result<&K> {
        self.read
            .as_ref()
            .map_err(|error| match writeln!(output::stderr(), "{error}") {
                Ok(()) => Failure::No(format!("{} is invalid{then}", self.name)),
                Err(error) => error.into(),
            })
    }

    /// Returns it as text. Invalid UTF-8 is replaced: only an invalid document has any.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// Not more than a document may have, and one byte to know that it has more.
fn read(file: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    let most = bytes_max as u64 + 1;
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        io::stdin().take(most).read_to_end(&mut bytes)?;
    } else {
        fs::File::open(file)?.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
