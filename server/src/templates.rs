//! Where templates come from, and that they are read again whenever they change.
//!
//! Whatever the source, an invalid version is refused, with everything that is wrong
//! with it, and the one in force stays in force.

pub mod etcd;
pub mod file;
mod reading;

use std::sync::Arc;
use std::task::Poll;

use doorward_documents::{DocumentError, locate_bytes};
use doorward_engine::node::reload::PreparedTemplates;
use doorward_engine::templates::Templates;
use tracing::{info, warn};

use crate::clock;
use crate::election::templates_gate::TemplatesGate;
use crate::metrics::Metrics;
use crate::node_handle::NodeHandle;
use crate::status::Board;

/// Parses a document, and warns of what is valid but probably not meant.
fn parse(content: &[u8], name: &str) -> Result<Templates, DocumentError> {
    let located = locate_bytes(content, name)?;
    for blank in located.blanks() {
        warn!("{name}:{}:{}: {blank}", blank.line, blank.column);
    }
    if located.templates.is_empty() {
        warn!("{name}: there are no templates: every request is refused");
    }
    Ok(located.templates)
}

/// New templates are in force as soon as the election lets them. That is said once every resource has heard of them:
/// whoever looks then sees nothing of the former ones.
pub async fn apply(
    gate: &TemplatesGate,
    board: &Arc<Board>,
    metrics: &Arc<Metrics>,
    templates: Templates,
) {
    let count = templates.len();
    let former = board.node().read(|node, _| node.active_templates().clone());
    // Large sets take time to compare, in which requests must go on.
    let preparing = tokio::task::spawn_blocking(move || PreparedTemplates::new(&former, templates));
    let prepared = match preparing.await {
        Ok(prepared) => prepared,
        Err(error) => return refuse(board, metrics, error.to_string()),
    };
    let bring_into_force = {
        let board = Arc::clone(board);
        move |prepared| bring_into_force(board.node(), prepared)
    };
    if !gate.pass(prepared, bring_into_force).await {
        return;
    }
    let node = board.node();
    let swept = node.finish(|node, now| {
        node.handle_timeout(now);
        if node.is_swept() {
            return Poll::Ready(());
        }
        Poll::Pending
    });
    swept.await;
    board.post_templates(None);
    metrics.count_template_load(true, clock::wall());
    info!(templates = count, "new templates are in force");
}

/// In one cheap step, unless others came first than those that they were to follow.
fn bring_into_force(node: &NodeHandle, mut prepared: PreparedTemplates) {
    while let Err(late) = node.change(|node, now| node.handle_prepared_templates(prepared, now)) {
        let former = node.read(|node, _| node.active_templates().clone());
        prepared = PreparedTemplates::new(&former, late.into_templates());
    }
}

/// New templates were invalid: those in force stay, and everyone who looks sees why.
pub fn refuse(board: &Board, metrics: &Metrics, problem: String) {
    // Before the log tells it: who reads that and looks must find it.
    board.post_templates(Some(problem.clone()));
    metrics.count_template_load(false, clock::wall());
    if board.node().read(|node, _| node.templates().is_empty()) {
        warn!("no templates are in force:\n{problem}");
    } else {
        warn!("new templates refused, those in force stay:\n{problem}");
    }
}
