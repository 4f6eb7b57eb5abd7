//! Drops what the node does not need any more where nobody waits for it.
//!
//! A thread of its own: a million leases take a good part of a second, and those that serve requests may be as few as
//! one. It works in short bursts and rests long in between, for two reasons. There may be one processor only. And the
//! allocator gives memory back to the system about once a second, all that was freed by then at once, on whichever
//! thread comes by: 300 megabytes held up a worker for 35 ms.
//!
//! There is one such thread for the whole process: thousands of resources may have something to drop at the same moment.

use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use doorward_clock::Instant;
use doorward_engine::garbage::Garbage;
use tracing::warn;

/// Pieces that are dropped before it looks at the clock.
const PIECES: usize = 64;

/// How long it works at a stretch.
const BURST: Duration = Duration::from_micros(50);

/// How long it rests after that. So a million leases are gone after some twenty seconds, and what is given back to the
/// system at once is some fifteen megabytes.
const REST: Duration = Duration::from_millis(5);

/// Does a little of what is done elsewhere. Returns whether something is left.
type Work = Box<dyn FnMut() -> bool + Send>;

/// To whom it is given. None: there was no thread to be had.
static ELSEWHERE: OnceLock<Option<Sender<Work>>> = OnceLock::new();

/// Drops it elsewhere.
pub(super) fn dispose(mut garbage: Garbage) {
    elsewhere(Box::new(move || garbage.drop_some(PIECES)));
}

/// Drops it elsewhere, at once.
pub(super) fn dispose_whole<T: Send + 'static>(whole: T) {
    let mut whole = Some(whole);
    elsewhere(Box::new(move || {
        drop(whole.take());
        false
    }));
}

/// Does that elsewhere, one after the other; if there is no thread to be had, here.
fn elsewhere(work: Work) {
    let refused = match ELSEWHERE.get_or_init(start) {
        Some(sender) => sender.send(work).err().map(|refused| refused.0),
        None => Some(work),
    };
    if let Some(mut work) = refused {
        while work() {}
    }
}

fn start() -> Option<Sender<Work>> {
    let (sender, receiver) = channel();
    let thread = thread::Builder::new().name("garbage".to_owned());
    match thread.spawn(move || serve(&receiver)) {
        Ok(_) => Some(sender),
        Err(error) => {
            warn!(%error, "no thread to be had: what is not needed any more is dropped at once");
            None
        }
    }
}

fn serve(receiver: &Receiver<Work>) {
    let mut rested = Instant::now();
    for mut work in receiver {
        let mut is_left = true;
        while is_left {
            is_left = work();
            if rested.elapsed() >= BURST {
                thread::park_timeout(REST);
                rested = Instant::now();
            }
        }
    }
}
