//! Reads scenario files: YAML in, a [`Scenario`] or an error out.
//!
//! `docs/schemas/scenario.json` has every key. An invalid file is refused with its first problem: with its line and
//! column if serde finds it, or with the keys on the way to it if it concerns names or several fields.

use std::path::Path;
use std::time::Duration;
use std::{fs, mem};

use doorward_documents::DOCUMENT_BYTES_MAX;
use serde::Deserialize;
use serde::de::DeserializeOwned;

pub use crate::scenario::forms::ScenarioError;
use crate::scenario::forms::{Read, UNSAID, Within, is_within, refuse};
use crate::scenario::{Fault, Node, Scenario, TreeForm, clients, templates};

/// The default time between two measurements.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);

/// The most samples of all nodes together: each takes some fifty bytes.
const NODE_SAMPLES_MAX: u128 = 20_000_000;

/// The most maps and lists in one another.
const DEPTH_MAX: usize = 32;

/// Only the tree of a scenario file.
#[derive(Deserialize)]
struct TreeOnly {
    #[serde(with = "TreeForm")]
    tree: Vec<Node>,
}

impl Scenario {
    /// Reads a scenario file. Files that it names are looked for from the folder it is in.
    ///
    /// # Errors
    ///
    /// If it, or a file it names, cannot be read or is invalid.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let file = path.display().to_string();
        let text = fs::read_to_string(path);
        let text = text.or_else(|cause| refuse(&file, format!("cannot be read: {cause}")))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, &file, folder)
    }

    /// Reads only the tree in the text of a scenario file, which may have nothing else in it. `file` is its name, for messages.
    ///
    /// # Errors
    ///
    /// If it has no tree, or that is invalid.
    pub fn parse_tree(text: &str, file: &str) -> Result<Vec<Node>, ScenarioError> {
        parsed(text, file).map(|TreeOnly { tree }| tree)
    }

    /// Reads the text of a scenario file. `file` is its name, for messages and for a scenario that
    /// has none; files that it names are looked for from the folder on.
    ///
    /// # Errors
    ///
    /// If it, or a file it names, cannot be read or is invalid.
    pub fn parse(text: &str, file: &str, folder: &Path) -> Result<Self, ScenarioError> {
        let mut scenario: Self = parsed(text, file)?;
        let resolved = scenario.resolve(file, folder);
        resolved.map_err(|error| ScenarioError::new(file, error))?;
        Ok(scenario)
    }
}

fn parsed<T: DeserializeOwned>(text: &str, file: &str) -> Result<T, ScenarioError> {
    if text.len() > DOCUMENT_BYTES_MAX {
        return refuse(file, format!("is larger than {DOCUMENT_BYTES_MAX} bytes"));
    }
    let options = serde_saphyr::options! {
        with_snippet: false,
        budget: serde_saphyr::budget! { max_depth: DEPTH_MAX },
        // A number or a truth value needs quotes where text is expected.
        no_schema: true,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let place = error.location().map(|it| (it.line(), it.column()));
        let (line, column) = place.unwrap_or((1, 1));
        ScenarioError::new(format!("{file}:{line}:{column}"), error)
    })
}

impl Scenario {
    /// Resolves names, fills in defaults that depend on other fields, and checks fields against one another.
    fn resolve(&mut self, file: &str, folder: &Path) -> Read<()> {
        if self.name.is_empty() {
            self.name = file_stem(file);
        }
        self.description = self.description.trim().to_owned();
        if self.nodes.is_empty() {
            self.nodes.push(Node::new("root", None, 1));
        }
        let templates = templates::read(&mem::take(&mut self.templates_file), folder);
        self.templates = templates.within("templates")?;
        let mut clients = mem::take(&mut self.clients);
        clients::complete(&mut clients, self, folder).within("clients")?;
        self.clients = clients;
        self.network.resolve(&self.nodes).within("network")?;
        for (index, fields) in mem::take(&mut self.fault_files).into_iter().enumerate() {
            let fault = Fault::read(fields, self, folder);
            let fault = fault.within(&format!("faults[{index}]"))?;
            self.faults.push(fault);
        }
        if self.sample_every.0 == UNSAID {
            self.sample_every.0 = SAMPLE_EVERY.min(self.duration.0);
        }
        if self.settled_after.0 == UNSAID {
            self.settled_after.0 = self.settled_by_default();
        }
        self.check()
    }

    /// Refuses fields that do not fit to one another.
    fn check(&self) -> Read<()> {
        if let Some(heal_at) = self.heal_at {
            is_within(heal_at, self.duration).within("heal_at")?;
        }
        for (index, time) in self.right_at.iter().enumerate() {
            let step = format!("right_at[{index}]");
            is_within(*time, self.duration).within(&step)?;
        }
        is_within(self.settled_after, self.duration).within("settled_after")?;
        let nodes = self.nodes.len();
        let every = self.sample_every.0.as_nanos().max(1);
        let samples = self.duration.0.as_nanos() / every * nodes as u128;
        let message = if self.sample_every > self.duration {
            "is longer than the whole simulation; give less".to_owned()
        } else if samples > NODE_SAMPLES_MAX {
            format!(
                "gives {samples} samples of {nodes} nodes; give a longer time, for at most {NODE_SAMPLES_MAX}"
            )
        } else {
            return Ok(());
        };
        refuse("sample_every", message)
    }
}

/// The name of a file without its ending, as a scenario is called.
pub fn file_stem(file: &str) -> String {
    let stem = Path::new(file).file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests;
