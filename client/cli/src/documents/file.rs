//! A document in a file, which is replaced as a whole.
//!
//! A write compares the content with the one that the operator saw, right before it replaces the file. A change by
//! another program in the instant between is lost. A file has no versions here: they belong in git.
//!
//! If the path is a symbolic link, the file it leads to is replaced, and the link stays.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::WriteResult;
use crate::failure::Failure;

/// Number of links that are followed.
const LINKS_MAX: usize = 32;

/// File with a document.
#[derive(Debug)]
pub(crate) struct DocumentFile {
    path: PathBuf,
}

impl DocumentFile {
    pub(crate) fn new(path: &Path) -> Self {
        Self { path: target(path) }
    }

    /// Returns the content. None: there is no file.
    pub(crate) fn read(&self) -> Result<Option<Vec<u8>>, Failure> {
        let path = &self.path;
        match fs::read(path) {
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
        let new = self.prepare(document).map_err(cannot)?;
        if self.read()?.as_deref() != seen {
            return Ok(WriteResult::Changed);
        }
        new.persist(&self.path)
            .map_err(|error| cannot(error.error))?;
        // Writes the new name to the disk, as far as the operating system does that.
        if let Ok(folder) = File::open(folder(&self.path)) {
            let _ = folder.sync_all();
        }
        Ok(WriteResult::Done(None))
    }

    /// Writes the new content to the disk, under another name.
    fn prepare(&self, document: &str) -> io::Result<NamedTempFile> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(".doorward-");
        let before = fs::metadata(&self.path).ok().map(|data| data.permissions());
        if let Some(permissions) = before.clone().or_else(usual_permissions) {
            builder.permissions(permissions);
        }
        let mut new = builder.tempfile_in(folder(&self.path))?;
        if let Some(permissions) = before {
            // The builder applies the umask; these are the permissions that the file had.
            new.as_file().set_permissions(permissions)?;
        }
        new.write_all(document.as_bytes())?;
        new.as_file().sync_all()?;
        Ok(new)
    }
}

/// Returns the path that a path leads to, whether a file is there or not.
fn target(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..LINKS_MAX {
        match fs::read_link(&path) {
            Ok(next) => path = folder(&path).join(next),
            Err(_) => break,
        }
    }
    path
}

pub(super) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

/// Permissions of a new file.
#[cfg(unix)]
fn usual_permissions() -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt;

    Some(Permissions::from_mode(0o666))
}

#[cfg(not(unix))]
fn usual_permissions() -> Option<Permissions> {
    None
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

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_stay() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["t.yaml", "link"].map(|name| folder.path().join(name));
        symlink("t.yaml", &link).unwrap();
        // The file that the link leads to is not there yet.
        let file = DocumentFile::new(&link);
        file.write(None, "one").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
        file.write(Some(b"one"), "two").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o664);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
