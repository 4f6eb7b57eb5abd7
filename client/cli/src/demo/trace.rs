//! Demand traces: who wants how much from when on.
//!
//! Long form, with a header: `time_s,client,wants`. From `time_s` seconds after the start on,
//! `client` wants that much, until its next row. Times never go backwards. Every problem is
//! reported with its line; reading stops at the first, since what follows it makes no sense.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::HolderName;
use thiserror::Error;

/// The columns, in order.
const COLUMNS: [&str; 3] = ["time_s", "client", "wants"];

/// The most clients a demo shows.
pub(super) const CLIENTS_MAX: usize = 100;

/// Who wants how much from when on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Trace {
    /// In order of appearance.
    pub clients: Vec<HolderName>,
    /// In order of time.
    pub rows: Vec<Row>,
}

/// From a time on, a client wants that much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Row {
    /// From the start of the trace.
    pub at: Duration,
    /// Index into [`Trace::clients`].
    pub client: usize,
    /// Per second.
    pub wants: Amount,
}

/// What is wrong with a trace, and in which line.
#[derive(Debug, Error)]
#[error("{file}:{line}: {problem}")]
pub(super) struct TraceError {
    file: String,
    line: u64,
    problem: String,
}

impl Trace {
    /// The trace that comes with the program.
    ///
    /// # Errors
    ///
    /// None: a test reads it.
    pub(super) fn built_in() -> Result<Self, TraceError> {
        Self::read(include_bytes!("../../demo/demo.csv").as_slice(), "demo.csv")
    }

    /// Reads a trace; `file` is for messages.
    ///
    /// # Errors
    ///
    /// If it cannot be read, is not in order, or has no rows or more than [`CLIENTS_MAX`] clients.
    pub(super) fn read(from: impl Read, file: &str) -> Result<Self, TraceError> {
        let error = |line: u64, problem: String| TraceError {
            file: file.to_owned(),
            line,
            problem,
        };
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .from_reader(from);
        check_header(&mut reader).map_err(|problem| error(1, problem))?;
        let mut trace = Self {
            clients: Vec::new(),
            rows: Vec::new(),
        };
        let mut known: BTreeMap<HolderName, usize> = BTreeMap::new();
        let mut record = csv::StringRecord::new();
        loop {
            let line = reader.position().line();
            match reader.read_record(&mut record) {
                Ok(true) => {}
                Ok(false) => break,
                Err(cause) => {
                    let line = cause.position().map_or(line, csv::Position::line);
                    return Err(error(line, problem_of(&cause)));
                }
            }
            let line = record.position().map_or(line, csv::Position::line);
            let row = Self::parse_row(&record, &mut known).map_err(|p| error(line, p))?;
            if row.client == trace.clients.len() {
                if row.client == CLIENTS_MAX {
                    let problem =
                        format!("has one client more than the {CLIENTS_MAX} there may be");
                    return Err(error(line, problem));
                }
                trace
                    .clients
                    .extend(HolderName::new(record.get(1).unwrap_or_default()));
            }
            if let Some(before) = trace.rows.last()
                && row.at < before.at
            {
                let (at, before) = (row.at.as_secs_f64(), before.at.as_secs_f64());
                let problem =
                    format!("time goes back from {before} to {at}; sort the rows by time_s");
                return Err(error(line, problem));
            }
            trace.rows.push(row);
        }
        if trace.rows.is_empty() {
            return Err(error(
                1,
                "has no rows; there is nothing to follow".to_owned(),
            ));
        }
        Ok(trace)
    }

    /// When the last change happens.
    pub(super) fn length(&self) -> Duration {
        self.rows.last().map_or(Duration::ZERO, |row| row.at)
    }

    /// The highest total demand, and the mean over time.
    pub(super) fn total_demand(&self) -> (f64, f64) {
        let mut wants = vec![0.0; self.clients.len()];
        let (mut most, mut area, mut at) = (0.0_f64, 0.0, Duration::ZERO);
        for row in &self.rows {
            let total: f64 = wants.iter().sum();
            if row.at > at {
                most = most.max(total);
            }
            area += total * row.at.saturating_sub(at).as_secs_f64();
            at = row.at;
            if let Some(wants) = wants.get_mut(row.client) {
                *wants = row.wants.get();
            }
        }
        most = most.max(wants.iter().sum());
        let length = self.length().as_secs_f64();
        (most, if length > 0.0 { area / length } else { most })
    }

    fn parse_row(
        record: &csv::StringRecord,
        known: &mut BTreeMap<HolderName, usize>,
    ) -> Result<Row, String> {
        let field = |column: usize| record.get(column).unwrap_or_default();
        let number = |column: usize| -> Result<f64, String> {
            let text = field(column);
            let name = COLUMNS.get(column).copied().unwrap_or_default();
            text.parse()
                .map_err(|_| format!("{name} is {text:?}; give a number"))
        };
        let time_s = number(0)?;
        let at = Duration::try_from_secs_f64(time_s)
            .ok()
            .filter(|at| at.as_secs() < 1_000_000_000)
            .ok_or_else(|| format!("time_s is {time_s}; give seconds from the start, from 0 up"))?;
        let name = HolderName::new(field(1)).map_err(|cause| format!("client {cause}"))?;
        let wants = Amount::new(number(2)?).map_err(|cause| format!("wants {cause}"))?;
        let next = known.len();
        let client = *known.entry(name).or_insert(next);
        Ok(Row { at, client, wants })
    }
}

/// Whether a trace starts as it should.
fn check_header(reader: &mut csv::Reader<impl Read>) -> Result<(), String> {
    let header = reader.headers().map_err(|cause| cause.to_string())?;
    if header.iter().eq(COLUMNS) {
        return Ok(());
    }
    let found = header.iter().collect::<Vec<_>>().join(",");
    Err(format!(
        "the header is {found:?}; a trace starts with the line \"{}\"",
        COLUMNS.join(",")
    ))
}

/// Why a row cannot be read.
fn problem_of(cause: &csv::Error) -> String {
    match cause.kind() {
        csv::ErrorKind::UnequalLengths { len, .. } => {
            format!("has {len} columns; give 3: {}", COLUMNS.join(","))
        }
        csv::ErrorKind::Utf8 { .. } => "is not UTF-8".to_owned(),
        _ => cause.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        match Trace::read(text.as_bytes(), "t.csv") {
            Ok(trace) => panic!("read {trace:?}"),
            Err(error) => assert_eq!(error.to_string(), expected),
        }
    }

    #[test]
    fn the_built_in_trace_is_in_order() {
        let trace = Trace::built_in().unwrap();
        assert_eq!(trace.clients.len(), 10);
        let (most, mean) = trace.total_demand();
        assert!(
            (300.0..350.0).contains(&most) && (110.0..130.0).contains(&mean),
            "{most} {mean}"
        );
        assert!((590..=600).contains(&trace.length().as_secs()));
    }

    #[test]
    fn rows_say_who_wants_how_much_from_when_on() {
        let trace = Trace::read(
            "time_s,client,wants\n0,a,1\n0,b,2.5\n7.5, a ,0\n".as_bytes(),
            "t",
        );
        let trace = trace.unwrap();
        let row = |at: f64, client, wants| Row {
            at: Duration::from_secs_f64(at),
            client,
            wants: Amount::new(wants).unwrap(),
        };
        assert_eq!(
            trace.rows,
            [row(0.0, 0, 1.0), row(0.0, 1, 2.5), row(7.5, 0, 0.0)]
        );
    }

    #[test]
    fn a_bad_line_is_reported_with_its_number() {
        let bad = |row: &str| format!("time_s,client,wants\n0,a,1\n{row}\n5,a,2\n");
        for (row, expected) in [
            ("1,a", "t.csv:3: has 2 columns; give 3: time_s,client,wants"),
            ("x,a,1", "t.csv:3: time_s is \"x\"; give a number"),
            (
                "-1,a,1",
                "t.csv:3: time_s is -1; give seconds from the start, from 0 up",
            ),
            ("1,,1", "t.csv:3: client is empty; give it a name"),
            ("1,a,lots", "t.csv:3: wants is \"lots\"; give a number"),
            (
                "1,a,NaN",
                "t.csv:3: wants is not a number; give a finite number that is not negative",
            ),
            (
                "1,a,-3",
                "t.csv:3: wants is -3, which is negative; give a finite number that is not negative",
            ),
            (
                "9,a,1",
                "t.csv:4: time goes back from 9 to 5; sort the rows by time_s",
            ),
        ] {
            check(&bad(row), expected);
        }
    }

    #[test]
    fn a_file_that_is_no_trace_is_refused() {
        check(
            "a,b\n1,2\n",
            "t.csv:1: the header is \"a,b\"; a trace starts with the line \"time_s,client,wants\"",
        );
        check(
            "time_s,client,wants\n",
            "t.csv:1: has no rows; there is nothing to follow",
        );
        check(
            "",
            "t.csv:1: the header is \"\"; a trace starts with the line \"time_s,client,wants\"",
        );
    }
}
