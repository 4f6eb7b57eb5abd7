//! Documents in files, which other programs write.
//!
//! A change is seen by content, on every file system: a file that is written in place, a file that an editor replaces,
//! and a symbolic link that Kubernetes turns to another folder. It counts once two reads in a row agree, because a
//! program may still be writing. A file that is written without a pause is read as it is after an interval.
//!
//! A file system that hangs costs one thread: nothing is read again before that read has ended.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::spawn_blocking;
use tokio::time::sleep;

use crate::{PATIENCE, apart, hanging, read_regular};

/// Share of the interval after which a new content is read again.
const SETTLES_PER_INTERVAL: u32 = 10;

/// Content of files by name, or the reason why they cannot be read.
pub type Content = Result<BTreeMap<String, Vec<u8>>, String>;

/// Reads a document. Its name is its path. May block for long.
pub fn document(path: &Path, bytes_max: usize) -> Content {
    let name = path.display().to_string();
    match read_regular(path, bytes_max) {
        Ok(bytes) => Ok(BTreeMap::from([(name, bytes)])),
        Err(error) => Err(format!("cannot read {name}: {error}")),
    }
}

/// A read that has not ended.
type UnderWay = Arc<Mutex<Receiver<Content>>>;

/// Reads a file or a directory again and again.
pub struct Follower {
    path: PathBuf,
    read: Arc<dyn Fn(&Path) -> Content + Send + Sync>,
    interval: Duration,
    patience: Duration,
    /// A read that has not ended.
    under_way: Option<UnderWay>,
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl Follower {
    /// Returns a follower of what `read` finds there once an interval, on a thread where it may block.
    pub fn new(
        path: &Path,
        interval: Duration,
        read: impl Fn(&Path) -> Content + Send + Sync + 'static,
    ) -> Self {
        Self {
            path: path.to_owned(),
            read: Arc::new(read),
            interval,
            patience: PATIENCE,
            under_way: None,
        }
    }

    /// Reads the files now. If one is empty, waits an interval and reads again: a program that writes a file in place
    /// empties it before. Cancel safe.
    pub async fn read(&mut self) -> Content {
        if self.under_way.is_some() {
            // It began earlier, and may have missed a change.
            let content = self.next().await;
            if self.under_way.is_some() {
                return content;
            }
        }
        let content = self.next().await;
        let mut files = content.iter().flat_map(BTreeMap::values);
        if !files.any(Vec::is_empty) {
            return content;
        }
        sleep(self.interval).await;
        self.next().await
    }

    /// Waits until the content differs from the last one, or cannot be read for another reason than before. Cancel
    /// safe: the caller says what it knows.
    pub async fn changed(&mut self, last: &Content) -> Content {
        loop {
            sleep(self.interval).await;
            if let Some(content) = self.look(last).await {
                return content;
            }
        }
    }

    async fn look(&mut self, last: &Content) -> Option<Content> {
        let mut content = self.read().await;
        for _ in 0..SETTLES_PER_INTERVAL {
            // A second read that hangs would only take as long again.
            if content == *last || self.under_way.is_some() {
                break;
            }
            sleep(self.interval / SETTLES_PER_INTERVAL).await;
            let again = self.read().await;
            if again == content {
                break;
            }
            content = again;
        }
        (content != *last).then_some(content)
    }

    /// Returns what the read that is under way brings, or else a new one.
    async fn next(&mut self) -> Content {
        loop {
            let (is_new, under_way) = match self.under_way.clone() {
                Some(under_way) => (false, under_way),
                None => (true, self.start()?),
            };
            self.under_way = Some(Arc::clone(&under_way));
            // On a thread of the runtime, whose paused clock stands still meanwhile. It stays under way if this caller
            // gives up.
            let patience = self.patience;
            let waited = move || {
                let under_way = under_way.lock().unwrap_or_else(PoisonError::into_inner);
                under_way.recv_timeout(patience)
            };
            match spawn_blocking(waited).await {
                Ok(Err(RecvTimeoutError::Timeout)) => {
                    let (path, problem) = (self.path.display(), hanging(patience));
                    return Err(format!("cannot read {path}: {problem}"));
                }
                Ok(Ok(content)) => {
                    self.under_way = None;
                    return content;
                }
                // A caller that gave up has taken it.
                _ if !is_new => self.under_way = None,
                _ => {
                    self.under_way = None;
                    return Err("the reading thread has ended".to_owned());
                }
            }
        }
    }

    fn start(&self) -> Result<UnderWay, String> {
        let (path, read) = (self.path.clone(), Arc::clone(&self.read));
        let content = apart(move || read(&path)).map_err(|error| error.to_string())?;
        Ok(Arc::new(Mutex::new(content)))
    }
}

#[cfg(test)]
mod tests;
