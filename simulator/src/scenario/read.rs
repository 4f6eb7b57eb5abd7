//! Reads scenario files: YAML in, a [`Scenario`] or every problem out.
//!
//! What every key means is in `docs/simulator.md`. A file that is invalid is refused as a
//! whole, with everything that is wrong in it, and in the files it names, at once:
//! `FILE:LINE:COLUMN: key: what is wrong; what to do`. What is absent has a default wherever one
//! makes sense; the smallest scenario says what there is to share and who wants how much of it.
//! What there is to read is declared with each type (`crate::scenario::declared`).

pub mod files;

use std::error::Error;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use doorward_documents::form::{At, Problems};
use doorward_documents::placed_value::{PlacedValue as Yaml, Position, read as read_yaml, text_of};
use doorward_documents::{DocumentError, Problem};
use doorward_engine::template::Templates;

use crate::scenario::declared::Record;
use crate::scenario::nodes::{NamedNodes, nodes};
pub use crate::scenario::read::files::Files;
use crate::scenario::{ClientGroup, NAME_BYTES_MAX, Node, Scenario, is_plain};

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
    /// If it, or a file it names, cannot be read or is invalid: all that is wrong with them.
    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let (text, file) = text_in(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Self::parse(&text, &file, &Files::Folder(folder.to_owned()))
    }

    /// Reads only the tree of a scenario file, which may have nothing else in it.
    ///
    /// # Errors
    ///
    /// If it cannot be read, has no tree, or that is invalid: all that is wrong with it.
    pub fn read_tree(path: &Path) -> Result<Vec<Node>, ScenarioError> {
        let (text, file) = text_in(path)?;
        let mut reader = Reader::new(&Files::BuiltIn(&[]), &file);
        let tree = match read_yaml(&text) {
            Ok(document) => reader.tree_alone(document.as_ref()),
            Err(problem) => {
                reader.problems.0.push(problem);
                None
            }
        };
        match tree {
            Some(nodes) if reader.problems.0.is_empty() => Ok(nodes),
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
    /// If it, or a file it names, cannot be read or is invalid: all that is wrong with them.
    pub fn parse(text: &str, file: &str, files: &Files) -> Result<Self, ScenarioError> {
        let mut reader = Reader::new(files, file);
        let scenario = match read_yaml(text) {
            Ok(document) => reader.scenario(document.as_ref()),
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
            Position::START,
            format!("cannot be read: {cause}"),
        ))
    })?;
    let text = text_of(&bytes).map_err(refuse)?.to_owned();
    Ok((text, file))
}

/// What is read with: it collects what is wrong, and keeps what is known of a scenario so far. What could not
/// be read is not known, and makes nothing else wrong.
pub(crate) struct Reader<'f> {
    /// The file's own name.
    file: String,
    /// Where the files are that it names.
    pub(super) files: &'f Files,
    /// What is wrong.
    pub(super) problems: Problems,
    /// What is wrong with other files.
    pub(super) others: Vec<DocumentError>,
    /// How long is played.
    pub(super) end: Duration,
    /// Those at the start.
    pub(super) templates: Option<Templates>,
    /// The servers.
    pub(super) tree: Option<NamedNodes>,
    /// How many groups of clients there are.
    pub(super) groups: usize,
    /// Who asks.
    pub(super) clients: Option<Vec<ClientGroup>>,
    /// What concerns nobody, or fewer than it says, is no mistake.
    pub(super) may_be_idle: bool,
}

impl<'f> Reader<'f> {
    fn new(files: &'f Files, file: &str) -> Self {
        Self {
            file: file.to_owned(),
            files,
            problems: Problems::default(),
            others: Vec::new(),
            end: Duration::MAX,
            templates: None,
            tree: None,
            groups: 0,
            clients: None,
            may_be_idle: false,
        }
    }

    /// Only the tree. None: it is noted what is wrong.
    fn tree_alone(&mut self, document: Option<&Yaml>) -> Option<Vec<Node>> {
        const EXAMPLE: &str = "{tree: {root: {children: [a, b]}}}";
        let Some(node) = document else {
            let message = format!("is empty; give a tree, as in {EXAMPLE}");
            self.problems.note(Position::START, "", message);
            return None;
        };
        let path = String::new();
        let map = At { node, path }.map(EXAMPLE, &mut self.problems)?;
        let example = format!("the servers, as in {EXAMPLE}");
        let tree = map.need(&["tree"], &example, &mut self.problems)?;
        nodes().read(&tree, self)
    }

    /// None, or nonsense, only if something was noted.
    fn scenario(&mut self, document: Option<&Yaml>) -> Option<Scenario> {
        let Some(node) = document else {
            let message = "is empty; a scenario has at least templates and clients";
            self.problems.note(Position::START, "", message);
            return None;
        };
        let path = String::new();
        <Scenario as Record>::read(&At { node, path }, self)
    }

    /// The name of the file without its ending, as a scenario may be called.
    pub(super) fn file_stem(&self) -> String {
        let stem = Path::new(&self.file).file_stem();
        let stem = stem.map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        let plain = |c| if is_plain(c) { c } else { '-' };
        let name: String = stem.chars().map(plain).take(NAME_BYTES_MAX / 4).collect();
        if name.starts_with(char::is_alphanumeric) {
            name
        } else {
            format!("scenario{name}")
        }
    }
}

#[cfg(test)]
mod tests;
