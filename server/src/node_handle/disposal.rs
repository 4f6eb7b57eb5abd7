//! Drops what the node does not need any more where nobody waits for it.
//!
//! A thread of its own: a million leases take a good part of a second, and those that serve requests may be as few as
//! one. It works in short bursts and rests long in between, for there may be one processor only.
//!
//! It also sees to it that the memory goes back to the system on this thread. The allocator gives back what was freed
//! about a second ago, all of it at once, on the first thread that frees something larger: 300 megabytes held up a
//! worker for 35 ms. So this thread comes first, again and again: see [`give_back`].
//!
//! There is one such thread for the whole process: thousands of resources may have something to drop at the same moment.

use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use doorward_clock::Instant;
use doorward_engine::garbage::Garbage;
use tracing::warn;

/// Pieces that are dropped before it looks at the clock.
const PIECES: usize = 64;

/// How long it works at a stretch.
const BURST: Duration = Duration::from_micros(50);

/// How long it rests after that. So a million leases are gone after some seconds.
const REST: Duration = Duration::from_millis(2);

/// For how long memory is given back after the last piece was dropped: longer than the allocator keeps it.
const SETTLING: Duration = Duration::from_millis(2_500);

/// Bytes of a block that has pages of its own, with every allocator that we know.
const LARGE: usize = 1 << 20;

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
    while let Ok(work) = receiver.recv() {
        let mut next = Some(work);
        while let Some(work) = next {
            do_in_bursts(work, &mut rested);
            next = settle(receiver);
        }
    }
}

/// Does all of it, and rests when it is time to.
fn do_in_bursts(mut work: Work, rested: &mut Instant) {
    let mut is_left = true;
    while is_left {
        is_left = work();
        if rested.elapsed() >= BURST {
            thread::park_timeout(REST);
            give_back();
            *rested = Instant::now();
        }
    }
}

/// Gives memory back, until there is something to do or nothing to give back any more.
fn settle(receiver: &Receiver<Work>) -> Option<Work> {
    let since = Instant::now();
    while since.elapsed() < SETTLING {
        match receiver.recv_timeout(REST) {
            Ok(work) => return Some(work),
            Err(RecvTimeoutError::Timeout) => give_back(),
            Err(RecvTimeoutError::Disconnected) => return None,
        }
    }
    None
}

/// Makes the allocator look, on this thread, whether there is memory to give back: mimalloc does when a block is freed
/// that has pages of its own. Nobody writes to them, so the system need not find memory for them.
fn give_back() {
    drop(black_box(Vec::<u8>::with_capacity(LARGE)));
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    #[test]
    fn all_is_done_piece_by_piece_one_after_the_other() {
        let (done, seen) = sync_channel(1_000);
        for number in 0..10 {
            let done = done.clone();
            let mut left = 5;
            elsewhere(Box::new(move || {
                left -= 1;
                done.send((number, left)).unwrap();
                left > 0
            }));
        }
        drop(done);
        let expected = (0..10).flat_map(|number| (0..5).rev().map(move |left| (number, left)));
        assert!(seen.into_iter().eq(expected));
    }

    #[test]
    fn what_is_dropped_whole_is_dropped() {
        let (held, gone) = channel::<()>();
        dispose_whole(held);
        assert!(gone.recv().is_err(), "nobody has the other end");
    }
}
