//! The signals of a server or an agent, from its first instruction on.
//!
//! | signal | effect |
//! | --- | --- |
//! | SIGTERM, SIGINT | an end in order; the second one ends the program at once |
//! | SIGHUP | templates, rules, certificates and tokens are read again, at the latest when the program serves |
//! | SIGUSR1, SIGUSR2, SIGALRM | none: some service managers send them to all programs |
//!
//! The first process of a container gets only signals that it listens for, so a program listens for SIGTERM during its
//! start, too. systemd waits with SIGHUP until the program listens (`Type=notify`).

use std::env;
use std::io;
use std::os::unix::net::UnixDatagram;

use anyhow::Context as _;
use doorward_pages::room::Room;
use rustix::process::Signal as Number;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinError;
use tracing::info;

use crate::app::{Server, ServerError};
use crate::files;

/// Room of a server: its ports, log, pages and workers.
const ROOM: Room = Room {
    files: 32,
    threads: 8,
    memory_mib: 128,
};

/// Listens for signals. From its creation on, none of them kills the process half-way.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

/// Listens for signals, by the runtime of the program: its first act.
///
/// # Errors
///
/// If a limit of the system is too small.
pub fn begin() -> anyhow::Result<(Runtime, Signals)> {
    files::raise_limit();
    ROOM.check()?;
    listen().context("cannot start")
}

fn listen() -> io::Result<(Runtime, Signals)> {
    let runtime = Builder::new_multi_thread().enable_all().build()?;
    let entered = runtime.enter();
    // Their listeners stay, and the signals have no effect. With that of SIGXFSZ, a write beyond the largest size of a
    // file (ulimit -f) fails, as on a full disk.
    for unheeded in [Number::XFSZ, Number::USR1, Number::USR2, Number::ALARM] {
        drop(signal(SignalKind::from_raw(unheeded.as_raw()))?);
    }
    let signals = Signals {
        terminate: signal(SignalKind::terminate())?,
        interrupt: signal(SignalKind::interrupt())?,
        hang_up: signal(SignalKind::hangup())?,
    };
    drop(entered);
    if let Some(service_manager) = env::var_os("NOTIFY_SOCKET") {
        // Without an answer, systemd ends the program after a while, and says so.
        let _ = UnixDatagram::unbound()?.send_to(b"READY=1", service_manager);
    }
    Ok((runtime, signals))
}

impl Signals {
    /// Waits for a signal that stops the program.
    async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Obeys signals until one stops the program.
    async fn obey(&mut self, rereads: &watch::Sender<()>) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hang_up.recv() => {
                    info!("SIGHUP: reading templates, rules, certificates and tokens again");
                    rereads.send_replace(());
                }
            }
        }
    }

    /// Runs the start of a program, which may block, until it ends or a signal stops the program. Returns nothing in the
    /// latter case.
    ///
    /// # Errors
    ///
    /// If the start panics.
    pub async fn during<T: Send + 'static>(
        &mut self,
        start: impl Future<Output = T> + Send + 'static,
    ) -> Result<Option<T>, JoinError> {
        tokio::select! {
            started = tokio::spawn(start) => started.map(Some),
            () = self.stop() => {
                info!("stopped during the start");
                Ok(None)
            }
        }
    }

    /// Runs a server until a signal stops it. A second signal stops it at once.
    ///
    /// # Errors
    ///
    /// If a part of the server stops by itself.
    pub async fn run(mut self, mut server: Server) -> Result<(), ServerError> {
        let rereads = server.rereads().clone();
        tokio::select! {
            () = self.obey(&rereads) => {}
            error = server.failed() => return Err(error),
        }
        info!("stopping: no new calls, those in flight are finished");
        tokio::select! {
            _ = server.shutdown() => info!("stopped"),
            () = self.stop() => info!("stopped at once, by a second signal"),
        }
        Ok(())
    }
}
