//! A value that is read from files, and read again when one of them changes. While the files are invalid, or would make
//! it worse, the last valid value counts.
//!
//! One thread looks at the files at a time. If they hang, that thread is left behind, and nothing waits for it twice.

use std::error::Error;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwap;
use tracing::{info, warn};

use crate::{PATIENCE, apart, hanging, warn_of_mounts};

/// Number, times and length of each file. A replaced file has another number, and new permissions another time.
type Stamp = Vec<Option<(u64, i64, i64, SystemTime, u64)>>;

/// Reads a value, given the one in force.
type Read<T> = Box<dyn Fn(&T) -> Result<T, String> + Send + Sync>;

/// A value from files. Cheap to clone.
pub struct Reloading<T>(Arc<Files<T>>);

struct Files<T> {
    what: &'static str,
    paths: Vec<PathBuf>,
    read: Read<T>,
    current: ArcSwap<T>,
    last: Mutex<Look>,
}

/// The last look at the files.
#[derive(Debug)]
struct Look {
    stamp: Stamp,
    /// Reason why the files are not in force. They are read again at each look, since some reasons pass with time.
    problem: Option<String>,
    /// Whether a thread looks at them now.
    is_under_way: bool,
    /// Whether no caller has heard of the value in force.
    is_news: bool,
}

impl<T> Clone for Reloading<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Reloading<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloading")
            .field("files", &self.0.paths)
            .finish_non_exhaustive()
    }
}

impl<T: Send + Sync + 'static> Reloading<T> {
    /// Reads the value for the first time. Later, `read` gets the one in force. `what` names the files in the log. Blocks.
    ///
    /// # Errors
    ///
    /// The error of `read`.
    pub fn open<E: Error + 'static>(
        what: &'static str,
        paths: Vec<PathBuf>,
        read: impl Fn(Option<&T>) -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Self, E> {
        let (stamp, problem) = (stamp(&paths), None);
        let current = ArcSwap::from_pointee(read(None)?);
        warn_of_mounts(&paths);
        let read = move |former: &T| read(Some(former)).map_err(|error| described(&error));
        Ok(Self(Arc::new(Files {
            what,
            paths,
            read: Box::new(read),
            current,
            last: Mutex::new(Look {
                stamp,
                problem,
                is_under_way: false,
                is_news: false,
            }),
        })))
    }

    /// Returns the value in force.
    pub fn current(&self) -> Arc<T> {
        self.0.current.load_full()
    }

    /// Returns the files.
    pub fn files(&self) -> &[PathBuf] {
        &self.0.paths
    }

    /// Returns the reason why the files are not in force, if they are not.
    pub fn problem(&self) -> Option<String> {
        self.0.last().problem.clone()
    }

    /// Reads the files again if one of them has changed since the last look, unless a thread does so already. Returns
    /// whether there is a value that no call has returned yet. Tells the log. Blocks, for ten seconds a file at most.
    ///
    /// # Errors
    ///
    /// If the new files cannot be used, once for each reason. The value in force stays.
    pub fn refresh(&self) -> Result<bool, String> {
        if std::mem::replace(&mut self.0.last().is_under_way, true) {
            return Ok(false);
        }
        let looked = self.look();
        let is_news = std::mem::take(&mut self.0.last().is_news);
        let refreshed = looked.map(|()| is_news);
        let (what, files) = (self.0.what, self.files());
        match &refreshed {
            Ok(true) => info!(what, ?files, "files were read again"),
            Ok(false) => {}
            Err(problem) => warn!(
                what,
                ?files,
                problem,
                "files cannot be used; the last valid ones stay in force"
            ),
        }
        refreshed
    }

    /// Looks at the files on a thread of its own.
    fn look(&self) -> Result<(), String> {
        // Longer than all reads, which name the file that hangs.
        let patience = PATIENCE * (1 + u32::try_from(self.0.paths.len()).unwrap_or(1));
        let files = Arc::clone(&self.0);
        let looked = apart(move || files.look());
        let problem = match looked.map(|looked| looked.recv_timeout(patience)) {
            Ok(Ok(looked)) => return looked,
            Ok(Err(RecvTimeoutError::Timeout)) => return self.0.last().note(hanging(patience)),
            Ok(Err(RecvTimeoutError::Disconnected)) => "the reading thread has ended".to_owned(),
            Err(error) => error.to_string(),
        };
        let mut last = self.0.last();
        last.is_under_way = false;
        last.note(problem)
    }
}

impl<T> Files<T> {
    /// Looks at the files. May block for long, and holds no lock then.
    fn look(&self) -> Result<(), String> {
        let stamp = stamp(&self.paths);
        let is_same = {
            let last = self.last();
            last.stamp == stamp && last.problem.is_none()
        };
        let read = (!is_same).then(|| (self.read)(&self.current.load()));
        let mut last = self.last();
        last.is_under_way = false;
        last.stamp = stamp;
        match read {
            None => Ok(()),
            Some(Ok(value)) => {
                self.current.store(Arc::new(value));
                (last.problem, last.is_news) = (None, true);
                Ok(())
            }
            Some(Err(problem)) => last.note(problem),
        }
    }

    fn last(&self) -> MutexGuard<'_, Look> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Look {
    /// Notes a problem. Returns it if it is news.
    fn note(&mut self, problem: String) -> Result<(), String> {
        match self.problem.replace(problem.clone()) {
            Some(known) if known == problem => Ok(()),
            _ => Err(problem),
        }
    }
}

/// Returns an error with its cause.
pub fn described(error: &dyn Error) -> String {
    let cause = error.source();
    cause.map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

fn stamp(paths: &[PathBuf]) -> Stamp {
    let stamp = |path: &PathBuf| {
        let it = fs::metadata(path).ok()?;
        let modified = it.modified().ok()?;
        Some((it.ino(), it.ctime(), it.ctime_nsec(), modified, it.len()))
    };
    paths.iter().map(stamp).collect()
}
