//! Templates in a file that operators edit.
//!
//! The server reads the file every second and compares its content. So it sees a file that is written in place, a
//! file that an editor replaces, and a symbolic link that Kubernetes turns to another folder, on every file system.
//! `reading` says which files are read, and for how long. If a later version is invalid or cannot be read, the last
//! valid one stays in force.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use doorward_documents::DocumentError;
use doorward_engine::templates::Templates;
use thiserror::Error;

use super::reading::Reading;

/// Interval between two reads of the file.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Share of the interval after which a new content is read again: an editor may still be writing.
const SETTLES_PER_INTERVAL: u32 = 10;

/// Failure to get templates from a file.
#[derive(Debug, Error)]
pub enum TemplateFileError {
    /// The file cannot be read.
    #[error("cannot read templates from {path}: {why}")]
    Read {
        /// The file.
        path: PathBuf,
        /// Cause. Part of this text instead of a source: the status page shows this one text.
        why: io::Error,
    },
    /// The document is invalid.
    #[error(transparent)]
    Document(#[from] DocumentError),
}

/// A file with templates, and its last known content.
#[derive(Debug)]
pub struct TemplateFile {
    reading: Reading,
    /// The last content, valid or not, or the reason why it could not be read.
    content: Result<Vec<u8>, String>,
    poll_interval: Duration,
}

impl TemplateFile {
    /// Reads the file for the first time.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is invalid.
    pub async fn open(path: &Path) -> Result<(Self, Templates), TemplateFileError> {
        let mut file = Self {
            reading: Reading::of(path),
            content: Ok(Vec::new()),
            poll_interval: POLL_INTERVAL,
        };
        let templates = file.read_again().await?;
        Ok((file, templates))
    }

    /// Reads the file, changed or not.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is invalid.
    pub async fn read_again(&mut self) -> Result<Templates, TemplateFileError> {
        let content = self.content().await;
        self.parse(content).await
    }

    /// Waits until the content changes, and reads it. Cancel safe.
    ///
    /// # Errors
    ///
    /// If the file can no longer be read or is invalid. Each content is reported once.
    pub async fn changed(&mut self) -> Result<Templates, TemplateFileError> {
        loop {
            tokio::time::sleep(self.poll_interval).await;
            if let Some(read) = self.look().await {
                return read;
            }
        }
    }

    /// Returns the content. If the file is empty, waits an interval first: a program that writes a file in place
    /// empties it before.
    async fn content(&mut self) -> io::Result<Vec<u8>> {
        let content = self.reading.content().await;
        if !content.as_ref().is_ok_and(Vec::is_empty) {
            return content;
        }
        tokio::time::sleep(self.poll_interval).await;
        self.reading.content().await
    }

    /// Reads the file if its content has changed, or if it cannot be read for another reason than before.
    async fn look(&mut self) -> Option<Result<Templates, TemplateFileError>> {
        let mut content = self.content().await;
        // A file without a pause between writes is read as it is after one interval.
        for _ in 0..SETTLES_PER_INTERVAL {
            if known(&content) == self.content {
                return None;
            }
            // A second read would only hang as long again.
            if is_hanging(&content) {
                break;
            }
            tokio::time::sleep(self.poll_interval / SETTLES_PER_INTERVAL).await;
            let before = known(&content);
            content = self.content().await;
            if known(&content) == before {
                break;
            }
        }
        Some(self.parse(content).await)
    }

    /// Parses the content. Cancel safe: a content that was not parsed to its end is read again.
    async fn parse(
        &mut self,
        content: io::Result<Vec<u8>>,
    ) -> Result<Templates, TemplateFileError> {
        let known = known(&content);
        let parsed = parsed(self.reading.path(), content).await;
        self.content = known;
        parsed
    }
}

/// Returns whether the read took too long.
fn is_hanging(content: &io::Result<Vec<u8>>) -> bool {
    content
        .as_ref()
        .is_err_and(|error| error.kind() == io::ErrorKind::TimedOut)
}

/// Returns the part of a read that is compared with the read before.
fn known(content: &io::Result<Vec<u8>>) -> Result<Vec<u8>, String> {
    content.as_ref().cloned().map_err(ToString::to_string)
}

/// Reads a template file once.
///
/// # Errors
///
/// If the file cannot be read or is invalid.
pub async fn check(path: &Path) -> Result<Templates, TemplateFileError> {
    parsed(path, Reading::of(path).content().await).await
}

/// Parses a document on another thread: a large one takes time, in which requests must be served.
async fn parsed(path: &Path, content: io::Result<Vec<u8>>) -> Result<Templates, TemplateFileError> {
    let unread = |why| TemplateFileError::Read {
        path: path.to_owned(),
        why,
    };
    let content = content.map_err(unread)?;
    let name = path.to_string_lossy().into_owned();
    let parsing = tokio::task::spawn_blocking(move || super::parse(&content, &name));
    let parsed = parsing.await.map_err(|why| unread(io::Error::other(why)))?;
    Ok(parsed?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Arc, Mutex, mpsc};

    use doorward_documents::DOCUMENT_BYTES_MAX;

    use crate::templates::reading::READ_MAX;

    use super::*;

    /// Time limit of a test, far longer than a read takes.
    const PATIENCE: Duration = Duration::from_secs(20);

    fn document(capacity: u32) -> String {
        format!(
            "resources: [{{identifier_glob: a, capacity: {capacity}, algorithm: {{kind: STATIC, \
             lease_length: 60, refresh_interval: 5}}}}]"
        )
    }

    fn capacity(templates: &Templates) -> f64 {
        templates.iter().next().unwrap().capacity.get()
    }

    /// Opens a file that is read every few milliseconds.
    async fn open_at(path: &Path) -> (TemplateFile, Templates) {
        let (mut file, templates) = TemplateFile::open(path).await.unwrap();
        file.poll_interval = Duration::from_millis(10);
        (file, templates)
    }

    /// Opens a template file in a new directory.
    async fn open() -> (tempfile::TempDir, PathBuf, TemplateFile) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("templates.yaml");
        fs::write(&path, document(1)).unwrap();
        let (file, templates) = open_at(&path).await;
        assert_eq!(capacity(&templates), 1.0);
        (directory, path, file)
    }

    #[tokio::test]
    async fn a_file_that_is_written_into_is_read_again() {
        let (_directory, path, mut file) = open().await;
        fs::write(&path, document(2)).unwrap();
        assert_eq!(capacity(&file.changed().await.unwrap()), 2.0);
    }

    #[tokio::test]
    async fn a_file_that_is_emptied_and_then_written_is_not_refused_as_empty() {
        let (_directory, path, mut file) = open().await;
        fs::write(&path, "").unwrap();
        // The file is written only after it was read empty.
        let reads = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&reads);
        file.reading = Reading::by(&path, move |path| {
            let content = fs::read(path);
            if counted.fetch_add(1, Ordering::SeqCst) == 0 {
                fs::write(path, document(2))?;
            }
            content
        });
        assert_eq!(capacity(&file.changed().await.unwrap()), 2.0);
        assert!(reads.load(Ordering::SeqCst) >= 2);
    }

    #[tokio::test]
    async fn a_file_that_is_written_in_parts_is_read_when_it_is_whole() {
        let (_directory, path, mut file) = open().await;
        fs::write(&path, document(2)).unwrap();
        let reads = AtomicUsize::new(0);
        file.reading = Reading::by(&path, move |path| {
            let content = fs::read(path);
            let part = reads.fetch_add(1, Ordering::SeqCst) as u32;
            if part < 3 {
                fs::write(path, document(3 + part))?;
            }
            content
        });
        assert_eq!(capacity(&file.changed().await.unwrap()), 5.0);
        assert!(file.look().await.is_none());
    }

    #[tokio::test]
    async fn a_file_system_that_hangs_is_reported_after_one_read() {
        let (_directory, path, mut file) = open().await;
        let (finish, finished) = mpsc::channel::<()>();
        let finished = Mutex::new(finished);
        file.reading = Reading::by(&path, move |path| {
            let _ = finished.lock().unwrap().recv();
            fs::read(path)
        });
        tokio::time::pause();
        let changed = tokio::time::timeout(READ_MAX + READ_MAX / 2, file.changed()).await;
        let error = changed.unwrap().unwrap_err().to_string();
        assert!(error.contains("does its file system hang?"), "{error}");
        drop(finish);
    }

    #[tokio::test]
    async fn a_file_that_stays_empty_is_refused_once() {
        let (_directory, path, mut file) = open().await;
        fs::write(&path, "").unwrap();
        let error = file.changed().await.unwrap_err().to_string();
        assert!(error.contains("empty"), "{error}");
        assert!(file.look().await.is_none());
        fs::write(&path, document(2)).unwrap();
        assert_eq!(capacity(&file.changed().await.unwrap()), 2.0);
    }

    #[tokio::test]
    async fn a_file_that_is_replaced_is_read_again() {
        let (directory, path, mut file) = open().await;
        let new = directory.path().join("new");
        for version in 2..5 {
            fs::write(&new, document(version)).unwrap();
            fs::rename(&new, &path).unwrap();
            assert_eq!(capacity(&file.changed().await.unwrap()), f64::from(version));
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_that_is_turned_elsewhere_is_read_again() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for version in [1, 2] {
            fs::create_dir(at(&version.to_string())).unwrap();
            fs::write(at(&format!("{version}/t.yaml")), document(version)).unwrap();
        }
        // Layout of a mounted config map of Kubernetes: the file is a link through a link to a directory.
        std::os::unix::fs::symlink("1", at("..data")).unwrap();
        std::os::unix::fs::symlink("..data/t.yaml", at("t.yaml")).unwrap();
        let (mut file, templates) = open_at(&at("t.yaml")).await;
        assert_eq!(capacity(&templates), 1.0);
        std::os::unix::fs::symlink("2", at("..new")).unwrap();
        fs::rename(at("..new"), at("..data")).unwrap();
        assert_eq!(capacity(&file.changed().await.unwrap()), 2.0);
    }

    #[tokio::test]
    async fn a_bad_version_is_reported_once_and_a_good_one_after_it_is_read() {
        let (_directory, path, mut file) = open().await;
        fs::write(&path, "resources: 3").unwrap();
        let error = file.changed().await.unwrap_err().to_string();
        assert!(error.contains(":1:12: resources: is 3"), "{error}");
        fs::remove_file(&path).unwrap();
        let error = file.changed().await.unwrap_err().to_string();
        assert!(error.starts_with("cannot read templates from"), "{error}");
        assert!(file.look().await.is_none());
        // It still cannot be read, but for another reason.
        fs::create_dir(&path).unwrap();
        let error = file.changed().await.unwrap_err().to_string();
        assert!(error.contains("it is a directory"), "{error}");
        assert!(file.look().await.is_none());
        fs::remove_dir(&path).unwrap();
        let error = file.changed().await.unwrap_err().to_string();
        assert!(!error.contains("it is a directory"), "{error}");
        fs::write(&path, document(4)).unwrap();
        assert_eq!(capacity(&file.changed().await.unwrap()), 4.0);
    }

    #[tokio::test]
    async fn a_file_written_anew_with_the_same_content_is_no_change() {
        let (directory, path, mut file) = open().await;
        let new = directory.path().join("new");
        fs::write(&new, document(1)).unwrap();
        fs::rename(&new, &path).unwrap();
        assert!(file.look().await.is_none());
        fs::write(&path, document(2)).unwrap();
        assert_eq!(capacity(&file.changed().await.unwrap()), 2.0);
    }

    /// Makes a pipe without a writer: reading it waits for ever.
    #[cfg(unix)]
    fn make_pipe(path: &Path) {
        let made = std::process::Command::new("mkfifo").arg(path).status();
        assert!(made.unwrap().success());
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn what_is_no_regular_file_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        make_pipe(&pipe);
        for (path, what) in [
            (&*pipe, "it is a pipe"),
            (directory.path(), "it is a directory"),
            (Path::new("/dev/zero"), "it is a device"),
        ] {
            let checked = tokio::time::timeout(PATIENCE, check(path)).await;
            let Ok(checked) = checked else {
                // The waiting reader needs a writer to return, or the test would never end.
                let _writer = fs::OpenOptions::new().write(true).open(path);
                panic!("{} is read", path.display());
            };
            let error = checked.unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
            assert!(error.contains("give a regular file"), "{error}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_file_that_becomes_a_pipe_is_refused_and_one_that_follows_is_read() {
        let (directory, path, mut file) = open().await;
        let new = directory.path().join("new");
        make_pipe(&new);
        fs::rename(&new, &path).unwrap();
        let changed = tokio::time::timeout(PATIENCE, file.changed()).await;
        let Ok(changed) = changed else {
            let _writer = fs::OpenOptions::new().write(true).open(&path);
            panic!("it is read");
        };
        let error = changed.unwrap_err().to_string();
        assert!(error.contains("it is a pipe"), "{error}");
        fs::write(&new, document(2)).unwrap();
        fs::rename(&new, &path).unwrap();
        assert_eq!(capacity(&file.changed().await.unwrap()), 2.0);
    }

    #[tokio::test]
    async fn a_file_too_large_or_not_there_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t.yaml");
        assert!(matches!(
            check(&path).await,
            Err(TemplateFileError::Read { .. })
        ));
        fs::write(&path, " ".repeat(DOCUMENT_BYTES_MAX + 10)).unwrap();
        assert!(
            check(&path)
                .await
                .unwrap_err()
                .to_string()
                .contains("is larger than")
        );
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_link_to_itself_is_refused_and_what_was_read_before_stays() {
        let (directory, path, mut file) = open().await;
        let new = directory.path().join("new");
        std::os::unix::fs::symlink("templates.yaml", &new).unwrap();
        fs::rename(&new, &path).unwrap();
        let error = file.changed().await.unwrap_err().to_string();
        assert!(error.starts_with("cannot read templates from"), "{error}");
        check(&path).await.unwrap_err();
    }

    #[tokio::test]
    async fn a_hundred_megabytes_cost_no_more_than_a_document_may_have() {
        let (directory, path, mut file) = open().await;
        let new = directory.path().join("new");
        // The file is sparse: nothing of it is on the disk.
        fs::File::create(&new).unwrap().set_len(100 << 20).unwrap();
        fs::rename(&new, &path).unwrap();
        let error = file.changed().await.unwrap_err().to_string();
        assert!(error.contains("is larger than"), "{error}");
        assert_eq!(
            file.content.map(|content| content.len()),
            Ok(DOCUMENT_BYTES_MAX + 1)
        );
    }

    #[tokio::test]
    async fn aliases_of_aliases_are_refused_when_a_file_is_changed_as_when_it_is_checked() {
        let (_directory, path, mut file) = open().await;
        let mut text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let before = vec![format!("*a{}", level - 1); 9].join(", ");
            text += &format!("a{level}: &a{level} [{before}]\n");
        }
        fs::write(&path, text).unwrap();
        let changed = file.changed().await.unwrap_err().to_string();
        let checked = check(&path).await.unwrap_err().to_string();
        assert_eq!(changed, checked);
    }
}
