//! Demand traces: who wants how much from when on, read row by row.
//!
//! Long form, with a header: `time_s,client,wants`. From `time_s` seconds after the start on,
//! `client` wants that much, until its next row. Times never go backwards.
//!
//! A trace may have millions of rows: what is kept is one name a client. It is read once before a
//! simulation, by [`scan`], which finds whatever is wrong with it, and then again while it is
//! played, by [`TraceFeed`]. Reading stops at the first problem, since what follows it makes no
//! sense.

mod bounded;
mod rows;

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::time::Duration;

use doorward_engine::amount::Amount;
use thiserror::Error;

use crate::scenario::demand::Trace;
use crate::trace::bounded::Bounded;
use crate::trace::rows::Rows;

/// Where a trace is.
#[derive(Clone, PartialEq, Eq)]
pub enum Source {
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

impl Source {
    fn open(&self) -> Result<Box<dyn Read + Send>, TraceError> {
        match self {
            Self::BuiltIn { text, .. } => Ok(Box::new(text.as_bytes())),
            Self::File(path) => match File::open(path) {
                Ok(file) => Ok(Box::new(Bounded::new(file))),
                Err(cause) => Err(TraceError {
                    file: self.to_string(),
                    line: None,
                    problem: format!("cannot be read: {cause}"),
                }),
            },
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{}", path.display()),
            Self::BuiltIn { name, .. } => f.write_str(name),
        }
    }
}

/// A text in the program is not worth a screen of it.
impl fmt::Debug for Source {
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
/// If it cannot be read, is invalid, or has no rows or more than
/// [`CLIENTS_MAX`](crate::scenario::CLIENTS_MAX) clients.
pub fn scan(source: &Source) -> Result<Scan, TraceError> {
    let mut rows = Rows::open(source)?;
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

/// From a time on, a client wants that much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// From the start of the simulation.
    pub at: Duration,
    /// Its place among [`Trace::clients`].
    pub client: usize,
    /// How much.
    pub wants: f64,
}

/// The rows of a trace as it is played: in time and amount as the scenario wants it, and as often.
/// A round starts where the one before it ended: its first row is when the last one was.
#[derive(Debug)]
pub struct TraceFeed {
    source: Source,
    /// None: it is over.
    rows: Option<Rows>,
    speed: f64,
    scale: f64,
    rounds_left: u32,
    /// When the first row is, from the start of a round: later rounds begin with it.
    lead: Option<Duration>,
    /// When this round began, its lead included.
    started: Duration,
    /// When the last row was.
    last: Duration,
    clients: usize,
}

impl TraceFeed {
    /// Begins a trace.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn open(trace: &Trace) -> Result<Self, TraceError> {
        Ok(Self {
            rows: match trace.repeat {
                0 => None,
                _ => Some(Rows::open(&trace.source)?),
            },
            source: trace.source.clone(),
            speed: trace.speed,
            scale: trace.scale,
            rounds_left: trace.repeat.saturating_sub(1),
            lead: None,
            started: Duration::ZERO,
            last: Duration::ZERO,
            clients: trace.clients.len(),
        })
    }

    fn next_row(&mut self) -> Result<Option<Row>, TraceError> {
        loop {
            let Some(rows) = &mut self.rows else {
                return Ok(None);
            };
            if let Some(row) = rows.next_row()? {
                if row.client >= self.clients {
                    let problem = format!("has a client {:?} that was not there before", row.name);
                    return Err(rows.error(problem));
                }
                let since = Duration::try_from_secs_f64(row.time_s / self.speed);
                let since = since.unwrap_or(Duration::MAX);
                self.lead.get_or_insert(since);
                self.last = self.started.saturating_add(since);
                return Ok(Some(Row {
                    at: self.last,
                    client: row.client,
                    wants: (row.wants * self.scale).min(Amount::MAX.get()),
                }));
            }
            // A round that takes no time would be followed by as many others as are wanted, at one
            // and the same moment.
            let lead = self.lead.unwrap_or_default();
            let next = self.last.saturating_sub(lead);
            if self.rounds_left == 0 || next == self.started {
                self.rows = None;
            } else {
                self.rounds_left -= 1;
                self.started = next;
                rows.again(&self.source)?;
            }
        }
    }
}

/// Ends after an error: the trace was valid when the scenario was read, and no longer is.
impl Iterator for TraceFeed {
    type Item = Result<Row, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        let row = self.next_row();
        if row.is_err() {
            self.rows = None;
        }
        row.transpose()
    }
}

#[cfg(test)]
mod tests;
