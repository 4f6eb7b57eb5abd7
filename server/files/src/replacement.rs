//! A file that is replaced as a whole: readers see the former content or the new one, and so does the disk after a
//! power cut.
//!
//! If the path is a symbolic link, the file it leads to is replaced, and the link stays.

use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Number of links that are followed.
const LINKS_MAX: usize = 32;

/// A new content, which is on the disk under another name. It is removed if it is not [put](Self::put).
#[derive(Debug)]
pub struct Replacement {
    new: NamedTempFile,
    path: PathBuf,
}

impl Replacement {
    /// Writes a content beside the file that it is for. The name is hidden, so no reader of the directory takes it. The
    /// permissions are those of the file, if there is one.
    ///
    /// # Errors
    ///
    /// If it cannot be written.
    pub fn prepare(path: &Path, content: &[u8]) -> io::Result<Self> {
        let path = target(path);
        let mut builder = tempfile::Builder::new();
        builder.prefix(".doorward-");
        let before = fs::metadata(&path).ok().map(|data| data.permissions());
        let usual = || Permissions::from_mode(0o666);
        builder.permissions(before.clone().unwrap_or_else(usual));
        let mut new = builder.tempfile_in(folder(&path))?;
        if let Some(permissions) = before {
            // The builder applies the umask; these are the permissions that the file had.
            new.as_file().set_permissions(permissions)?;
        }
        new.write_all(content)?;
        new.as_file().sync_all()?;
        Ok(Self { new, path })
    }

    /// Puts the content in the place of the file.
    ///
    /// # Errors
    ///
    /// If the file cannot be replaced. It is as before then.
    pub fn put(self) -> io::Result<()> {
        self.new.persist(&self.path).map_err(|error| error.error)?;
        // Writes the new name to the disk, as far as the operating system does that.
        if let Ok(folder) = File::open(folder(&self.path)) {
            let _ = folder.sync_all();
        }
        Ok(())
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

/// Returns the folder of a file.
pub fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_and_permissions_stay() {
        let folder = tempfile::tempdir().unwrap();
        let [path, link] = ["t.yaml", "link"].map(|name| folder.path().join(name));
        symlink("t.yaml", &link).unwrap();
        let replace = |content: &str| Replacement::prepare(&link, content.as_bytes())?.put();
        // The file that the link leads to is not there yet.
        replace("one").unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o664)).unwrap();
        replace("two").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o664);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
        drop(Replacement::prepare(&link, b"three").unwrap());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
