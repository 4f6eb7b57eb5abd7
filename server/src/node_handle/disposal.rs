//! Drops large values on a thread of its own, so that no request waits for that.
//!
//! A million leases take a good part of a second, and as few as one thread may serve requests. There is one such thread
//! for the whole process.
//!
//! The memory goes back to the system on this thread too. The allocator gives back what was freed about a second ago,
//! all of it at once, on the first thread that frees something larger: 300 megabytes held up a worker for 35 ms. So
//! this thread comes first, again and again: see [`give_back`].

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

/// For how long memory is given back after the last value was dropped: longer than the allocator keeps it.
const SETTLING: Duration = Duration::from_millis(2_500);

/// Bytes of a block that has pages of its own, with every allocator that we know.
const LARGE: usize = 1 << 20;

type Value = Box<dyn Any + Send>;

/// The way to the thread. None: it could not be started.
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

/// Gives memory back until all has gone back, and drops what comes meanwhile.
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

/// Makes the allocator look, on this thread, whether there is memory to give back: mimalloc does when a block is freed
/// that has pages of its own. Nobody writes to them, so the system need not find memory for them.
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
