//! Reads scenario files: YAML in, a [`Scenario`] or every problem out.
//!
//! What every key means is in `docs/simulator.md`. A file that is not in order is refused as a
//! whole, with everything that is wrong in it, and in the files it names, at once:
//! `FILE:LINE:COLUMN: key: what is wrong; what to do`. What is absent has a default wherever one
//! makes sense; the smallest scenario says what there is to share and who wants how much of it.

mod clients;
mod demand;
mod faults;
pub mod files;
mod form;
mod network;
mod settings;
mod templates;
mod tree;
mod usage;

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use doorward_documents::tree::{Node as Yaml, Place, read as read_yaml, text_of};
use doorward_documents::{DocumentError, Problem};
use doorward_engine::template::Templates;

pub use crate::scenario::read::files::Files;
use crate::scenario::read::form::{At, DURATION_MAX, Map, Problems};
use crate::scenario::read::tree::Tree;
use crate::scenario::{ClientGroup, Node, Scenario, settled_by_default};

const KEYS: [&str; 17] = [
    "name",
    "description",
    "duration",
    "seed",
    "sample_every",
    "settled_after",
    "heal_at",
    "right_at",
    "idle_faults",
    "templates",
    "tree",
    "clients",
    "network",
    "servers",
    "client_gaps",
    "faults",
    "limits",
];

/// How long is played if nothing else is said.
const DURATION: Duration = Duration::from_secs(600);

/// How often is measured if nothing else is said.
const SAMPLE_EVERY: Duration = Duration::from_secs(5);

/// The most samples of all nodes together: each takes some fifty bytes.
const NODE_SAMPLES_MAX: u128 = 20_000_000;

/// The longest name of a scenario, in bytes: names of files are made of it.
const NAME_BYTES_MAX: usize = 100;

/// Everything that is wrong with a scenario file and with the template files it names: a line for
/// each problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// At least one file, each with at least one problem.
    pub files: Vec<DocumentError>,
}

impl fmt::Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, file) in self.files.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{file}")?;
        }
        Ok(())
    }
}

impl Error for ScenarioError {}

impl Scenario {
    /// Reads a scenario file. Files that it names are looked for from the folder it is in.
    ///
    /// # Errors
    ///
    /// If it, or a file it names, cannot be read or is not in order: all that is wrong with them.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let (text, file) = text_in(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, &file, &Files::Folder(folder.to_owned()))
    }

    /// Reads only the tree of a scenario file, which may have nothing else in it.
    ///
    /// # Errors
    ///
    /// If it cannot be read, has no tree, or that is not in order: all that is wrong with it.
    pub fn read_tree(path: &Path) -> Result<Vec<Node>, ScenarioError> {
        let (text, file) = text_in(path)?;
        let mut reader = Reader {
            files: &Files::BuiltIn(&[]),
            problems: Problems::default(),
            others: Vec::new(),
        };
        let tree = match read_yaml(&text) {
            Ok(document) => reader.tree_alone(document.as_ref()),
            Err(problem) => {
                reader.problems.0.push(problem);
                None
            }
        };
        match tree {
            Some(tree) if reader.problems.0.is_empty() => Ok(tree.nodes),
            _ => {
                let problems = reader.problems.0;
                let files = vec![DocumentError { file, problems }];
                Err(ScenarioError { files })
            }
        }
    }

    /// Reads the text of a scenario file. `file` is its name, for messages and for a scenario that
    /// has none; `files` is where the files are that it names.
    ///
    /// # Errors
    ///
    /// If it, or a file it names, cannot be read or is not in order: all that is wrong with them.
    pub fn parse(text: &str, file: &str, files: &Files) -> Result<Self, ScenarioError> {
        let mut reader = Reader {
            files,
            problems: Problems::default(),
            others: Vec::new(),
        };
        let scenario = match read_yaml(text) {
            Ok(document) => reader.scenario(document.as_ref(), file),
            Err(problem) => {
                reader.problems.0.push(problem);
                None
            }
        };
        let mut problems = reader.problems.0;
        problems.sort_by_key(|problem| (problem.line, problem.column));
        problems.dedup();
        let mut wrong = reader.others;
        if !problems.is_empty() {
            let file = file.to_owned();
            wrong.insert(0, DocumentError { file, problems });
        }
        match scenario {
            Some(scenario) if wrong.is_empty() => Ok(scenario),
            _ => Err(ScenarioError { files: wrong }),
        }
    }
}

/// What is in a file, and its name for messages.
fn text_in(path: &Path) -> Result<(String, String), ScenarioError> {
    let file = path.display().to_string();
    let refuse = |problem| ScenarioError {
        files: vec![DocumentError {
            file: file.clone(),
            problems: vec![problem],
        }],
    };
    let bytes = files::bytes_of(path).map_err(|cause| {
        refuse(Problem::of_document(
            Place::START,
            format!("cannot be read: {cause}"),
        ))
    })?;
    let text = text_of(&bytes).map_err(refuse)?.to_owned();
    Ok((text, file))
}

/// Collects what is wrong while reading.
struct Reader<'f> {
    files: &'f Files,
    problems: Problems,
    /// What is wrong with other files.
    others: Vec<DocumentError>,
}

impl Reader<'_> {
    /// Only the tree. None: it is noted what is wrong.
    fn tree_alone(&mut self, document: Option<&Yaml>) -> Option<Tree> {
        const EXAMPLE: &str = "{tree: {root: {children: [a, b]}}}";
        let Some(node) = document else {
            let message = format!("is empty; give a tree, as in {EXAMPLE}");
            self.problems.note(Place::START, "", message);
            return None;
        };
        let path = String::new();
        let map = At { node, path }.map(EXAMPLE, &mut self.problems)?;
        let example = format!("the servers, as in {EXAMPLE}");
        map.need("tree", &example, &mut self.problems)?;
        self.tree(&map)
    }

    /// None, or nonsense, only if something was noted.
    fn scenario(&mut self, document: Option<&Yaml>, file: &str) -> Option<Scenario> {
        let Some(node) = document else {
            let message = "is empty; a scenario has at least templates and clients";
            self.problems.note(Place::START, "", message);
            return None;
        };
        let at = At {
            node,
            path: String::new(),
        };
        let map = at.map("{templates: {…}, clients: […]}", &mut self.problems)?;
        map.check_keys(&KEYS, &mut self.problems);
        let duration = map.get("duration");
        let duration = duration.map_or(Some(DURATION), |at| at.step(&mut self.problems));
        // If it cannot be read, nothing is too late.
        let end = duration.unwrap_or(DURATION_MAX);
        let what = "templates, as in {resources: […]}, or the name of a template file";
        let templates = map.need("templates", what, &mut self.problems);
        let templates = templates.and_then(|at| self.templates(&at));
        let tree = self.tree(&map);
        let clients = self.clients(&map, end, templates.as_ref(), tree.as_ref());
        let faults = self.faults(&map, end, tree.as_ref(), clients.as_deref());
        let network = self.network(&map, tree.as_ref());
        let sample_every = self.sample_every(&map, duration, tree.as_ref());
        let groups = clients.as_deref().unwrap_or_default();
        let settled_after = self.settled_after(&map, duration, templates.as_ref(), groups);
        let scenario = Scenario {
            heal_at: map
                .get("heal_at")
                .and_then(|at| at.time_before(end, &mut self.problems)),
            right_at: self.right_at(&map, end),
            name: self.name(&map, file),
            description: self.description(&map),
            seed: self.seed(&map),
            sample_every,
            settled_after,
            network,
            servers: self.servers(&map),
            client_gaps: self.client_gaps(&map),
            limits: self.limits(&map),
            // From here on, what is missing ends it: everything has been read.
            duration: duration?,
            templates: templates?,
            nodes: tree?.nodes,
            clients: clients?,
            faults,
        };
        Some(scenario)
    }

    /// The name that is given, or that of the file without its ending.
    fn name(&mut self, map: &Map<'_>, file: &str) -> String {
        let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
        if let Some(at) = map.get("name") {
            let Some(name) = at.text(&mut self.problems) else {
                return String::new();
            };
            let is_name = name.chars().all(is_plain)
                && name.starts_with(char::is_alphanumeric)
                && name.len() <= NAME_BYTES_MAX;
            if !is_name {
                let expected = "letters, digits, '-', '_' and '.', and a letter or digit first: \
                                files are named for it";
                self.problems.refuse(&at, expected);
            }
            return name;
        }
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

    fn description(&mut self, map: &Map<'_>) -> String {
        let at = map.get("description");
        let text = at.and_then(|at| at.text(&mut self.problems));
        text.unwrap_or_default().trim().to_owned()
    }

    fn seed(&mut self, map: &Map<'_>) -> u64 {
        let at = map.get("seed");
        let most = i128::from(u64::MAX);
        let seed = at.and_then(|at| at.whole(0, most, &mut self.problems));
        seed.and_then(|seed| u64::try_from(seed).ok()).unwrap_or(1)
    }

    fn sample_every(
        &mut self,
        map: &Map<'_>,
        duration: Option<Duration>,
        tree: Option<&Tree>,
    ) -> Duration {
        let at = map.get("sample_every");
        let every = at.as_ref().map(|at| at.step(&mut self.problems));
        let (every, duration) = match (every, duration) {
            (None, Some(duration)) => (SAMPLE_EVERY.min(duration), duration),
            (Some(Some(every)), Some(duration)) => (every, duration),
            // What cannot be read fits nothing.
            _ => return SAMPLE_EVERY,
        };
        if let Some(at) = &at
            && every > duration
        {
            let message = "is longer than the whole simulation; give less";
            self.problems.wrong(at, message);
        }
        let nodes = tree.map_or(0, |tree| tree.nodes.len());
        let samples = duration.as_nanos() / every.as_nanos().max(1) * nodes as u128;
        if samples > NODE_SAMPLES_MAX {
            let place = at.map_or(map.place, |at| at.node.place);
            let message = format!(
                "gives {samples} samples of {nodes} nodes together; at most {NODE_SAMPLES_MAX}: \
                 sample less often"
            );
            self.problems.note(place, "sample_every", message);
        }
        every
    }

    fn settled_after(
        &mut self,
        map: &Map<'_>,
        duration: Option<Duration>,
        templates: Option<&Templates>,
        groups: &[ClientGroup],
    ) -> Duration {
        if let Some(at) = map.get("settled_after") {
            let settled = at.duration(&mut self.problems).unwrap_or_default();
            if duration.is_some_and(|duration| settled >= duration) {
                let message = "is not before the end; give less, so that something is judged";
                self.problems.wrong(&at, message);
            }
            return settled;
        }
        let none = Templates::default();
        settled_by_default(
            groups,
            templates.unwrap_or(&none),
            duration.unwrap_or(DURATION),
        )
    }

    /// When everybody must have what is right.
    fn right_at(&mut self, map: &Map<'_>, end: Duration) -> Vec<Duration> {
        let list = map.get("right_at");
        let list = list.and_then(|at| at.list("[5m, 6m]", &mut self.problems));
        let each = list.unwrap_or_default();
        each.iter()
            .filter_map(|at| at.time_before(end, &mut self.problems))
            .collect()
    }
}

#[cfg(test)]
mod tests;
