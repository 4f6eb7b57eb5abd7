//! Sources of templates, which are read again whenever they change.
//!
//! An invalid version from any source is refused with all its problems, and the version in force stays in force.

pub mod etcd;
pub mod file;

use std::sync::Arc;

use doorward_documents::{DocumentError, locate_bytes};
use doorward_door::tasks::joined;
use doorward_engine::node::reload::PreparedTemplates;
use doorward_engine::templates::Templates;
use doorward_etcd::layout::DocumentKeys;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::clock;
use crate::status::ServerState;
use crate::stored_place::StoredPlace;
use crate::templates::etcd::EtcdTemplates;
use crate::templates::file::{POLL_INTERVAL, TemplateFile, TemplateFileError};

/// A source of templates, which are brought into force whenever they change.
#[derive(Debug)]
pub(crate) enum Followed {
    File(TemplateFile),
    Etcd(EtcdTemplates),
}

impl Followed {
    /// Opens the source, and returns the first templates. Templates in etcd come later.
    pub(crate) async fn open(
        place: StoredPlace,
        keeps_marks: bool,
    ) -> Result<(Self, Templates), TemplateFileError> {
        Ok(match place {
            StoredPlace::File(path) => {
                let (file, templates) =
                    TemplateFile::open(&path, POLL_INTERVAL, keeps_marks).await?;
                (Self::File(file), templates)
            }
            StoredPlace::Etcd(keys, etcd) => {
                let templates = EtcdTemplates::new(keys, etcd);
                (Self::Etcd(templates), Templates::default())
            }
        })
    }

    /// Returns the keys of all versions in etcd, and whether any templates are in force.
    pub(crate) fn in_etcd(&self) -> Option<(DocumentKeys, watch::Receiver<bool>)> {
        match self {
            Self::File(_) => None,
            Self::Etcd(templates) => Some(templates.followed()),
        }
    }

    /// Follows the source for ever: spawn it. A file is read at once whenever `rereads` tells it.
    pub(crate) async fn run(self, state: Arc<ServerState>, rereads: watch::Receiver<()>) {
        match self {
            Self::File(file) => file.run(state, rereads).await,
            Self::Etcd(templates) => templates.run(state).await,
        }
    }
}

/// Parses a document on another thread: a large one takes time, in which requests must be served. Warns of values that
/// are valid but probably a mistake.
async fn parse(content: Vec<u8>, name: String) -> Result<Templates, DocumentError> {
    let parse = move || {
        let located = locate_bytes(&content, &name)?;
        for blank in located.blanks() {
            warn!("{name}:{}:{}: {blank}", blank.line, blank.column);
        }
        if located.templates.is_empty() {
            warn!("{name}: there are no templates: every request is refused");
        }
        Ok(located.templates)
    };
    joined(tokio::task::spawn_blocking(parse)).await
}

/// Brings new templates into force as soon as the election lets them. Reports this only after every resource has them,
/// so that a reader of the report finds none of the former ones.
pub async fn apply(state: &Arc<ServerState>, templates: Templates) {
    let count = templates.len();
    let former = state.node().read(|node, _| node.active_templates().clone());
    // Comparing large sets takes time, in which requests must be served.
    let prepare = move || PreparedTemplates::new(&former, templates);
    let prepared = joined(tokio::task::spawn_blocking(prepare)).await;
    state.node().apply_templates(prepared).await;
    state.templates_problem.send_replace(None);
    count_load(state, true);
    info!(templates = count, "new templates are in force");
}

/// Counts a version of the templates that was read.
pub(crate) fn count_load(state: &ServerState, in_force: bool) {
    let outcome = if in_force { "ok" } else { "failed" };
    let loads = &state.template_loads;
    loads.get_or_create(&[("outcome", outcome)]).inc();
    if in_force {
        state.templates_loaded.set(clock::wall().as_secs_f64());
    }
}

/// Notes on charts that a document came into force, with its author, if that is known.
pub fn note(state: &ServerState, what: &str, author: Option<String>) {
    let author = author.map(|it| format!(", {it}")).unwrap_or_default();
    state
        .history()
        .note(format!("{what} came into force{author}"));
}

/// Reports that new templates are invalid. The templates in force stay, and pages and status show the problem.
pub fn refuse(state: &ServerState, problem: String) {
    // Posted before the log line: an operator who reads the log must find it on the page.
    state.templates_problem.send_replace(Some(problem.clone()));
    count_load(state, false);
    if state.node().read(|node, _| node.templates().is_empty()) {
        warn!("no templates are in force:\n{problem}");
    } else {
        warn!("new templates refused, those in force stay:\n{problem}");
        let text = "the newest templates are refused; those in force stay";
        state.history().note(text.to_owned());
    }
}
