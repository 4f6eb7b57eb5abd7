//! Where templates come from, and that they are read again whenever they change.
//!
//! Whatever the source, an invalid version is refused, with everything that is wrong
//! with it, and the one in force stays in force.

pub mod etcd;
pub mod file;
mod reading;

use std::sync::Arc;

use doorward_engine::template::Templates;
use tracing::{info, warn};

use crate::clock;
use crate::election::gate::Gate;
use crate::metrics::Metrics;
use crate::status::Board;

/// New templates are in force as soon as the election lets them.
pub async fn apply(gate: &Gate, board: &Arc<Board>, metrics: &Arc<Metrics>, templates: Templates) {
    let (board, metrics) = (Arc::clone(board), Arc::clone(metrics));
    let bring_into_force = move |templates: Templates| {
        let count = templates.len();
        board
            .node()
            .change(|node, now| node.handle_templates(templates, now));
        board.post_templates(None);
        metrics.count_template_load(true, clock::wall());
        info!(templates = count, "new templates are in force");
    };
    gate.pass(templates, bring_into_force).await;
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
