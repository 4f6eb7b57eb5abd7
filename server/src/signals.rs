//! The signals that stop a program.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::info;

use crate::app::{Server, ServerError};

/// SIGTERM and SIGINT. From its creation on, they no longer kill the process half-way.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    /// Listens for the signals.
    ///
    /// # Errors
    ///
    /// If the system refuses that.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Waits for one of them.
    async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Runs a server until a signal stops it. A second signal stops it at once.
    ///
    /// # Errors
    ///
    /// If a part of the server stops by itself.
    pub async fn run(mut self, mut server: Server) -> Result<(), ServerError> {
        tokio::select! {
            () = self.stop() => {}
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
