//! Requests to stop: Ctrl-C, or a termination signal.
//!
//! Commands that hold leases listen from before they ask for any until they have released them, so
//! that nothing is left behind for the rest of a lease. A second signal ends the process at once: the first one may
//! never be seen, if standard output is a pipe that nothing reads.

use std::io;

/// Ready once the process is asked to stop; registered now, not when first awaited.
pub(crate) fn interruption() -> io::Result<impl Future<Output = ()>> {
    let interrupted = platform::interrupted()?;
    let terminated = platform::terminated()?;
    platform::end_at_second_signal()?;
    Ok(async move {
        tokio::select! {
            () = interrupted => {}
            () = terminated => {}
        }
    })
}

/// As [`interruption`], but without Ctrl-C, which has another meaning in an interactive shell.
pub(crate) fn termination() -> io::Result<impl Future<Output = ()>> {
    platform::terminated()
}

#[cfg(unix)]
mod platform {
    use std::io;
    use std::process;
    use std::thread;

    use tokio::runtime::Builder;
    use tokio::signal::unix::{SignalKind, signal};

    /// As shells report a process that Ctrl-C ended.
    const INTERRUPTED: i32 = 130;

    /// Ends the process when a second signal arrives. It waits on a thread of its own, since the others may be blocked.
    pub(super) fn end_at_second_signal() -> io::Result<()> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let entered = runtime.enter();
        let mut interrupted = signal(SignalKind::interrupt())?;
        let mut terminated = signal(SignalKind::terminate())?;
        drop(entered);
        thread::Builder::new().spawn(move || {
            runtime.block_on(async {
                for _ in 0..2 {
                    tokio::select! {
                        _ = interrupted.recv() => {}
                        _ = terminated.recv() => {}
                    }
                }
            });
            process::exit(INTERRUPTED);
        })?;
        Ok(())
    }

    pub(super) fn interrupted() -> io::Result<impl Future<Output = ()>> {
        let mut interrupted = signal(SignalKind::interrupt())?;
        Ok(async move {
            interrupted.recv().await;
        })
    }

    pub(super) fn terminated() -> io::Result<impl Future<Output = ()>> {
        let mut terminated = signal(SignalKind::terminate())?;
        let mut hung_up = signal(SignalKind::hangup())?;
        Ok(async move {
            tokio::select! {
                _ = terminated.recv() => {}
                _ = hung_up.recv() => {}
            }
        })
    }
}

#[cfg(not(unix))]
mod platform {
    use std::io;

    /// Without a handler of SIGTERM, that signal ends the process.
    pub(super) fn end_at_second_signal() -> io::Result<()> {
        Ok(())
    }

    pub(super) fn interrupted() -> io::Result<impl Future<Output = ()>> {
        Ok(async {
            // Without a handler, the signal ends the process by itself.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending::<()>().await;
            }
        })
    }

    pub(super) fn terminated() -> io::Result<impl Future<Output = ()>> {
        Ok(std::future::pending())
    }
}
