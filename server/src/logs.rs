//! Logs on standard error: text for people, or one JSON object a line.
//!
//! Standard output is for what was asked for (`--check`, completions). Colours only on a terminal
//! and not if `NO_COLOR` is set.

use std::env;
use std::io::{self, IsTerminal};
use std::panic;

use clap::ValueEnum;
use thiserror::Error;
use tracing::error;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};

/// How log lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, for machines.
    Json,
}

/// Why logging could not be set up.
#[derive(Debug, Error)]
pub enum LogError {
    /// Not a filter.
    #[error("{filter:?} is no log filter; try \"info\", or \"warn,doorward_server=debug\"")]
    Filter {
        /// What was given.
        filter: String,
        /// Why it is none.
        source: ParseError,
    },
    /// There is a subscriber already.
    #[error("logging is set up already")]
    Twice(#[from] TryInitError),
}

/// Sets up logging for the whole process.
///
/// # Errors
///
/// If the filter is malformed, or logging was set up before.
pub fn start(format: LogFormat, filter: &str) -> Result<(), LogError> {
    let filter_parsed = EnvFilter::try_new(filter).map_err(|source| LogError::Filter {
        filter: filter.to_owned(),
        source,
    })?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter_parsed)
        .with_writer(io::stderr);
    match format {
        LogFormat::Text => lines
            .with_ansi(io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none())
            .with_target(false)
            .finish()
            .try_init()?,
        LogFormat::Json => lines.json().flatten_event(true).finish().try_init()?,
    }
    // A panic is a line like any other; where it is caught is no business of the log.
    panic::set_hook(Box::new(|panicked| {
        error!(%panicked, "a bug: the program panicked");
    }));
    Ok(())
}
