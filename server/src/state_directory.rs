//! The state directory of a server without an election: what its next process must know.
//!
//! A root keeps the [marks](doorward_engine::node::marks) of its resources here, as candidates do in etcd. So it divides
//! at once after a restart. Every server counts its starts. To a parent, that number is the epoch of the node: the
//! parent knows that the former process has ended.
//!
//! The directory has one file, of redb. A batch is on the disk before anything is granted by it. The file is locked, so
//! that no two processes use it. It names its node and its own inode: the marks of another node or of a copy do not
//! count. Then the server [learns](doorward_engine::node::learning), as it does with a new directory.

pub mod place;
mod writer;

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::ResourceId;
use doorward_engine::node::marks::{FoundMarks, Mark, MarkWrites};
use doorward_session::time::millis_up;
use redb::{
    Database, Error, ReadableDatabase, ReadableTable, StorageError, TableDefinition, TableError,
    WriteTransaction,
};
use thiserror::Error as ThisError;

pub(crate) use crate::state_directory::writer::write_marks;

/// Name of the file.
const FILE: &str = "marks.redb";
/// Name of the file that the process locks.
const LOCK: &str = "lock";
/// Name that an invalid file gets.
const INVALID: &str = "marks.redb.invalid";
/// Version of the tables.
const FORMAT: u64 = 1;
/// Memory for pages of the file.
const CACHE_BYTES: usize = 4 << 20;
/// Value of [`UNMARKED`] while no mark counts.
const UNKNOWN: u64 = u64::MAX;

/// Amount (absent: any) and longest lease in milliseconds, by resource.
const MARKS: TableDefinition<'_, &str, (Option<f64>, u64)> = TableDefinition::new("marks");
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
const TEXTS: TableDefinition<'_, &str, &str> = TableDefinition::new("texts");

/// Keys of [`NUMBERS`]. Time in milliseconds for which resources without a mark may have leases; zero: they have none.
const UNMARKED: &str = "unmarked_ms";
const FORMAT_KEY: &str = "format";
const STARTS: &str = "starts";
const INODE: &str = "inode";
/// Key of [`TEXTS`].
const NODE: &str = "node";

/// A directory that cannot be used.
#[derive(Debug, ThisError)]
pub enum StateError {
    /// Another process has it.
    #[error(
        "the state directory {} is in use by another process; two servers of a node need etcd, and \
         servers of different nodes need a directory each (--state-dir)",
        .0.display()
    )]
    InUse(PathBuf),
    /// It cannot be read or written.
    #[error("the state directory {} cannot be used", path.display())]
    Unusable {
        /// The directory.
        path: PathBuf,
        /// Cause.
        source: Error,
    },
}

/// Reason why the marks in a directory do not count.
#[derive(Clone, Debug, PartialEq, Eq, ThisError)]
pub enum Uncounted {
    /// The directory says nothing of the past.
    #[error("the directory is new")]
    New,
    /// The last process did not know all leases, or kept no marks.
    #[error("the last process learned until its end, or had a parent")]
    Learned,
    /// It is another node's.
    #[error("it is the directory of the node {0}")]
    OtherNode(String),
    /// It was copied or restored.
    #[error("it is a copy, and the original may be newer")]
    Copied,
    /// It is damaged, or from a newer program.
    #[error("the file is invalid, and now has the name {INVALID}: {0}")]
    Invalid(String),
}

/// Content of a directory when it was opened.
#[derive(Debug, Default)]
pub struct Past {
    /// The marks that count.
    pub marks: FoundMarks,
    /// Number of this start.
    pub starts: u64,
    /// Why no mark counts. Absent: they count.
    pub uncounted: Option<Uncounted>,
    /// Whether no client has a lease.
    pub is_unused: bool,
}

/// Content of a directory.
#[derive(Debug, Default)]
pub struct Contents {
    /// The node. Absent: the directory is new.
    pub node: Option<String>,
    /// Number of processes that have used it.
    pub starts: u64,
    /// Why no mark counts. Absent: they count.
    pub uncounted: Option<Uncounted>,
    /// The marks.
    pub marks: BTreeMap<ResourceId, Mark>,
}

/// An open state directory.
#[derive(Debug)]
pub struct StateDirectory {
    /// Absent after a failure.
    database: Option<Database>,
    path: PathBuf,
    starts: u64,
    /// Locked until the end, also while the file is opened anew.
    _lock: File,
}

impl StateDirectory {
    /// Opens the directory of a node, or makes it. A server below the root keeps no marks there, so those of an earlier
    /// root do not count any more. `is_unused`: no client has a lease if the directory is new.
    ///
    /// # Errors
    ///
    /// If it cannot be used.
    pub fn open(
        path: &Path,
        node: &str,
        is_root: bool,
        is_unused: bool,
    ) -> Result<(Self, Past), StateError> {
        let begun = fs::create_dir_all(path).map_err(Error::from);
        let begun = begun.and_then(|()| match Self::begin(path, node, is_root, is_unused) {
            Err(error) if is_invalid(&error) => {
                let problem = match error {
                    Error::Corrupted(problem) => problem,
                    other => other.to_string(),
                };
                fs::rename(path.join(FILE), path.join(INVALID))?;
                let (directory, past) = Self::begin(path, node, is_root, false)?;
                let uncounted = Some(Uncounted::Invalid(problem));
                Ok((directory, Past { uncounted, ..past }))
            }
            begun => begun,
        });
        begun.map_err(|error| unusable(path, error))
    }

    /// Opens the file, counts the start, and reads the marks.
    fn begin(
        path: &Path,
        node: &str,
        is_root: bool,
        is_unused: bool,
    ) -> Result<(Self, Past), Error> {
        let lock = File::create(path.join(LOCK))?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => return Err(Error::DatabaseAlreadyOpen),
            locked => locked.map_err(io::Error::from)?,
        }
        let file = path.join(FILE);
        let database = builder().create(&file)?;
        let inode = inode(&file)?;
        let found = Contents::read(&database, inode)?;
        let uncounted = match found.node {
            Some(owner) if owner != node => Some(Uncounted::OtherNode(owner)),
            None if is_unused => None,
            _ => found.uncounted,
        };
        let is_complete = is_root && uncounted.is_none();
        let is_unused = uncounted.is_none() && found.marks.is_empty();
        let starts = found.starts.saturating_add(1);
        let write = begin_write(&database)?;
        {
            let mut numbers = write.open_table(NUMBERS)?;
            let unmarked = if is_complete { 0 } else { UNKNOWN };
            for (key, value) in [
                (FORMAT_KEY, FORMAT),
                (STARTS, starts),
                (INODE, inode),
                (UNMARKED, unmarked),
            ] {
                numbers.insert(key, value)?;
            }
            write.open_table(TEXTS)?.insert(NODE, node)?;
            write.open_table(MARKS)?;
        }
        write.commit()?;
        let directory = Self {
            database: Some(database),
            path: path.to_owned(),
            starts,
            _lock: lock,
        };
        let counted = found.marks.iter().filter(|_| is_complete);
        let counted = counted.map(|(id, mark)| (id.as_str(), mark.stored()));
        let marks = FoundMarks {
            marks: counted.collect(),
            is_complete,
        };
        let past = Past {
            marks,
            starts,
            uncounted,
            is_unused,
        };
        Ok((directory, past))
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a batch. Afterwards it is on the disk.
    ///
    /// # Errors
    ///
    /// If it may not be there. It does no harm to write it again, after [`StateDirectory::reopen`].
    pub fn write(&self, batch: &MarkWrites) -> Result<(), Error> {
        let database = self.database.as_ref().ok_or(StorageError::DatabaseClosed)?;
        let write = begin_write(database)?;
        {
            let mut marks = write.open_table(MARKS)?;
            for (resource, mark) in &batch.writes {
                let resource = resource.as_str();
                match mark {
                    Some(mark) => {
                        let amount = mark.amount.map(Amount::get);
                        // No lease outlasts its mark by a rounding.
                        marks.insert(resource, (amount, millis_up(mark.longest)))?;
                    }
                    None => drop(marks.remove(resource)?),
                }
            }
            if batch.count == 0 {
                marks.retain(|_, _| false)?;
            }
            let mut numbers = write.open_table(NUMBERS)?;
            let unmarked = millis_up(batch.unmarked_for);
            if numbers.get(UNMARKED)?.map(|it| it.value()) != Some(unmarked) {
                numbers.insert(UNMARKED, unmarked)?;
            }
        }
        Ok(write.commit()?)
    }

    /// Whether there is a file with marks, or none can be seen.
    pub(crate) fn may_exist(path: &Path) -> bool {
        path.join(FILE).try_exists().unwrap_or(true)
    }

    /// Opens the file anew after a failure.
    ///
    /// # Errors
    ///
    /// If it cannot be opened, or is another one.
    pub fn reopen(&mut self) -> Result<(), Error> {
        // It has the lock.
        self.database = None;
        let database = builder().open(self.path.join(FILE))?;
        let starts = {
            let read = database.begin_read()?;
            let numbers = read.open_table(NUMBERS)?;
            numbers.get(STARTS)?.map(|it| it.value())
        };
        if starts != Some(self.starts) {
            let problem = "another file took its place; restart the server".to_owned();
            return Err(Error::Corrupted(problem));
        }
        self.database = Some(database);
        Ok(())
    }
}

impl Contents {
    /// Reads a directory that no server uses, and changes nothing.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is invalid.
    pub fn of(path: &Path) -> Result<Self, StateError> {
        let file = path.join(FILE);
        let read = || Self::read(&builder().open(&file)?, inode(&file)?);
        read().map_err(|error| unusable(path, error))
    }

    fn read(database: &Database, inode: u64) -> Result<Self, Error> {
        let read = database.begin_read()?;
        let numbers = match read.open_table(NUMBERS) {
            Err(TableError::TableDoesNotExist(_)) => {
                return Ok(Self {
                    uncounted: Some(Uncounted::New),
                    ..Self::default()
                });
            }
            numbers => numbers?,
        };
        let number = |key| Ok::<_, StorageError>(numbers.get(key)?.map(|it| it.value()));
        if let Some(newer) = number(FORMAT_KEY)?.filter(|format| *format > FORMAT) {
            let problem = format!("its format {newer} is that of a newer release");
            return Err(Error::Corrupted(problem));
        }
        let uncounted = if number(INODE)? != Some(inode) {
            Some(Uncounted::Copied)
        } else if number(UNMARKED)? != Some(0) {
            Some(Uncounted::Learned)
        } else {
            None
        };
        let mut marks = BTreeMap::new();
        for entry in read.open_table(MARKS)?.iter()? {
            let (resource, mark) = entry?;
            let mark = mark_of(mark.value());
            let mark = ResourceId::of_mark(resource.value()).ok().zip(mark);
            let (id, mark) = mark.ok_or_else(|| {
                Error::Corrupted(format!("the mark of {:?} is invalid", resource.value()))
            })?;
            marks.insert(id, mark);
        }
        let node = read.open_table(TEXTS)?.get(NODE)?;
        Ok(Self {
            node: node.map(|it| it.value().to_owned()),
            starts: number(STARTS)?.unwrap_or(0),
            uncounted,
            marks,
        })
    }
}

fn mark_of((amount, longest): (Option<f64>, u64)) -> Option<Mark> {
    Some(Mark {
        amount: amount.map(Amount::new).transpose().ok()?,
        longest: Duration::from_millis(longest),
    })
}

/// Whether the content of a file is why it cannot be opened.
fn is_invalid(error: &Error) -> bool {
    match error {
        Error::DatabaseAlreadyOpen | Error::LockProtocolMismatch => false,
        Error::Io(error) => error.kind() == io::ErrorKind::InvalidData,
        _ => true,
    }
}

pub(crate) fn unusable(path: &Path, error: Error) -> StateError {
    let path = path.to_owned();
    match error {
        Error::DatabaseAlreadyOpen | Error::LockProtocolMismatch => StateError::InUse(path),
        source => StateError::Unusable { path, source },
    }
}

/// Begins a transaction that is whole on the disk, or not there: a damaged page never brings an older one back.
fn begin_write(database: &Database) -> Result<WriteTransaction, Error> {
    let mut write = database.begin_write()?;
    write.set_two_phase_commit(true);
    Ok(write)
}

fn builder() -> redb::Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    // Without it, a damaged file may cause a panic.
    builder.set_check_integrity_on_open(true);
    builder
}

fn inode(file: &Path) -> io::Result<u64> {
    Ok(fs::metadata(file)?.ino())
}

#[cfg(test)]
mod tests;
