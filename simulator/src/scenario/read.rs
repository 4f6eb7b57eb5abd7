//! Reads scenario files: YAML in, a [`Scenario`] or an error out.
//!
//! `docs/simulator-reference.md` has every key. An invalid file is refused with its first problem: with its line and
//! column if serde finds it, or with the keys on the way to it if it concerns names or several fields.

pub mod files;

use std::io;
use std::path::Path;
use std::time::Duration;

use doorward_documents::DOCUMENT_BYTES_MAX;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::scenario::clients::{self, GroupFile};
use crate::scenario::fault::{Fault, FaultFile};
use crate::scenario::forms::{As, Form, Maybe, Step, Time, is_default};
use crate::scenario::names::{Known, is_within};
use crate::scenario::network::NetworkFile;
use crate::scenario::nodes::{NamedNodes, TreeFile};
pub use crate::scenario::read::files::Files;
use crate::scenario::source::{Fields, Read, ReadError, Within};
use crate::scenario::templates::{self, TemplatesForm};
use crate::scenario::{ClientGaps, Limits, Node, Scenario, Servers};

/// The default time between two measurements.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);

/// The most samples of all nodes together: each takes some fifty bytes.
const NODE_SAMPLES_MAX: u128 = 20_000_000;

/// The longest name of a scenario, in bytes: names of files are made of it.
const NAME_BYTES_MAX: usize = 100;

/// A scenario file, or a template file that it names, is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ScenarioError(String);

/// The most maps and lists in one another.
const DEPTH_MAX: usize = 32;

/// A whole simulation.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Scenario")]
pub(super) struct ScenarioFile {
    /// The name of the scenario and of files about it: letters, digits, `-`, `_` and `.`. Absent: the name of the file.
    #[serde(default)]
    pub(super) name: Option<String>,
    /// A description for people.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) description: String,
    /// The duration of the simulation.
    #[serde(default = "ten_minutes", with = "Step")]
    pub(super) duration: Duration,
    /// The seed of all chance. The same seed gives the same run.
    #[serde(default = "one")]
    pub(super) seed: u64,
    /// The time between two measurements; at most 20,000,000 samples of all nodes together. Absent: 5 s.
    #[serde(default, with = "Maybe::<Step>")]
    pub(super) sample_every: Option<Duration>,
    /// From this time on nothing goes wrong. Servers come back, no message is lost or doubled, no fault begins, and
    /// demand changes by `surge` and `demand` only. Absent: never.
    #[serde(default, with = "Maybe::<Time>")]
    pub(super) heal_at: Option<Duration>,
    /// At these times clients must have what is right: see the limit `settled_unfairness`.
    #[serde(default)]
    pub(super) right_at: Vec<As<Time>>,
    /// Faults may concern no client, or fewer clients than they say. Files that chance wrote say so.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) idle_faults: bool,
    /// The templates of the root at the start, as in a template file; or the name of one.
    #[schemars(with = "TemplatesForm")]
    pub(super) templates: Value,
    /// The servers: nodes in nodes, or a list. Absent: one node, `root`.
    #[serde(default)]
    pub(super) tree: Option<TreeFile>,
    /// Groups of clients.
    pub(super) clients: Vec<GroupFile>,
    /// The links between clients and servers.
    #[serde(default)]
    pub(super) network: NetworkFile,
    /// The settings of servers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) servers: Servers,
    /// The settings of clients.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) client_gaps: ClientGaps,
    /// Faults, each with its time.
    #[serde(default)]
    #[schemars(with = "Vec<FaultFile>")]
    pub(super) faults: Vec<Fields>,
    /// Averages are judged from this time on. Absent: the longest learning mode and 30 s, but at most half of the
    /// duration.
    #[serde(default, with = "Maybe::<Time>")]
    pub(super) settled_after: Option<Duration>,
    /// The limits that verdicts judge by.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) limits: Limits,
}

const fn ten_minutes() -> Duration {
    Duration::from_secs(600)
}

const fn one() -> u64 {
    1
}

/// Only the tree of a scenario file.
#[derive(Deserialize)]
struct TreeOnly {
    tree: TreeFile,
}

impl Scenario {
    /// Reads a scenario file. Files that it names are looked for from the folder it is in.
    ///
    /// # Errors
    ///
    /// If it, or a file it names, cannot be read or is invalid.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let (text, file) = text_in(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, &file, &Files::Folder(folder.to_owned()))
    }

    /// Reads only the tree of a scenario file, which may have nothing else in it.
    ///
    /// # Errors
    ///
    /// If it cannot be read, has no tree, or that is invalid.
    pub fn read_tree(path: &Path) -> Result<Vec<Node>, ScenarioError> {
        let (text, file) = text_in(path)?;
        let TreeOnly { tree } = parsed(&text, &file)?;
        let tree = NamedNodes::of(Some(tree)).within("tree");
        let tree = tree.map_err(|error| ScenarioError(format!("{file}: {error}")))?;
        Ok(tree.nodes)
    }

    /// Reads the text of a scenario file. `file` is its name, for messages and for a scenario that
    /// has none; `files` is where the files are that it names.
    ///
    /// # Errors
    ///
    /// If it, or a file it names, cannot be read or is invalid.
    pub fn parse(text: &str, file: &str, files: &Files) -> Result<Self, ScenarioError> {
        let scenario = parsed::<ScenarioFile>(text, file)?.resolve(file, files);
        scenario.map_err(|error| ScenarioError(format!("{file}: {error}")))
    }
}

fn parsed<T: DeserializeOwned>(text: &str, file: &str) -> Result<T, ScenarioError> {
    if text.len() > DOCUMENT_BYTES_MAX {
        let message = format!("{file} is larger than {DOCUMENT_BYTES_MAX} bytes");
        return Err(ScenarioError(message));
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
        ScenarioError(format!("{file}:{line}:{column}: {error}"))
    })
}

/// The text of a file, and its name for messages.
fn text_in(path: &Path) -> Result<(String, String), ScenarioError> {
    let file = path.display().to_string();
    let bytes = files::bytes_of(path);
    let text = bytes.and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other));
    match text {
        Ok(text) => Ok((text, file)),
        Err(cause) => Err(ScenarioError(format!("{file}: cannot be read: {cause}"))),
    }
}

impl ScenarioFile {
    /// Resolves names, fills in defaults that depend on other fields, and checks fields against one another.
    fn resolve(self, file: &str, files: &Files) -> Read<Scenario> {
        let mut known = Known {
            files: files.clone(),
            end: self.duration,
            may_be_idle: self.idle_faults,
            templates: templates::read(&self.templates, files).within("templates")?,
            tree: NamedNodes::of(self.tree).within("tree")?,
            clients: Vec::new(),
        };
        let clients = clients::resolved(self.clients, &known);
        known.clients = clients.within("clients")?;
        let network = self.network.resolve(&known.tree).within("network")?;
        let (faults, known) = known.during(|| faults(self.faults));
        let faults = faults?;
        let Some(known) = known else {
            return Err(ReadError::new("", "names are lost"));
        };
        let end = self.duration;
        let mut scenario = Scenario {
            name: self.name.unwrap_or_else(|| file_stem(file)),
            description: self.description.trim().to_owned(),
            duration: end,
            seed: self.seed,
            sample_every: self.sample_every.unwrap_or(SAMPLE_EVERY.min(end)),
            heal_at: self.heal_at,
            right_at: self.right_at.into_iter().map(|time| time.0).collect(),
            idle_faults: self.idle_faults,
            templates: known.templates,
            nodes: known.tree.nodes,
            clients: known.clients,
            network,
            servers: self.servers,
            client_gaps: self.client_gaps,
            faults,
            settled_after: Duration::ZERO,
            limits: self.limits,
        };
        let settled = self.settled_after;
        scenario.settled_after = settled.unwrap_or_else(|| scenario.settled_by_default());
        scenario.check()?;
        Ok(scenario)
    }
}

fn faults(list: Vec<Fields>) -> Read<Vec<Fault>> {
    let faults = list.into_iter().enumerate();
    let faults = faults.map(|(index, it)| Fault::read(it).within(&format!("faults[{index}]")));
    faults.collect()
}

impl Scenario {
    /// Refuses fields that do not fit to one another.
    fn check(&self) -> Read<()> {
        if !is_name_of_files(&self.name) {
            let message = "give letters, digits, '-', '_' and '.', and a letter or digit first";
            return Err(ReadError::new("name", message));
        }
        if let Some(heal_at) = self.heal_at {
            is_within(heal_at, self.duration).within("heal_at")?;
        }
        for (index, time) in self.right_at.iter().enumerate() {
            let step = format!("right_at[{index}]");
            is_within(*time, self.duration).within(&step)?;
        }
        is_within(self.settled_after, self.duration).within("settled_after")?;
        let nodes = self.nodes.len();
        let every = self.sample_every.as_nanos().max(1);
        let samples = self.duration.as_nanos() / every * nodes as u128;
        let message = if self.sample_every > self.duration {
            "is longer than the whole simulation; give less".to_owned()
        } else if samples > NODE_SAMPLES_MAX {
            format!(
                "gives {samples} samples of {nodes} nodes; give a longer time, for at most {NODE_SAMPLES_MAX}"
            )
        } else {
            return Ok(());
        };
        Err(ReadError::new("sample_every", message))
    }
}

/// Whether a character may stand in the name of a file.
fn is_plain(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '-' | '_' | '.')
}

fn is_name_of_files(name: &str) -> bool {
    name.chars().all(is_plain)
        && name.starts_with(char::is_alphanumeric)
        && name.len() <= NAME_BYTES_MAX
}

/// The name of a file without its ending, as a scenario may be called.
fn file_stem(file: &str) -> String {
    let stem = Path::new(file).file_stem();
    let stem = stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    let plain = |c| if is_plain(c) { c } else { '-' };
    let name: String = stem.chars().map(plain).take(NAME_BYTES_MAX / 4).collect();
    if name.starts_with(char::is_alphanumeric) {
        name
    } else {
        format!("scenario{name}")
    }
}

#[cfg(test)]
mod tests;
