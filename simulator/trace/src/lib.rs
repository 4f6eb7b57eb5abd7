//! Demand traces: who wants how much from when on.
//!
//! Long form, with a header: `time_s,client,wants`. From `time_s` seconds after the start on, `client` wants that much,
//! until its next row. Times never go backwards. Reading stops at the first problem, since what follows it makes no
//! sense.
//!
//! A trace may have millions of rows: [`Rows`] keeps one name a client and reads row by row; [`scan`] reads all of it to
//! find whatever is wrong.

mod line_bound;
mod rows;

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use crate::line_bound::LineBound;
pub use crate::rows::{Row, Rows};

/// Where a trace is.
#[derive(Clone, PartialEq, Eq)]
pub enum TraceSource {
    /// In a file.
    File(PathBuf),
    /// In the program, under a name.
    BuiltIn {
        /// For messages.
        name: &'static str,
        /// All of it.
        text: &'static str,
    },
}

impl TraceSource {
    fn open(&self) -> Result<Box<dyn Read + Send>, TraceError> {
        match self {
            Self::BuiltIn { text, .. } => Ok(Box::new(text.as_bytes())),
            Self::File(path) => match File::open(path) {
                Ok(file) => Ok(Box::new(LineBound::new(file))),
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

/// A text in the program is not worth a screen of it.
impl fmt::Debug for TraceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What is wrong with a trace, and in which line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{} {problem}", line.map_or_else(String::new, |line| format!("{line}:")))]
pub struct TraceError {
    /// The trace.
    pub file: String,
    /// From 1. Absent: it could not be read at all.
    pub line: Option<u64>,
    /// What is wrong and what to do.
    pub problem: String,
}

/// What is known of a trace when it was read once.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    /// Its clients, in the order in which they first appear.
    pub clients: Vec<String>,
    /// The time of its last row.
    pub length: Duration,
    /// How many rows it has.
    pub rows: u64,
    /// The largest amount in it.
    pub wants_max: f64,
}

/// Reads a trace from end to end.
///
/// # Errors
///
/// If it cannot be read, is invalid, or has no rows or more than `clients_max` clients.
pub fn scan(source: &TraceSource, clients_max: usize) -> Result<Scan, TraceError> {
    let mut rows = Rows::open(source, clients_max)?;
    let mut scan = Scan {
        clients: Vec::new(),
        length: Duration::ZERO,
        rows: 0,
        wants_max: 0.0,
    };
    while let Some(row) = rows.next_row()? {
        if row.client == scan.clients.len() {
            scan.clients.push(row.name.to_owned());
        }
        scan.length = Duration::try_from_secs_f64(row.time_s).unwrap_or(Duration::MAX);
        scan.rows += 1;
        scan.wants_max = scan.wants_max.max(row.wants);
    }
    if scan.rows == 0 {
        let problem = "has no rows; there is nothing to follow".to_owned();
        return Err(TraceError {
            file: source.to_string(),
            line: Some(1),
            problem,
        });
    }
    Ok(scan)
}

#[cfg(test)]
mod tests;
