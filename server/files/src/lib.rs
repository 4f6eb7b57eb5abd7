//! Files of operators: documents, certificates, tokens, passwords.
//!
//! A read always ends, by the size of what it may read and by the time that it may take: `/dev/zero` has no end, and a
//! pipe without a writer, or a network file system that hangs, keeps a reader waiting for ever. Nothing interrupts a
//! read that hangs. So it has a thread of its own, which is left behind and ends with the process.
//!
//! [`read`] is for files that are read now and then. A pipe with a writer is as good as a file there. [`read_regular`]
//! is for documents: reading a pipe takes its content away, and reading a device may do anything. [`Follower`] reads
//! documents whenever they change, and [`Reloading`] a value from small files. [`Replacement`] writes a document.
//! [`warn_of_mounts`] tells of files that cannot change.

mod follower;
mod mounts;
#[cfg(feature = "reloading")]
mod reloading;
#[cfg(feature = "replacement")]
mod replacement;

use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

pub use crate::follower::{Content, Follower, document};
pub use crate::mounts::warn_of_mounts;
#[cfg(feature = "reloading")]
pub use crate::reloading::{Reloading, described};
#[cfg(feature = "replacement")]
pub use crate::replacement::{Replacement, folder};

/// Largest certificate, list, token or password, in bytes. A bundle of every public CA has a fifth of that.
pub const SMALL_BYTES_MAX: usize = 1024 * 1024;

/// Longest time of a read.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads a small file, or what a writer puts into a pipe. Blocks.
///
/// # Errors
///
/// If it cannot be read, has more than [`SMALL_BYTES_MAX`] bytes, or takes more than ten seconds.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_within(path, PATIENCE)
}

/// Reads a small file of text, likewise. Blocks.
///
/// # Errors
///
/// As [`read`]; also if the content is not UTF-8.
pub fn read_to_string(path: &Path) -> io::Result<String> {
    let text = String::from_utf8(read(path)?);
    text.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is no UTF-8 text"))
}

fn read_within(path: &Path, patience: Duration) -> io::Result<Vec<u8>> {
    let path = path.to_owned();
    let read = || File::open(path).and_then(|file| bounded(file, SMALL_BYTES_MAX));
    let content = apart(read)?.recv_timeout(patience);
    content.unwrap_or_else(|_| Err(io::Error::new(io::ErrorKind::TimedOut, hanging(patience))))
}

/// Reads a regular file of at most so many bytes. May block for long: a file system may hang.
///
/// # Errors
///
/// If it cannot be read, is no regular file, or has more bytes.
pub fn read_regular(path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
    // Checked before opening, since opening a device may already have an effect.
    check_kind(&fs::metadata(path)?)?;
    let mut options = OpenOptions::new();
    options.read(true);
    // The path may be a pipe by now. Opening it must not wait for a writer.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, NONBLOCKING);
    let file = options.open(path)?;
    check_kind(&file.metadata()?)?;
    bounded(file, bytes_max)
}

/// The flag has no effect on regular files.
#[cfg(unix)]
const NONBLOCKING: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();

fn bounded(file: File, bytes_max: usize) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(bytes_max as u64 + 1).read_to_end(&mut content)?;
    if content.len() > bytes_max {
        let problem = format!("it has more than the {bytes_max} bytes that it may have");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(content)
}

fn check_kind(metadata: &Metadata) -> io::Result<()> {
    let kind = metadata.file_type();
    let what = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "a directory",
        () if is_pipe(&kind) => "a pipe (FIFO)",
        () => "a device or a socket",
    };
    let problem = format!("it is {what}; give a regular file");
    Err(io::Error::new(io::ErrorKind::InvalidInput, problem))
}

#[cfg(unix)]
fn is_pipe(kind: &FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(kind)
}

#[cfg(not(unix))]
fn is_pipe(_: &FileType) -> bool {
    false
}

/// Runs a read on a thread of its own. No thread of a runtime may wait there, least of all when the program ends.
fn apart<T: Send + 'static>(read: impl FnOnce() -> T + Send + 'static) -> io::Result<Receiver<T>> {
    let (sender, result) = mpsc::sync_channel(1);
    let thread = thread::Builder::new().name("file".to_owned());
    // The receiver is gone if it took too long.
    thread.spawn(move || drop(sender.send(read())))?;
    Ok(result)
}

fn hanging(patience: Duration) -> String {
    format!("nothing came of reading it within {patience:?}; does its file system hang?")
}

#[cfg(all(test, unix))]
mod tests;
