//! Drops large values on a thread of its own, so that no request waits for that.
//!
//! Dropping a million leases takes a good part of a second, and a small server has a single thread for requests. There
//! is one disposal thread for the whole process.
//!
//! This thread also gives the memory back to the system. The allocator gives back all memory that was freed about a
//! second ago, at once, on the first thread that frees a larger block: 300 megabytes held up a worker for 35 ms. So
//! this thread frees such blocks again and again, to be the first: see [`give_back`].

use std::any::Any;
use std::hint::black_box;
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use doorward_clock::Instant;
use tracing::warn;

/// Pause between two attempts to give memory back.
const REST: Duration = Duration::from_millis(2);

/// Time for which memory is given back after the last value was dropped: longer than the allocator keeps it.
const SETTLING: Duration = Duration::from_millis(2_500);

/// Size in bytes of a block that has pages of its own in every known allocator.
const LARGE: usize = 1 << 20;

type Value = Box<dyn Any + Send>;

/// Sender to the thread. None: the thread could not be started.
static THREAD: OnceLock<Option<Sender<Value>>> = OnceLock::new();

/// Drops a value on the thread, or here if there is no thread.
pub(super) fn dispose(value: Value) {
    if let Some(sender) = THREAD.get_or_init(start) {
        // The thread never ends before the sender.
        _ = sender.send(value);
    }
}

fn start() -> Option<Sender<Value>> {
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

fn serve(receiver: &Receiver<Value>) {
    while let Ok(value) = receiver.recv() {
        drop(value);
        settle(receiver);
    }
}

/// Gives back all memory, and drops values that arrive meanwhile.
fn settle(receiver: &Receiver<Value>) {
    let mut since = Instant::now();
    while since.elapsed() < SETTLING {
        match receiver.recv_timeout(REST) {
            Ok(value) => {
                drop(value);
                give_back();
                since = Instant::now();
            }
            Err(RecvTimeoutError::Timeout) => give_back(),
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Makes the allocator check, on this thread, for memory to give back. mimalloc does so when a block with pages of its
/// own is freed. Nothing writes to these pages, so the system need not provide memory for them.
fn give_back() {
    drop(black_box(Vec::<u8>::with_capacity(LARGE)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_dropped() {
        let (held, gone) = channel::<()>();
        dispose(Box::new(held));
        assert!(gone.recv().is_err(), "the other end is gone");
    }
}
