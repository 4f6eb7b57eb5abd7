//! Demand traces: the demand of clients over time.
//!
//! The format is CSV in long form with the header `time_s,client,wants`. From `time_s` seconds
//! after the start on, `client` wants that much, until its next row. Times never go backwards.
//! Reading stops at the first problem, since the rest makes no sense after it.
//!
//! A trace is held in memory, with 24 bytes for each row.

mod read;

use std::time::Duration;

use thiserror::Error;

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

/// Demand of each client over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Names of the clients, in order of appearance.
    pub clients: Vec<String>,
    /// Rows in order of time; a trace that was read has at least one.
    pub rows: Vec<Row>,
}

/// From a time on, a client wants that much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Seconds from the start of the trace.
    pub time_s: f64,
    /// Index into [`Trace::clients`].
    pub client: usize,
    /// A valid amount.
    pub wants: f64,
}

impl Row {
    /// Returns its time from the start of the trace.
    pub fn at(&self) -> Duration {
        Duration::try_from_secs_f64(self.time_s).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests;
