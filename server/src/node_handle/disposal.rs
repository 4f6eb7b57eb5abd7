//! Drops what the node does not need any more where nobody waits for it.
//!
//! A thread of its own: a million leases take a good part of a second, and those that serve requests may be as few as
//! one. It lets others go first again and again, for there may be one processor only.

use std::thread;

use doorward_engine::garbage::Garbage;
use tracing::warn;

/// Pieces that are dropped before others are let go first: some tens of microseconds.
const PIECES: usize = 256;

/// Drops it elsewhere.
pub(super) fn dispose(mut garbage: Garbage) {
    elsewhere(move || {
        while garbage.drop_some(PIECES) {
            thread::yield_now();
        }
    });
}

/// Does that elsewhere; if there is no thread to be had, it is dropped here as it is.
pub(super) fn elsewhere(drop: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().name("garbage".to_owned());
    if let Err(error) = thread.spawn(drop) {
        warn!(%error, "no thread to be had: what is not needed any more was dropped at once");
    }
}
