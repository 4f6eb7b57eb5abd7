//! Rows of a trace, each of them checked.

use std::collections::HashMap;
use std::io::Read;
use std::str;

use csv::{ByteRecord, ErrorKind, Position, Reader, ReaderBuilder, Trim};
use doorward_engine::amount::Amount;
use doorward_engine::id::HolderName;

use crate::{TraceError, TraceSource};

/// Columns, in order.
const COLUMNS: [&str; 3] = ["time_s", "client", "wants"];

/// Latest time, in seconds: some thirty years.
const TIME_MAX_S: f64 = 1e9;

/// Row of a trace.
#[derive(Debug)]
pub struct Row<'a> {
    /// Seconds from the start.
    pub time_s: f64,
    /// Index of its client, in the order of first appearance.
    pub client: usize,
    /// Name of its client.
    pub name: &'a str,
    /// Amount that it wants.
    pub wants: f64,
}

/// Reader of rows that remembers the clients.
pub struct Rows {
    reader: Reader<Box<dyn Read + Send>>,
    file: String,
    record: ByteRecord,
    /// Index of each client, in the order of first appearance.
    known: HashMap<String, usize>,
    /// Time of the previous row.
    before_s: f64,
    line: u64,
    clients_max: usize,
}

impl Rows {
    /// Opens a trace.
    ///
    /// # Errors
    ///
    /// If it cannot be read or has no header.
    pub fn open(source: &TraceSource, clients_max: usize) -> Result<Self, TraceError> {
        let mut rows = Self {
            reader: reader(source)?,
            file: source.to_string(),
            record: ByteRecord::new(),
            known: HashMap::new(),
            before_s: 0.0,
            line: 1,
            clients_max,
        };
        rows.header()?;
        Ok(rows)
    }

    /// Returns an error at the row that was read last.
    pub fn error(&self, problem: String) -> TraceError {
        TraceError {
            file: self.file.clone(),
            line: Some(self.line),
            problem,
        }
    }

    fn header(&mut self) -> Result<(), TraceError> {
        let header = match self.reader.byte_headers() {
            Ok(header) => header,
            Err(cause) => {
                let problem = format!("cannot be read: {cause}");
                return Err(self.error(problem));
            }
        };
        if header.iter().eq(COLUMNS.map(str::as_bytes)) {
            return Ok(());
        }
        let found: Vec<_> = header.iter().map(String::from_utf8_lossy).collect();
        let found: String = found.join(",").chars().take(60).collect();
        let expected = COLUMNS.join(",");
        Err(self.error(format!(
            "the header is {found:?}; a trace starts with the line \"{expected}\""
        )))
    }

    /// Reads the next row; `None` at the end.
    ///
    /// # Errors
    ///
    /// If the row is invalid, or if it has one client too many.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, TraceError> {
        self.line = self.reader.position().line();
        match self.reader.read_byte_record(&mut self.record) {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(cause) => {
                self.line = cause.position().map_or(self.line, Position::line);
                let problem = match cause.kind() {
                    ErrorKind::UnequalLengths { len, .. } => {
                        format!("has {len} columns; give 3: {}", COLUMNS.join(","))
                    }
                    _ => format!("cannot be read: {cause}"),
                };
                return Err(self.error(problem));
            }
        }
        // Line of the record itself, after empty lines.
        self.line = self.record.position().map_or(self.line, Position::line);
        match checked(
            &self.record,
            self.before_s,
            &mut self.known,
            self.clients_max,
        ) {
            Ok(row) => {
                self.before_s = row.time_s;
                Ok(Some(row))
            }
            Err(problem) => Err(self.error(problem)),
        }
    }
}

fn reader(source: &TraceSource) -> Result<Reader<Box<dyn Read + Send>>, TraceError> {
    let reader = source.open()?;
    Ok(ReaderBuilder::new().trim(Trim::All).from_reader(reader))
}

/// Checks a row.
fn checked<'a>(
    record: &'a ByteRecord,
    before_s: f64,
    known: &mut HashMap<String, usize>,
    clients_max: usize,
) -> Result<Row<'a>, String> {
    let time_s = number(record, 0)?;
    // This also refuses a time that is not a number.
    if !(0.0..=TIME_MAX_S).contains(&time_s) {
        return Err(format!(
            "time_s is {time_s:?}; give seconds from the start, from 0 to {TIME_MAX_S}"
        ));
    }
    if time_s < before_s {
        return Err(format!(
            "time goes back from {before_s} to {time_s}; sort the rows by time_s"
        ));
    }
    let wants = Amount::new(number(record, 2)?).map_err(|cause| format!("wants {cause}"))?;
    let name = text(record, 1)?;
    let client = match known.get(name) {
        Some(client) => *client,
        None => {
            HolderName::new(name).map_err(|cause| format!("client {cause}"))?;
            let client = known.len();
            if client == clients_max {
                return Err(format!("has more than the allowed {clients_max} clients"));
            }
            known.insert(name.to_owned(), client);
            client
        }
    };
    let wants = wants.get();
    Ok(Row {
        time_s,
        client,
        name,
        wants,
    })
}

fn text(record: &ByteRecord, column: usize) -> Result<&str, String> {
    str::from_utf8(record.get(column).unwrap_or_default())
        .map_err(|_| "is not UTF-8; save the file as UTF-8".to_owned())
}

fn number(record: &ByteRecord, column: usize) -> Result<f64, String> {
    let text = text(record, column)?;
    text.parse().map_err(|_| {
        let name = COLUMNS.get(column).copied().unwrap_or_default();
        let text: String = text.chars().take(40).collect();
        format!("{name} is {text:?}; give a number")
    })
}
