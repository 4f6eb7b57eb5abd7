//! Requests to stop: Ctrl-C, or a termination signal.
//!
//! Commands that hold leases listen from before they ask for any until they have released them, so
//! that nothing is left behind for the rest of a lease. A second signal ends the process at once: the first one may
//! never be seen, if standard output is a pipe that nothing reads.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use futures_util::future::select_all;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use tokio::signal::unix::{SignalKind, signal};

/// As shells report a process that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Ready once the process is asked to stop; registered now, not when first awaited.
pub(crate) fn interruption() -> io::Result<impl Future<Output = ()>> {
    let mut signals = [
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
        signal(SignalKind::hangup())?,
    ];
    end_at_second_signal()?;
    Ok(async move {
        select_all(signals.iter_mut().map(|it| Box::pin(it.recv()))).await;
    })
}

/// Ends the process when a second signal arrives, even if all its threads are blocked.
fn end_at_second_signal() -> io::Result<()> {
    let is_second = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&is_second))?;
        flag::register(signal, Arc::clone(&is_second))?;
    }
    Ok(())
}
