//! Demand as a trace has it: the name of a file, or a map that says how it is played.
//!
//! A trace of the library may be named in a file on disk, too: `library:fast-demand.csv`. So what `doorward-sim show`
//! prints can be played from any folder.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use doorward_engine::amount::Amount as EngineAmount;
use doorward_trace::{Row, TraceError};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::scenario::forms::{Amount, Read, ScenarioError, TraceSpeed, one, refuse};
use crate::scenario::{CLIENTS_MAX, TRACE_ROWS_MAX};

/// A trace, and how it is played.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Trace {
    /// Its file, from the folder of the scenario. `library:NAME` comes with the program.
    pub file: String,
    /// The names of its clients here, in the order in which they first appear.
    #[serde(skip)]
    pub clients: Vec<String>,
    /// Its rows, with its speed and scale.
    #[serde(skip)]
    pub rows: Arc<[Row]>,
    /// Its clock is divided by this: 2 plays it twice as fast.
    #[serde(default = "one::<TraceSpeed>")]
    pub speed: TraceSpeed,
    /// Its amounts are multiplied by this.
    #[serde(default = "one::<Amount>")]
    pub scale: Amount,
}

impl Trace {
    /// Finds the trace, and reads it.
    pub(in crate::scenario) fn open(&mut self, folder: &Path) -> Read<()> {
        let source: io::Result<Box<dyn io::Read>> = match built_in(&self.file) {
            Some(text) => Ok(Box::new(text.as_bytes())),
            None if self.file.starts_with("library:") => {
                let message = format!("is {:?}, which is not in the library", self.file);
                return refuse("trace", message);
            }
            None => {
                let path = folder.join(&self.file);
                self.file = path.display().to_string();
                File::open(path).map(|file| Box::new(file) as _)
            }
        };
        let read = self.read(source);
        read.map_err(|error| ScenarioError::new("trace", error))?;
        let largest = self.rows.iter().fold(0.0, |most, row| row.wants.max(most));
        let most = EngineAmount::MAX.get();
        if largest > most {
            let message = format!("makes the largest amount {largest}; give less than {most}");
            return refuse("trace.scale", message);
        }
        Ok(())
    }

    /// Reads its rows from its opened file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read or is no trace.
    pub fn read(&mut self, opened: io::Result<impl io::Read>) -> Result<(), TraceError> {
        let read = doorward_trace::Trace::read(&self.file, opened, CLIENTS_MAX, TRACE_ROWS_MAX)?;
        let rows = read.rows.into_iter().map(|row| Row {
            time_s: row.time_s / self.speed.0,
            wants: row.wants * self.scale.0,
            ..row
        });
        (self.clients, self.rows) = (read.clients, rows.collect());
        Ok(())
    }
}

/// Returns the text of a trace of the library.
fn built_in(file: &str) -> Option<&'static str> {
    Some(match file {
        "library:llm-tokens.csv" => include_str!("../../../traces/llm-tokens.csv"),
        "library:fast-demand.csv" => include_str!("../../../traces/fast-demand.csv"),
        _ => return None,
    })
}

/// The name of a file, or a trace.
pub(in crate::scenario) struct TraceForm;

impl TraceForm {
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Trace, D::Error> {
        let trace = match Value::deserialize(from)? {
            Value::String(file) => json!({"file": file}),
            trace => trace,
        };
        Trace::deserialize(trace).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
