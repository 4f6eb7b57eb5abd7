//! Reads a template file, whatever its name leads to.
//!
//! Only a regular file is read. Reading a pipe waits for a writer, maybe for ever, and takes its content away; reading
//! a device may do anything. No more of a file is read than a document may have. A file system that hangs costs at most
//! [`READ_MAX`] of waiting: the file is not read again before that read has ended, so at most one thread waits there.

use std::fmt;
use std::fs::{FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use doorward_documents::DOCUMENT_BYTES_MAX;
use tokio::sync::oneshot;

/// Longest wait for a read.
pub(super) const READ_MAX: Duration = Duration::from_secs(10);

type Content = io::Result<Vec<u8>>;

/// Reads a file repeatedly.
pub(super) struct Reading {
    path: PathBuf,
    read: Arc<dyn Fn(&Path) -> Content + Send + Sync>,
    patience: Duration,
    /// A read that has not ended.
    under_way: Option<oneshot::Receiver<Content>>,
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reading")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Reading {
    pub(super) fn of(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            read: Arc::new(read),
            patience: READ_MAX,
            under_way: None,
        }
    }

    /// Returns a reader with another read function.
    #[cfg(test)]
    pub(super) fn by(path: &Path, read: impl Fn(&Path) -> Content + Send + Sync + 'static) -> Self {
        Self {
            read: Arc::new(read),
            ..Self::of(path)
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the content of the file, cut one byte beyond the most that a document may have. Cancel safe.
    pub(super) async fn content(&mut self) -> Content {
        let under_way = match self.under_way.take() {
            Some(under_way) => under_way,
            None => self.start()?,
        };
        // The receiver stays here during the wait, so the next caller gets it if this one gives up.
        let under_way = self.under_way.insert(under_way);
        match tokio::time::timeout(self.patience, under_way).await {
            Ok(read) => {
                self.under_way = None;
                read.unwrap_or_else(|_| Err(io::Error::other("the reading thread has ended")))
            }
            Err(_) => {
                let problem = format!(
                    "nothing came of reading it within {:?}; does its file system hang?",
                    self.patience
                );
                Err(io::Error::new(io::ErrorKind::TimedOut, problem))
            }
        }
    }

    /// Starts a read on a thread of its own. A read that hangs cannot be interrupted, so no thread of the runtime may
    /// wait there, least of all when the server ends.
    fn start(&self) -> io::Result<oneshot::Receiver<Content>> {
        let (sender, receiver) = oneshot::channel();
        let (path, read) = (self.path.clone(), Arc::clone(&self.read));
        let thread = thread::Builder::new().name("templates".to_owned());
        thread.spawn(move || {
            // The receiver is gone if the server has ended.
            let _ = sender.send(read(&path));
        })?;
        Ok(receiver)
    }
}

fn read(path: &Path) -> Content {
    // Checked before opening, since opening a device may already have an effect.
    check_kind(&std::fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    // The path may be a pipe by now. Opening it must not wait for a writer.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, NONBLOCKING);
    let file = options.open(path)?;
    check_kind(&file.metadata()?)?;
    let mut content = Vec::new();
    file.take(DOCUMENT_BYTES_MAX as u64 + 1)
        .read_to_end(&mut content)?;
    Ok(content)
}

/// The flag has no effect on regular files.
#[cfg(unix)]
const NONBLOCKING: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

/// Checks that the file can be read without waiting.
fn check_kind(metadata: &Metadata) -> io::Result<()> {
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok(());
    }
    let what = match () {
        () if kind.is_dir() => "a directory",
        () if is_pipe(&kind) => "a pipe (FIFO)",
        () => "a device or a socket",
    };
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        format!(
            "it is {what}, and templates are read again whenever they change: give a regular file"
        ),
    ))
}

#[cfg(unix)]
fn is_pipe(kind: &FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(kind)
}

#[cfg(not(unix))]
fn is_pipe(_: &FileType) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn a_read_that_hangs_is_reported_in_time_and_not_begun_again_before_it_ends() {
        let (finish, finished) = mpsc::channel::<()>();
        let finished = Mutex::new(finished);
        let began = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&began);
        let read = move |_: &Path| {
            count.fetch_add(1, Ordering::SeqCst);
            let _ = finished.lock().unwrap().recv();
            Ok(b"content".to_vec())
        };
        let mut reading = Reading {
            read: Arc::new(read),
            patience: Duration::from_millis(20),
            ..Reading::of(Path::new("t.yaml"))
        };
        // A caller that gives up does not cause a second read.
        let moment = Duration::from_millis(1);
        tokio::time::timeout(moment, reading.content())
            .await
            .unwrap_err();
        for _ in 0..3 {
            let error = reading.content().await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::TimedOut);
            let expected = "nothing came of reading it within 20ms; does its file system hang?";
            assert_eq!(error.to_string(), expected);
        }
        finish.send(()).unwrap();
        // Repeats until the thread had its turn.
        let content = loop {
            match reading.content().await {
                Err(error) if error.kind() == io::ErrorKind::TimedOut => {}
                content => break content.unwrap(),
            }
        };
        assert_eq!(content, b"content");
        assert_eq!(began.load(Ordering::SeqCst), 1);
    }
}
