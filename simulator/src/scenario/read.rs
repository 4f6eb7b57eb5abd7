//! Reads scenario files: YAML in, a [`Scenario`] or an error out.
//!
//! `docs/simulator-reference.md` has every key. An invalid file is refused with its first problem:
//! `FILE:LINE:COLUMN: key: what is wrong; what to do`. Templates are reported with all that is wrong in them.

pub mod files;

use std::path::Path;
use std::time::Duration;

use doorward_documents::placed_value::{PlacedValue, Position, Value, read as read_yaml, text_of};
use doorward_documents::{DocumentError, Problem};
use doorward_engine::template::Templates;
use schemars::JsonSchema;
use serde::de::{Deserializer, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::scenario::clients::{self, GroupFile};
use crate::scenario::fault::{Fault, FaultFile};
use crate::scenario::forms::{Each, Form, Maybe, Step, Time, is_default};
use crate::scenario::names::{Known, is_within};
use crate::scenario::network::NetworkFile;
use crate::scenario::nodes::{NamedNodes, TreeFile};
pub use crate::scenario::read::files::Files;
use crate::scenario::source::{Read, ReadError, Within, read};
use crate::scenario::templates::TemplatesForm;
use crate::scenario::{ClientGaps, Limits, Node, Scenario, Servers};

/// The default time between two measurements.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);

/// The most samples of all nodes together: each takes some fifty bytes.
const NODE_SAMPLES_MAX: u128 = 20_000_000;

/// The longest name of a scenario, in bytes: names of files are made of it.
const NAME_BYTES_MAX: usize = 100;

/// A scenario file, or a template file that it names, is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct ScenarioError(pub DocumentError);

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
    #[serde(default, with = "Each::<Time>")]
    pub(super) right_at: Vec<Duration>,
    /// Faults may concern no client, or fewer clients than they say. Files that chance wrote say so.
    #[serde(default, skip_serializing_if = "is_default")]
    pub(super) idle_faults: bool,
    /// The templates of the root at the start.
    #[serde(with = "TemplatesForm")]
    pub(super) templates: Templates,
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
    #[serde(default, deserialize_with = "none_yet")]
    pub(super) faults: Vec<FaultFile>,
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

/// Faults are read when clients and nodes are known.
fn none_yet<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<FaultFile>, D::Error> {
    IgnoredAny::deserialize(from).map(|_| Vec::new())
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
        parsed(&text, &file, |document| {
            let TreeOnly { tree } = read(document)?;
            let tree = NamedNodes::of(Some(tree)).within("tree")?;
            Ok(tree.nodes)
        })
    }

    /// Reads the text of a scenario file. `file` is its name, for messages and for a scenario that
    /// has none; `files` is where the files are that it names.
    ///
    /// # Errors
    ///
    /// If it, or a file it names, cannot be read or is invalid.
    pub fn parse(text: &str, file: &str, files: &Files) -> Result<Self, ScenarioError> {
        parsed(text, file, |document| {
            read::<ScenarioFile>(document)?.resolve(document, file, files)
        })
    }
}

fn parsed<T>(
    text: &str,
    file: &str,
    read: impl FnOnce(&PlacedValue) -> Read<T>,
) -> Result<T, ScenarioError> {
    let refuse = |problem| {
        ScenarioError(DocumentError {
            file: file.to_owned(),
            problems: vec![problem],
        })
    };
    let Some(document) = read_yaml(text).map_err(refuse)? else {
        let message = "is empty; give at least templates and clients";
        return Err(refuse(Problem::of_document(Position::START, message)));
    };
    read(&document).map_err(|error| ScenarioError(error.placed(&document, file)))
}

/// The text of a file, and its name for messages.
fn text_in(path: &Path) -> Result<(String, String), ScenarioError> {
    let file = path.display().to_string();
    let refuse = |problem| {
        let problems = vec![problem];
        ScenarioError(DocumentError {
            file: file.clone(),
            problems,
        })
    };
    let bytes = files::bytes_of(path).map_err(|cause| {
        let message = format!("cannot be read: {cause}");
        refuse(Problem::of_document(Position::START, message))
    })?;
    let text = text_of(&bytes).map_err(refuse)?.to_owned();
    Ok((text, file))
}

/// An entry of a document that serde passed by.
fn entry<'d>(document: &'d PlacedValue, key: &str) -> Option<&'d PlacedValue> {
    let Value::Map(entries) = &document.value else {
        return None;
    };
    let found = entries.iter().find(|(name, _)| name.text == key);
    found.map(|(_, value)| value)
}

impl ScenarioFile {
    /// Resolves names, fills in defaults that depend on other fields, and checks fields against one another.
    fn resolve(self, document: &PlacedValue, file: &str, files: &Files) -> Read<Scenario> {
        let tree = NamedNodes::of(self.tree).within("tree")?;
        let templates = match entry(document, "templates") {
            Some(value) => TemplatesForm::read(value, files),
            None => Ok(self.templates),
        };
        let mut known = Known {
            files,
            end: self.duration,
            may_be_idle: self.idle_faults,
            templates: templates.within("templates")?,
            tree,
            clients: Vec::new(),
        };
        let clients = clients::resolved(self.clients, &known);
        known.clients = clients.within("clients")?;
        let network = self.network.resolve(&known.tree).within("network")?;
        let faults = faults(document, &known).within("faults")?;
        let end = self.duration;
        let mut scenario = Scenario {
            name: self.name.unwrap_or_else(|| file_stem(file)),
            description: self.description.trim().to_owned(),
            duration: end,
            seed: self.seed,
            sample_every: self.sample_every.unwrap_or(SAMPLE_EVERY.min(end)),
            heal_at: self.heal_at,
            right_at: self.right_at,
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

fn faults(document: &PlacedValue, known: &Known<'_>) -> Read<Vec<Fault>> {
    let Some(list) = entry(document, "faults") else {
        return Ok(Vec::new());
    };
    let items = match &list.value {
        Value::Null => return Ok(Vec::new()),
        Value::List(items) => items,
        other => {
            let message = format!(
                "is {}; give a list, as in [{{at: 120s, kill: root}}]",
                other.described()
            );
            return Err(ReadError::new("", message));
        }
    };
    let mut faults = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        let fault = Fault::read(item, known);
        faults.push(fault.within(&format!("[{index}]"))?);
    }
    Ok(faults)
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
