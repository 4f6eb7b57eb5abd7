//! The common beginning and end of the programs.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use doorward_etcd::flags::unreadable_variable;
use doorward_session::visible;
use thiserror::Error;
use tokio::runtime::Runtime;

use crate::app::{Server, ServerError};
use crate::flags::LogFlags;
use crate::otlp;
use crate::signals::{self, Signals};

/// A failure while the program ran; with `--check`, an invalid file, as for `doorward templates check`.
pub const FAILED: u8 = 1;
/// Wrong usage, invalid templates, or invalid rules of an agent.
pub const MISUSED: u8 = 2;

/// Flags that are invalid, alone or together.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Misused(pub String);

/// Runs a program: listens for signals, and does the rest. Complains of its error.
pub fn run(rest: fn(&Runtime, Signals) -> anyhow::Result<ExitCode>) -> ExitCode {
    // Before all else: from here on, no signal kills the process half-way.
    let (runtime, signals) = match signals::begin() {
        Ok(begun) => begun,
        Err(error) => return complain(error, FAILED),
    };
    let ended = match unreadable_variable() {
        Some(variable) => Err(Misused(format!("{variable} is not UTF-8")).into()),
        None => rest(&runtime, signals),
    };
    // A read that hangs does not keep the process.
    runtime.shutdown_background();
    ended.unwrap_or_else(|error| {
        // The operator mends invalid templates and rules, like a wrong flag.
        let is_of_templates = matches!(error.downcast_ref(), Some(ServerError::Templates(_)));
        let is_misused = error.is::<Misused>() || is_of_templates;
        complain(error, if is_misused { MISUSED } else { FAILED })
    })
}

/// Starts a server, and runs it until a signal stops it. `name` is that of the program, for a collector.
///
/// # Errors
///
/// If it does not start, or a part of it stops by itself.
pub fn serve(
    runtime: &Runtime,
    mut signals: Signals,
    logs: &LogFlags,
    name: &str,
    start: impl Future<Output = anyhow::Result<Server>> + Send + 'static,
) -> anyhow::Result<ExitCode> {
    runtime.block_on(async {
        if let Some(server) = signals.during(start).await? {
            otlp::run(logs, name, signals, server?).await?;
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Writes an error message to standard error, with its causes. The program ends even if its reader stalls.
pub fn complain(error: impl Display, code: u8) -> ExitCode {
    let (written, is_written) = mpsc::channel::<()>();
    let error = format!("error: {error:#}");
    let write = move || {
        // If even this fails, no other place for the message is left.
        let _ = writeln!(io::stderr(), "{}", visible::lines(&error));
        drop(written);
    };
    match thread::Builder::new().spawn(write.clone()) {
        Ok(_) => drop(write),
        // The system may refuse another thread.
        Err(_) => write(),
    }
    let _ = is_written.recv_timeout(Duration::from_secs(1));
    ExitCode::from(code)
}
