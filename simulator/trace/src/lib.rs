//! Demand traces: the demand of clients over time.
//!
//! The format is CSV in long form with the header `time_s,client,wants`. From `time_s` seconds
//! after the start on, `client` wants that much, until its next row. Times never go backwards.
//! Reading stops at the first problem, since the rest makes no sense after it.
//!
//! A trace may have millions of rows. [`Rows`] keeps one name for each client and reads row by row;
//! [`scan`] reads the whole trace to find all errors.

mod rows;

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

pub use crate::rows::{Row, Rows};

/// Source of a trace.
#[derive(Clone, PartialEq, Eq)]
pub enum TraceSource {
    /// File.
    File(PathBuf),
    /// Text within the program.
    BuiltIn {
        /// Name for messages.
        name: &'static str,
        /// Whole text.
        text: &'static str,
    },
}

impl TraceSource {
    fn open(&self) -> Result<Box<dyn Read + Send>, TraceError> {
        match self {
            Self::BuiltIn { text, .. } => Ok(Box::new(text.as_bytes())),
            Self::File(path) => match File::open(path) {
                Ok(file) => Ok(Box::new(file)),
                Err(cause) => Err(TraceError {
                    file: self.to_string(),
                    line: None,
                    problem: format!("cannot be read: {cause}"),
                }),
            },
        }
    }
}

impl fmt::Display for TraceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::BuiltIn { name, .. } => f.write_str(name),
        }
    }
}

/// Shows the name alone; the text would fill a screen.
impl fmt::Debug for TraceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// Problem of a trace, with its line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{} {problem}", line.map_or_else(String::new, |line| format!("{line}:")))]
pub struct TraceError {
    /// Name of the trace.
    pub file: String,
    /// Line, from 1; `None` if the trace could not be read at all.
    pub line: Option<u64>,
    /// Text of the problem, with what to do about it.
    pub problem: String,
}

/// Facts from a full read of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    /// Clients in the order of their first appearance.
    pub clients: Vec<String>,
    /// Time of the last row.
    pub length: Duration,
    /// Largest amount.
    pub wants_max: f64,
}

/// Reads a trace from start to end.
///
/// # Errors
///
/// If it cannot be read, is invalid, has no rows, or has more than `clients_max` clients.
pub fn scan(source: &TraceSource, clients_max: usize) -> Result<Scan, TraceError> {
    let mut rows = Rows::open(source, clients_max)?;
    let mut scan = Scan {
        clients: Vec::new(),
        length: Duration::ZERO,
        wants_max: 0.0,
    };
    while let Some(row) = rows.next_row()? {
        if row.client == scan.clients.len() {
            scan.clients.push(row.name.to_owned());
        }
        scan.length = Duration::try_from_secs_f64(row.time_s).unwrap_or(Duration::MAX);
        scan.wants_max = scan.wants_max.max(row.wants);
    }
    if scan.clients.is_empty() {
        return Err(rows.error("has no rows; add at least one".to_owned()));
    }
    Ok(scan)
}

#[cfg(test)]
mod tests;
