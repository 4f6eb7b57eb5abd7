//! A document in a file, which is replaced as a whole.
//!
//! A write compares the content with the one that the operator saw, right before it replaces the file. A change by
//! another program in the instant between is lost. A file has no versions here: they belong in git.

use std::io;
use std::path::{Path, PathBuf};

use doorward::rules::document::DOCUMENT_BYTES_MAX;
use doorward_files::{Replacement, read_regular};

use super::WriteResult;
use crate::failure::Failure;

/// File with a document.
#[derive(Debug)]
pub(crate) struct DocumentFile {
    path: PathBuf,
}

impl DocumentFile {
    pub(crate) fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
        }
    }

    /// Returns the content. None: there is no file.
    pub(crate) fn read(&self) -> Result<Option<Vec<u8>>, Failure> {
        let path = &self.path;
        match read_regular(path, DOCUMENT_BYTES_MAX) {
            Ok(content) => Ok(Some(content)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Failure::Usage(format!(
                "{}: cannot be read: {error}",
                path.display()
            ))),
        }
    }

    /// Replaces the file, unless its content differs from what was seen.
    pub(crate) fn write(
        &self,
        seen: Option<&[u8]>,
        document: &str,
    ) -> Result<WriteResult, Failure> {
        let cannot = |error: io::Error| {
            let path = self.path.display();
            Failure::No(format!("cannot write {path}: {error}. Nothing was written"))
        };
        let new = Replacement::prepare(&self.path, document.as_bytes()).map_err(cannot)?;
        if self.read()?.as_deref() != seen {
            return Ok(WriteResult::Changed);
        }
        new.put().map_err(cannot)?;
        Ok(WriteResult::Done(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_has_changed_since_it_was_read_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = DocumentFile::new(&folder.path().join("t.yaml"));
        assert_eq!(file.read().unwrap(), None);
        let done = WriteResult::Done(None);
        assert_eq!(file.write(None, "one").unwrap(), done);
        for seen in [None, Some(&b"two"[..])] {
            assert_eq!(file.write(seen, "other").unwrap(), WriteResult::Changed);
        }
        assert_eq!(file.read().unwrap().unwrap(), b"one");
        assert_eq!(file.write(Some(b"one"), "two").unwrap(), done);
        assert_eq!(file.read().unwrap().unwrap(), b"two");
    }
}
