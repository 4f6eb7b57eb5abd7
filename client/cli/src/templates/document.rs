//! A document, and what it says if it is valid.

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use doorward_documents::{DocumentError, Located};
use doorward_engine::template::Templates;

use crate::failure::Failure;

/// A document under its name.
#[derive(Debug)]
pub(crate) struct Document {
    /// For messages.
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) read: Result<Located, DocumentError>,
}

impl Document {
    pub(crate) fn new(name: &str, bytes: Vec<u8>) -> Self {
        Self {
            read: doorward_documents::locate_bytes(&bytes, name),
            name: name.to_owned(),
            bytes,
        }
    }

    /// Reads a file, or standard input for `-`.
    pub(crate) fn read(file: &Path) -> Result<Self, Failure> {
        let name = name_of(file);
        match read(file) {
            Ok(bytes) => Ok(Self::new(&name, bytes)),
            Err(error) => Err(Failure::Usage(format!("{name}: cannot be read: {error}"))),
        }
    }

    /// Returns its templates, if it is valid.
    pub(crate) fn templates(&self) -> Result<&Templates, &DocumentError> {
        self.read.as_ref().map(|located| &located.templates)
    }

    /// Returns it as text. Invalid UTF-8 is replaced: only an invalid document has any.
    pub(crate) fn text(&self) -> std::borrow::Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}

/// Returns the name of a file in messages.
pub(crate) fn name_of(file: &Path) -> String {
    if file == Path::new("-") {
        "standard input".to_owned()
    } else {
        file.to_string_lossy().into_owned()
    }
}

/// Not more than a document may have, and one byte to know that it has more.
pub(crate) fn read(file: &Path) -> io::Result<Vec<u8>> {
    let most = doorward_documents::DOCUMENT_BYTES_MAX as u64 + 1;
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        io::stdin().take(most).read_to_end(&mut bytes)?;
    } else {
        fs::File::open(file)?.take(most).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
