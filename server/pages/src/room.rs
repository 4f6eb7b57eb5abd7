//! The threads, files and memory of the system that a program needs to start.
//!
//! If the system refuses one of them later, libraries panic or abort. So a program claims some of each first, gives them
//! back, and ends with a message where it gets too little.

use std::hint::black_box;
use std::io;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::thread;

use thiserror::Error;

/// Stack of the first thread that a program needs, in KiB.
const STACK_KIB: u64 = 1_024;

const MIB: usize = 1024 * 1024;

/// Amounts that a program needs beyond what it has. Threads are added to one for each core.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Open files.
    pub files: usize,
    /// Threads beside those for cores.
    pub threads: usize,
    /// Address space, in MiB. It covers the stacks of later threads, too.
    pub memory_mib: usize,
}

/// Too small a limit of the system.
#[derive(Debug, Error)]
pub enum ShortOf {
    /// Of open files.
    #[error(
        "cannot start: {0} more open files are needed; raise their limit (ulimit -n, LimitNOFILE=): {1}"
    )]
    Files(usize, io::Error),
    /// Of threads.
    #[error(
        "cannot start: {0} more threads are needed; raise their limit (ulimit -u, TasksMax=) or that of memory (ulimit -v): {1}"
    )]
    Threads(usize, io::Error),
    /// Of memory.
    #[error(
        "cannot start: {0} MiB more memory are needed; raise its limit (ulimit -v and -d, LimitAS= and LimitDATA=)"
    )]
    Memory(usize),
    /// Of the first thread's stack.
    #[error("cannot start: a stack of {0} KiB is needed; raise its limit (ulimit -s, LimitSTACK=)")]
    Stack(u64),
}

impl Room {
    /// Claims all of it at once, and gives it back.
    ///
    /// # Errors
    ///
    /// The first limit that is too small.
    pub fn check(self) -> Result<(), ShortOf> {
        // First, since all else needs some.
        if stack_bytes() < STACK_KIB * 1024 {
            return Err(ShortOf::Stack(STACK_KIB));
        }
        let mut memory = Vec::<u8>::new();
        let reserved = memory.try_reserve_exact(self.memory_mib.saturating_mul(MIB));
        reserved.map_err(|_| ShortOf::Memory(self.memory_mib))?;
        // Without this, the compiler leaves the allocation out.
        drop(black_box(memory));
        claim_files(self.files).map_err(|error| ShortOf::Files(self.files, error))?;
        let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let threads = self.threads.saturating_add(cores);
        claim_threads(threads).map_err(|error| ShortOf::Threads(threads, error))
    }
}

/// Returns the limit of the first thread's stack.
#[cfg(unix)]
fn stack_bytes() -> u64 {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Stack);
    limit.current.unwrap_or(u64::MAX)
}

#[cfg(not(unix))]
fn stack_bytes() -> u64 {
    u64::MAX
}

#[cfg(unix)]
fn claim_files(count: usize) -> io::Result<()> {
    use std::os::fd::AsFd;
    let claimed = (0..count).map(|_| io::stderr().as_fd().try_clone_to_owned());
    claimed.collect::<io::Result<Vec<_>>>().map(drop)
}

#[cfg(not(unix))]
fn claim_files(_: usize) -> io::Result<()> {
    Ok(())
}

/// Starts threads that end when all have started.
fn claim_threads(count: usize) -> io::Result<()> {
    let gate = Mutex::new(());
    thread::scope(|scope| {
        let _closed = gate.lock().unwrap_or_else(PoisonError::into_inner);
        (0..count).try_for_each(|_| {
            let started = thread::Builder::new().spawn_scoped(scope, || drop(gate.lock()));
            started.map(drop)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_starts_if_the_system_has_room_and_else_names_the_limit() {
        let some = Room {
            files: 16,
            threads: 4,
            memory_mib: 16,
        };
        some.check().unwrap();
        let endless = Room {
            memory_mib: usize::MAX,
            ..some
        };
        let checked = endless.check().unwrap_err().to_string();
        assert!(checked.contains("(ulimit -v and -d, LimitAS="), "{checked}");
    }
}
