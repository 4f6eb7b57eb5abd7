//! Demand as a trace has it: the name of a file, or a map that says how it is played.
//!
//! A trace of the library may be named in a file on disk, too: `library:fast-demand.csv`. So what `doorward-sim show`
//! prints can be played from any folder.

use std::iter;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::amount::Amount as EngineAmount;
use doorward_trace::{Row, TraceSource};
use serde::de::value::MapDeserializer;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::scenario::forms::{Amount, Form, Never, TraceSpeed, one};
use crate::scenario::source::{OneOf, Read, ScenarioError, refuse};
use crate::scenario::{CLIENTS_MAX, TRACE_ROWS_MAX};

/// The traces of the library, by their names.
const LIBRARY: &[(&str, &str)] = &[
    (
        "library:llm-tokens.csv",
        include_str!("../../../traces/llm-tokens.csv"),
    ),
    (
        "library:fast-demand.csv",
        include_str!("../../../traces/fast-demand.csv"),
    ),
];

/// A trace, and how it is played.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Trace {
    /// Its file, from the folder of the scenario. `library:NAME` comes with the program.
    pub file: String,
    /// The names of its clients here, in the order in which they first appear.
    #[serde(skip)]
    pub clients: Vec<String>,
    /// Its rows, as in the file.
    #[serde(skip)]
    pub rows: Arc<[Row]>,
    /// Its clock is divided by this: 2 plays it twice as fast.
    #[serde(default = "one", with = "TraceSpeed")]
    pub speed: f64,
    /// Its amounts are multiplied by this.
    #[serde(default = "one", with = "Amount")]
    pub scale: f64,
}

impl Trace {
    /// Finds the trace, and reads it.
    pub(in crate::scenario) fn open(&mut self, folder: &Path) -> Read<()> {
        let source = match LIBRARY.iter().find(|(name, _)| *name == self.file) {
            Some((name, text)) => TraceSource::BuiltIn { name, text },
            None if self.file.starts_with("library:") => {
                let message = format!("is {:?}, which is not in the library", self.file);
                return refuse("trace", message);
            }
            None => {
                let path = folder.join(&self.file);
                // A scenario that is written may lie in another folder.
                self.file = path.display().to_string();
                TraceSource::File(path)
            }
        };
        let read = doorward_trace::Trace::read(&source, CLIENTS_MAX, TRACE_ROWS_MAX);
        let read = read.map_err(|error| ScenarioError::new("trace", error))?;
        let largest = read.rows.iter().fold(0.0, |most, row| row.wants.max(most));
        let (largest, most) = (largest * self.scale, EngineAmount::MAX.get());
        if largest > most {
            let message = format!("makes the largest amount {largest}; give less than {most}");
            return refuse("trace.scale", message);
        }
        (self.clients, self.rows) = (read.clients, read.rows.into());
        Ok(())
    }

    /// Iterates over its rows with its speed and scale.
    pub fn played(&self) -> impl Iterator<Item = PlayedRow> {
        self.rows.iter().map(|row| {
            let at = Duration::try_from_secs_f64(row.time_s / self.speed);
            PlayedRow {
                at: at.unwrap_or(Duration::MAX),
                client: row.client,
                wants: (row.wants * self.scale).min(EngineAmount::MAX.get()),
            }
        })
    }
}

/// Change of a client's demand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PlayedRow {
    /// Time from the start of the simulation.
    pub at: Duration,
    /// Index of the client in [`Trace::clients`].
    pub client: usize,
    /// Amount that it wants from then on.
    pub wants: f64,
}

/// The name of a file, or a trace.
pub(in crate::scenario) struct TraceForm;

impl Form for TraceForm {
    type Value = Trace;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Trace, D::Error> {
        match OneOf::<String, Never, Trace>::deserialize(from)? {
            OneOf::Plain(name) => {
                Trace::deserialize(MapDeserializer::new(iter::once(("file", name))))
            }
            OneOf::List(never) => match never {},
            OneOf::Map(trace) => Ok(trace),
        }
    }

    fn serialize<S: Serializer>(trace: &Trace, to: S) -> Result<S::Ok, S::Error> {
        Serialize::serialize(trace, to)
    }
}

#[cfg(test)]
mod tests;
