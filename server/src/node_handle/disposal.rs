//! Drops what the node does not need any more where nobody waits for it.
//!
//! A thread of its own: a million leases take a good part of a second, and those that serve requests may be as few as
//! one. It lets others go first again and again, for there may be one processor only. There is one for the whole
//! process: thousands of resources may have something to drop at the same moment.

use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use doorward_engine::garbage::Garbage;
use tracing::warn;

/// Pieces that are dropped before others are let go first: some tens of microseconds.
const PIECES: usize = 256;

/// What is done elsewhere.
type Work = Box<dyn FnOnce() + Send>;

/// To whom it is given. None: there was no thread to be had.
static ELSEWHERE: OnceLock<Option<Sender<Work>>> = OnceLock::new();

/// Drops it elsewhere.
pub(super) fn dispose(mut garbage: Garbage) {
    elsewhere(move || {
        while garbage.drop_some(PIECES) {
            thread::yield_now();
        }
    });
}

/// Does that elsewhere, one after the other; if there is no thread to be had, here.
pub(super) fn elsewhere(work: impl FnOnce() + Send + 'static) {
    let work: Work = Box::new(work);
    let refused = match ELSEWHERE.get_or_init(start) {
        Some(sender) => sender.send(work).err().map(|refused| refused.0),
        None => Some(work),
    };
    if let Some(work) = refused {
        work();
    }
}

fn start() -> Option<Sender<Work>> {
    let (sender, receiver) = channel::<Work>();
    let serve = move || receiver.iter().for_each(|work| work());
    let thread = thread::Builder::new().name("garbage".to_owned());
    match thread.spawn(serve) {
        Ok(_) => Some(sender),
        Err(error) => {
            warn!(%error, "no thread to be had: what is not needed any more is dropped at once");
            None
        }
    }
}
