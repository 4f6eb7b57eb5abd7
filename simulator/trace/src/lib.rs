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
/// If it cannot be read, is invalid, or has no rows or more than `clients_max` clients.
pub fn scan(source: &Source, clients_max: usize) -> Result<Scan, TraceError> {
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
mod tests {
    use super::*;

    fn built_in(text: &str) -> Source {
        Source::BuiltIn {
            name: "t.csv",
            text: Box::leak(text.to_owned().into_boxed_str()),
        }
    }

    const SMALL: &str = "time_s,client,wants\n0,b,1\n0, a ,2.5\n\n7.5,b,0\n10,c,4\n";

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(scan(&built_in(text), 10).unwrap_err().to_string(), expected);
    }

    #[test]
    fn a_scan_shows_who_is_there_and_for_how_long() {
        let expected = Scan {
            clients: ["b", "a", "c"].map(str::to_owned).to_vec(),
            length: Duration::from_secs(10),
            rows: 4,
            wants_max: 4.0,
        };
        assert_eq!(scan(&built_in(SMALL), 3), Ok(expected));
        let windows = format!("\u{feff}{}", SMALL.replace('\n', "\r\n"));
        assert_eq!(scan(&built_in(&windows), 3).unwrap().rows, 4);
    }

    #[test]
    fn a_bad_line_is_reported_with_its_number() {
        for (row, expected) in [
            ("1,a", "t.csv:3: has 2 columns; give 3: time_s,client,wants"),
            ("x,a,1", "t.csv:3: time_s is \"x\"; give a number"),
            (
                "NaN,a,1",
                "t.csv:3: time_s is NaN; give seconds from the start, from 0 up",
            ),
            (
                "-1,a,1",
                "t.csv:3: time_s is -1; give seconds from the start, from 0 up",
            ),
            (
                "1e300,a,1",
                "t.csv:3: time_s is above 1000000000; give seconds",
            ),
            ("1,,1", "t.csv:3: client is empty; give it a name"),
            ("1,a,lots", "t.csv:3: wants is \"lots\"; give a number"),
            ("1,a,", "t.csv:3: wants is \"\"; give a number"),
            (
                "1,a,NaN",
                "t.csv:3: wants is not a number; give a finite number that is not negative",
            ),
            (
                "1,a,-3",
                "t.csv:3: wants is -3, which is negative; give a finite number that is not negative",
            ),
            (
                "1,a,inf",
                "t.csv:3: wants is inf, which is above the largest amount, 1000000000000000",
            ),
            (
                "9,a,1",
                "t.csv:4: time goes back from 9 to 5; sort the rows by time_s",
            ),
        ] {
            check(
                &format!("time_s,client,wants\n0,a,1\n{row}\n5,a,2\n"),
                expected,
            );
        }
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        let header =
            "t.csv:1: the header is \"a,b\"; a trace starts with the line \"time_s,client,wants\"";
        check("a,b\n1,2\n", header);
        check(
            "time_s,client,wants\n",
            "t.csv:1: has no rows; there is nothing to follow",
        );
        check("", &header.replace("a,b", ""));
        let missing = Source::File(PathBuf::from("not/there.csv"));
        let error = scan(&missing, 10).unwrap_err().to_string();
        assert!(
            error.starts_with("not/there.csv: cannot be read: No such file"),
            "{error}"
        );
    }

    #[test]
    fn a_trace_has_only_so_many_clients() {
        let error = scan(&built_in(SMALL), 2).unwrap_err().to_string();
        assert_eq!(
            error,
            "t.csv:6: has one client more than the 2 there may be"
        );
    }
}
