//! What the programs have in common: how they end when they fail.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use doorward_session::visible;
use thiserror::Error;

/// A failure while the program ran; with `--check`, an invalid file, as for `doorward templates check`.
pub const FAILED: u8 = 1;
/// Wrong usage, invalid templates, or invalid rules of an agent.
pub const MISUSED: u8 = 2;

/// Flags that are invalid, alone or together.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct Misused(pub String);

impl Misused {
    /// Takes the text of an error.
    pub fn of(error: impl Display) -> Self {
        Self(error.to_string())
    }
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
