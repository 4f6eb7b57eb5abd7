//! A document in a file, which is replaced as a whole.
//!
//! A write compares the content with the one that the operator saw, right before it replaces the file. A change by
//! another program in the instant between is lost. A file has no versions here: they belong in git.

use std::io;
use std::path::Path;

use doorward::rules::document::DOCUMENT_BYTES_MAX;
use doorward_files::{Replacement, read_regular};

use super::WriteResult;
use crate::failure::{Failure, Result};

/// Returns the content. None: there is no file.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match read_regular(path, DOCUMENT_BYTES_MAX) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => {
            let path = path.display();
            Err(Failure::Usage(format!("{path}: cannot be read: {error}")))
        }
    }
}

/// Replaces the file, unless its content differs from what was seen.
pub(crate) fn write(path: &Path, seen: Option<&[u8]>, document: &str) -> Result<WriteResult> {
    let cannot = |error: io::Error| {
        let path = path.display();
        Failure::No(format!("cannot write {path}: {error}. Nothing was written"))
    };
    let new = Replacement::prepare(path, document.as_bytes()).map_err(cannot)?;
    if read(path)?.as_deref() != seen {
        return Ok(WriteResult::Changed);
    }
    new.put().map_err(cannot)?;
    Ok(WriteResult::Done(None))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_has_changed_since_it_was_read_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.yaml");
        assert_eq!(read(&file).unwrap(), None);
        let done = WriteResult::Done(None);
        assert_eq!(write(&file, None, "one").unwrap(), done);
        for seen in [None, Some(&b"two"[..])] {
            assert_eq!(write(&file, seen, "other").unwrap(), WriteResult::Changed);
        }
        assert_eq!(read(&file).unwrap().unwrap(), b"one");
        assert_eq!(write(&file, Some(b"one"), "two").unwrap(), done);
        assert_eq!(read(&file).unwrap().unwrap(), b"two");
    }
}
