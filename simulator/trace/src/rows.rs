//! The rows of a trace as they stand, each checked.

use std::collections::HashMap;
use std::io::Read;
use std::str;

use csv::{ByteRecord, ErrorKind, Position, Reader, ReaderBuilder, Trim};
use doorward_engine::amount::Amount;
use doorward_engine::id::HolderName;

use crate::{TraceError, TraceSource};

/// The columns, in order.
const COLUMNS: [&str; 3] = ["time_s", "client", "wants"];

/// The latest time, in seconds: some thirty years.
const TIME_MAX_S: f64 = 1e9;

/// A row as it stands.
#[derive(Debug)]
pub struct Row<'a> {
    /// Seconds from the start.
    pub time_s: f64,
    /// Its client's place in the order of first appearance.
    pub client: usize,
    /// Its client.
    pub name: &'a str,
    /// How much it wants: an amount.
    pub wants: f64,
}

/// Reads row by row, and remembers who was there.
pub struct Rows {
    reader: Reader<Box<dyn Read + Send>>,
    file: String,
    record: ByteRecord,
    /// Where clients stand in the order of first appearance.
    known: HashMap<String, usize>,
    /// When the row before this one was.
    before_s: f64,
    line: u64,
    clients_max: usize,
}

impl Rows {
    /// Begins to read.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or has no header.
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

    /// Starts from the beginning, with the same clients.
    ///
    /// # Errors
    ///
    /// As [`Rows::open`].
    pub fn again(&mut self, source: &TraceSource) -> Result<(), TraceError> {
        self.reader = reader(source)?;
        self.before_s = 0.0;
        self.line = 1;
        self.header()
    }

    /// What is wrong with the row that was read last.
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

    /// The next row; None at the end.
    ///
    /// # Errors
    ///
    /// If it is invalid, or there is one client more than there may be.
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
        // Where the record starts: empty lines before it are not its own.
        self.line = self.record.position().map_or(self.line, Position::line);
        match checked(
            &self.record,
            self.before_s,
            &mut self.known,
            self.clients_max,
        ) {
            Ok((time_s, client, wants)) => {
                self.before_s = time_s;
                let name = text(&self.record, 1).unwrap_or_default();
                Ok(Some(Row {
                    time_s,
                    client,
                    name,
                    wants,
                }))
            }
            Err(problem) => Err(self.error(problem)),
        }
    }
}

impl std::fmt::Debug for Rows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rows({}:{})", self.file, self.line)
    }
}

fn reader(source: &TraceSource) -> Result<Reader<Box<dyn Read + Send>>, TraceError> {
    let reader = source.open()?;
    Ok(ReaderBuilder::new().trim(Trim::All).from_reader(reader))
}

/// Time, client and amount of a row that comes after another one.
fn checked(
    record: &ByteRecord,
    before_s: f64,
    known: &mut HashMap<String, usize>,
    clients_max: usize,
) -> Result<(f64, usize, f64), String> {
    let time_s = number(record, 0)?;
    if time_s > TIME_MAX_S {
        return Err(format!("time_s is above {TIME_MAX_S}; give seconds"));
    }
    // Not a number is neither.
    if !(0.0..=TIME_MAX_S).contains(&time_s) {
        return Err(format!(
            "time_s is {time_s}; give seconds from the start, from 0 up"
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
                return Err(format!(
                    "has one client more than the {clients_max} there may be"
                ));
            }
            known.insert(name.to_owned(), client);
            client
        }
    };
    Ok((time_s, client, wants.get()))
}

fn text(record: &ByteRecord, column: usize) -> Result<&str, String> {
    let name = || COLUMNS.get(column).copied().unwrap_or_default();
    str::from_utf8(record.get(column).unwrap_or_default())
        .map_err(|_| format!("{} is not UTF-8; save the file as UTF-8", name()))
}

fn number(record: &ByteRecord, column: usize) -> Result<f64, String> {
    let text = text(record, column)?;
    text.parse().map_err(|_| {
        let name = COLUMNS.get(column).copied().unwrap_or_default();
        let text: String = text.chars().take(40).collect();
        format!("{name} is {text:?}; give a number")
    })
}
