//! A value that is read from files, and read again when one of them changes.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwap;

use crate::{TlsError, described};
use doorward_files::warn_of_mounts;

/// Number, times and length of each file. A replaced file has another number, and new permissions another time.
type Stamp = Vec<Option<(u64, i64, i64, SystemTime, u64)>>;

/// Reads a value, given the one in force. None: it is the first.
type Read<T> = Box<dyn Fn(Option<&T>) -> Result<T, TlsError> + Send + Sync>;

/// A value from files. While they are invalid, or would make it worse, the last valid value counts.
pub struct Reloading<T> {
    files: Vec<PathBuf>,
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
}

impl<T> fmt::Debug for Reloading<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloading")
            .field("files", &self.files)
            .finish_non_exhaustive()
    }
}

impl<T> Reloading<T> {
    /// Reads the value for the first time. Blocks.
    ///
    /// # Errors
    ///
    /// The error of `read`.
    pub fn open(
        files: Vec<PathBuf>,
        read: impl Fn(Option<&T>) -> Result<T, TlsError> + Send + Sync + 'static,
    ) -> Result<Self, TlsError> {
        let (stamp, problem) = (stamp(&files), None);
        let current = ArcSwap::from_pointee(read(None)?);
        warn_of_mounts(&files);
        Ok(Self {
            files,
            read: Box::new(read),
            current,
            last: Mutex::new(Look { stamp, problem }),
        })
    }

    /// Returns the value in force.
    pub fn current(&self) -> Arc<T> {
        self.current.load_full()
    }

    /// Returns the files.
    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// Returns the reason why the files are not in force, if they are not.
    pub fn problem(&self) -> Option<String> {
        self.lock().problem.clone()
    }

    /// Reads the files again if one of them has changed since the last look. Returns whether there is a new value.
    /// Blocks.
    ///
    /// # Errors
    ///
    /// If the new files are invalid, once for each reason. The value in force stays.
    pub fn refresh(&self) -> Result<bool, TlsError> {
        let mut last = self.lock();
        let now = stamp(&self.files);
        if last.stamp == now && last.problem.is_none() {
            return Ok(false);
        }
        last.stamp = now;
        match (self.read)(Some(&self.current.load())) {
            Ok(value) => {
                self.current.store(Arc::new(value));
                last.problem = None;
                Ok(true)
            }
            Err(error) => {
                let problem = Some(described(&error));
                let is_told = last.problem == problem;
                last.problem = problem;
                if is_told { Ok(false) } else { Err(error) }
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Look> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamp(files: &[PathBuf]) -> Stamp {
    let stamp = |path: &PathBuf| {
        let metadata = fs::metadata(path).ok()?;
        let changed = (metadata.ino(), metadata.ctime(), metadata.ctime_nsec());
        let (number, seconds, nanoseconds) = changed;
        Some((
            number,
            seconds,
            nanoseconds,
            metadata.modified().ok()?,
            metadata.len(),
        ))
    };
    files.iter().map(stamp).collect()
}
