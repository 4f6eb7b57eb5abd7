//! Requests to stop: Ctrl-C, or a termination signal.
//!
//! Commands that hold leases listen from before they ask for any until they have released them, so
//! that nothing is left behind for the rest of a lease. A second signal ends the process at once: the first one may
//! never be seen, if standard output is a pipe that nothing reads.

use std::io;
use std::process;
use std::thread;

use futures_util::future::select_all;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

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
    Ok(async move { any(&mut signals).await })
}

/// Ends the process when a second signal arrives. It waits on a thread of its own, since the others may be blocked.
fn end_at_second_signal() -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let entered = runtime.enter();
    let mut signals = [
        signal(SignalKind::interrupt())?,
        signal(SignalKind::terminate())?,
    ];
    drop(entered);
    thread::Builder::new().spawn(move || {
        runtime.block_on(async {
            any(&mut signals).await;
            any(&mut signals).await;
        });
        process::exit(INTERRUPTED);
    })?;
    Ok(())
}

async fn any(signals: &mut [Signal]) {
    select_all(signals.iter_mut().map(|it| Box::pin(it.recv()))).await;
}
