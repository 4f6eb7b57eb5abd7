//! A value that is read from files, and read again when one of them changes.

use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use arc_swap::ArcSwap;

use crate::TlsError;

/// Number, times and length of each file. A replaced file has another number, and new permissions another time.
type Stamp = Vec<Option<(u64, i64, i64, SystemTime, u64)>>;

type Read<T> = Box<dyn Fn() -> Result<T, TlsError> + Send + Sync>;

/// A value from files. While a file is invalid, or a certificate does not fit its key, the last valid value counts.
pub struct Reloading<T> {
    files: Vec<PathBuf>,
    read: Read<T>,
    current: ArcSwap<T>,
    stamp: Mutex<Stamp>,
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
        read: impl Fn() -> Result<T, TlsError> + Send + Sync + 'static,
    ) -> Result<Self, TlsError> {
        let stamp = stamp(&files);
        let current = ArcSwap::from_pointee(read()?);
        Ok(Self {
            files,
            read: Box::new(read),
            current,
            stamp: Mutex::new(stamp),
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

    /// Reads the files again if one of them has changed since the last look. Returns whether there is a new value.
    /// Blocks.
    ///
    /// # Errors
    ///
    /// If the new files are invalid, once for each change. The value in force stays.
    pub fn refresh(&self) -> Result<bool, TlsError> {
        let mut last = self.stamp.lock().unwrap_or_else(PoisonError::into_inner);
        let now = stamp(&self.files);
        if *last == now {
            return Ok(false);
        }
        // Kept even if reading fails: the next change of a file brings the next attempt.
        *last = now;
        self.current.store(Arc::new((self.read)()?));
        Ok(true)
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
