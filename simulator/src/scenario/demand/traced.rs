//! Demand as a trace has it: the name of a file, or that and how it is played.

use std::time::Duration;

use doorward_documents::placed_value::Value;
use doorward_engine::amount::Amount;

use crate::scenario::CLIENTS_MAX;
use crate::scenario::Scenario;
use crate::scenario::declared::{FieldRow, Fields, Record, Written};
use crate::scenario::read::files::LIBRARY;
use crate::scenario::shape::{Shape, amount, count, number, text};
use crate::scenario::write::CannotWrite;
use crate::scenario::yaml::Yaml;
use doorward_trace::{TraceSource, scan};

/// A trace, and how it is played.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Where it is.
    pub source: TraceSource,
    /// What its clients are called here, in the order in which they first appear.
    pub clients: Vec<String>,
    /// The time of its last row.
    pub length: Duration,
    /// Its clock is divided by this: 2 plays it twice as fast.
    pub speed: f64,
    /// Its amounts are multiplied by this.
    pub scale: f64,
    /// How often it is played, one after the other.
    pub repeat: u32,
}

record! {
    /// What a file says of a trace.
    #[derive(Clone, Debug)]
    pub(crate) struct TraceFile ("{file: …}") {
        /// Its name, from the folder of the scenario; `library:NAME` comes with the program.
        file: String = text(), needed("the name of a trace");
        /// Its clock is divided by this: 2 plays it twice as fast.
        speed: f64 = number(1e-6, 1e6), or(1.0);
        /// Its amounts are multiplied by this.
        scale: f64 = amount(), or(1.0);
        /// How often it is played, one after the other.
        repeat: u32 = count(1_000_000), or(1);
    }
}

/// The rows of what a file says of a trace.
pub(in crate::scenario) fn trace_rows() -> Vec<FieldRow> {
    TraceFile::rows()
}

/// A file, or how it is played.
pub(super) fn trace() -> Shape<Trace> {
    Shape::new("name of a file, or a map", |at, r| {
        let (how, file, scale_at) = match &at.node.value {
            Value::Text(name) => {
                let how = TraceFile {
                    file: name.clone(),
                    speed: 1.0,
                    scale: 1.0,
                    repeat: 1,
                };
                (how, at.clone(), None)
            }
            Value::Map(_) => {
                let how = TraceFile::read(at, r)?;
                let map = at.map(TraceFile::EXAMPLE, &mut r.problems)?;
                (how, map.get(&["file"])?, map.get(&["scale"]))
            }
            _ => {
                let expected = "the name of a file, or {file: …, speed: 2}";
                r.problems.refuse(at, expected);
                return None;
            }
        };
        let Some(source) = r.files.source(&how.file) else {
            let message = format!("is {:?}, which is not in the library", how.file);
            r.problems.wrong(&file, message);
            return None;
        };
        let scan = scan(&source, CLIENTS_MAX)
            .map_err(|error| r.problems.wrong(&file, error.to_string()))
            .ok()?;
        let largest = scan.wants_max * how.scale;
        if largest > Amount::MAX.get() {
            let message = format!(
                "makes the largest amount of the trace {largest}; the largest there may be is {}",
                Amount::MAX.get()
            );
            r.problems.wrong(&scale_at.unwrap_or(file), message);
            return None;
        }
        if how.repeat > 1 && scan.length.is_zero() {
            let message = "has all its rows at the start: it takes no time, and is not repeated";
            r.problems.wrong(&file, message);
            return None;
        }
        Some(Trace {
            source,
            clients: scan.clients,
            length: scan.length,
            speed: how.speed,
            scale: how.scale,
            repeat: how.repeat,
        })
    })
}

impl Written for Trace {
    fn written(&self, of: &Scenario) -> Result<Yaml, CannotWrite> {
        let file = match &self.source {
            TraceSource::File(path) => path.display().to_string(),
            TraceSource::BuiltIn { name, .. } => format!("{LIBRARY}{name}"),
        };
        let how = TraceFile {
            file,
            speed: self.speed,
            scale: self.scale,
            repeat: self.repeat,
        };
        how.written(of)
    }
}
