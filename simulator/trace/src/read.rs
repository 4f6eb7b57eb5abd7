//! Reads traces, and checks every row.

use std::collections::HashMap;
use std::io::{self, Read};

use csv::{Error, ErrorKind, Position, Reader, ReaderBuilder, StringRecord, Trim};
use doorward_engine::amount::Amount;
use doorward_engine::id::HolderName;

use crate::{Row, Trace, TraceError};

/// Columns, in order.
const COLUMNS: [&str; 3] = ["time_s", "client", "wants"];

/// Latest time, in seconds: some thirty years.
const TIME_MAX_S: f64 = 1e9;

impl Trace {
    /// Reads a trace with at most so many clients and rows from an opened file or a text. `name` is its name for
    /// messages.
    ///
    /// # Errors
    ///
    /// If it cannot be opened or read, is invalid, has no rows, or has more clients or rows than allowed.
    pub fn read(
        name: &str,
        opened: io::Result<impl Read>,
        clients_max: usize,
        rows_max: usize,
    ) -> Result<Self, TraceError> {
        let error = |line: Option<u64>, problem: String| TraceError {
            file: name.to_owned(),
            line,
            problem,
        };
        let opened = opened.map_err(|cause| error(None, format!("cannot be read: {cause}")))?;
        let mut reader = ReaderBuilder::new().trim(Trim::All).from_reader(opened);
        check_header(&mut reader).map_err(|problem| error(Some(1), problem))?;
        let (mut trace, mut known) = (Self::default(), HashMap::new());
        let mut record = StringRecord::new();
        loop {
            let next = reader.position().line();
            // Line of the record itself, after empty lines.
            let line = |at: Option<&Position>| Some(at.map_or(next, Position::line));
            match reader.read_record(&mut record) {
                Ok(true) => {}
                Ok(false) if trace.rows.is_empty() => {
                    let problem = "has no rows; add at least one".to_owned();
                    return Err(error(line(None), problem));
                }
                Ok(false) => return Ok(trace),
                Err(cause) => return Err(error(line(cause.position()), unreadable(&cause))),
            }
            let added = trace.add(&record, &mut known, clients_max, rows_max);
            added.map_err(|problem| error(line(record.position()), problem))?;
        }
    }

    /// Checks a row, and adds it. `known` has the index of each client.
    fn add(
        &mut self,
        record: &StringRecord,
        known: &mut HashMap<String, usize>,
        clients_max: usize,
        rows_max: usize,
    ) -> Result<(), String> {
        let time_s = number(record, 0)?;
        // This also refuses a time that is not a number.
        if !(0.0..=TIME_MAX_S).contains(&time_s) {
            let range = format!("give seconds from the start, from 0 to {TIME_MAX_S}");
            return Err(format!("time_s is {time_s:?}; {range}"));
        }
        let before_s = self.rows.last().map_or(0.0, |row| row.time_s);
        if time_s < before_s {
            let back = format!("time goes back from {before_s} to {time_s}");
            return Err(format!("{back}; sort the rows by time_s"));
        }
        let wants = Amount::new(number(record, 2)?).map_err(|cause| format!("wants {cause}"))?;
        let name = record.get(1).unwrap_or_default();
        let client = match known.get(name) {
            Some(client) => *client,
            None => {
                HolderName::new(name).map_err(|cause| format!("client {cause}"))?;
                let client = self.clients.len();
                if client == clients_max {
                    return Err(format!("has more than the allowed {clients_max} clients"));
                }
                known.insert(name.to_owned(), client);
                self.clients.push(name.to_owned());
                client
            }
        };
        if self.rows.len() == rows_max {
            return Err(format!("has more than the allowed {rows_max} rows"));
        }
        self.rows.push(Row {
            time_s,
            client,
            wants: wants.get(),
        });
        Ok(())
    }
}

fn check_header(reader: &mut Reader<impl Read>) -> Result<(), String> {
    let header = reader.headers().map_err(|cause| unreadable(&cause))?;
    if *header == COLUMNS[..] {
        return Ok(());
    }
    let found: Vec<_> = header.iter().collect();
    let found: String = found.join(",").chars().take(60).collect();
    let expected = COLUMNS.join(",");
    let advice = format!("a trace starts with the line \"{expected}\"");
    Err(format!("the header is {found:?}; {advice}"))
}

fn unreadable(cause: &Error) -> String {
    match cause.kind() {
        ErrorKind::UnequalLengths { len, .. } => {
            format!("has {len} columns; give 3: {}", COLUMNS.join(","))
        }
        ErrorKind::Utf8 { .. } => "is not UTF-8; save the file as UTF-8".to_owned(),
        _ => format!("cannot be read: {cause}"),
    }
}

fn number(record: &StringRecord, column: usize) -> Result<f64, String> {
    let text = record.get(column).unwrap_or_default();
    text.parse().map_err(|_| {
        let name = COLUMNS.get(column).copied().unwrap_or_default();
        let text: String = text.chars().take(40).collect();
        format!("{name} is {text:?}; give a number")
    })
}
