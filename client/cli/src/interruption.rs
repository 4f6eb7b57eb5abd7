//! Requests to stop: Ctrl-C, or a termination signal.
//!
//! Commands that hold leases listen from before they ask for any until they have released them, so
//! that nothing is left behind for the rest of a lease.

use std::io;

/// Ready once the process is asked to stop; registered now, not when first awaited.
pub(crate) fn interruption() -> io::Result<impl Future<Output = ()>> {
    let interrupted = platform::interrupted()?;
    let terminated = platform::terminated()?;
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

    use tokio::signal::unix::{SignalKind, signal};

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
