//! Logs on standard error: text for people, or one JSON object a line.
//!
//! Standard output is for requested output (`--check`, completions). Lines have colours only on a terminal, and not if
//! `NO_COLOR` is set. Unprintable characters are escaped ([`plain`]). Lines pass through a bounded [`queue`], so
//! logging never blocks.

pub mod plain;
pub mod queue;

use std::env;
use std::io::{self, IsTerminal};
use std::panic;

use clap::ValueEnum;
use tracing::error;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, fmt};

use crate::logs::plain::Style;
use crate::logs::queue::LogGuard;

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, for machines.
    Json,
}

/// Sets up logging for the whole process: the lines that `filter` lets pass. Dropping the guard writes the last lines.
///
/// # Errors
///
/// If the filter is malformed, the thread cannot be started, or logging was set up before.
pub fn start(filter: &str, format: LogFormat) -> Result<LogGuard, String> {
    let filter = EnvFilter::try_new(filter).map_err(|problem| {
        format!(
            "{filter:?} is no log filter; try \"info\", or \"warn,doorward_server=debug\": {problem}"
        )
    })?;
    let style = match format {
        LogFormat::Text => Style::Text {
            is_coloured: io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none(),
        },
        LogFormat::Json => Style::Json,
    };
    let started = queue::start(style, io::stderr());
    let (queue, guard) = started.map_err(|error| format!("logging cannot be set up: {error}"))?;
    let lines = fmt::layer().with_writer(move || queue.clone());
    let registry = tracing_subscriber::registry().with(filter);
    let set_up = match style {
        Style::Text { is_coloured } => {
            let lines = lines.with_ansi(is_coloured).with_target(false);
            registry.with(lines).try_init()
        }
        Style::Json => registry.with(lines.json().flatten_event(true)).try_init(),
    };
    set_up.map_err(|_| "logging is set up already".to_owned())?;
    // A panic is logged like any other line, whether or not it is caught.
    panic::set_hook(Box::new(|panicked| {
        error!(%panicked, "a bug: the program panicked");
    }));
    Ok(guard)
}
