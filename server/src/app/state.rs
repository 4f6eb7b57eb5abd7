//! The start of a server without an election, with the content of its state directory.

use std::io;
use std::sync::Arc;

use doorward_edge::records::Records;
use doorward_engine::node::Node;
use doorward_engine::node::marks::MarksByResource;
use doorward_engine::time::Time;
use doorward_replica::Replica;
use tokio::task::JoinSet;

use crate::app::ServerConfig;
use crate::state_directory::{Past, StateDirectory, StateError, Uncounted, write_marks};
use crate::status::ServerState;

/// Names of the record and of the histories in the state directory.
const RECORDS: &str = "assignments";
const HISTORY: &str = "history";

/// A state directory, and what it says.
pub(super) type Kept = (StateDirectory, Past);

/// Opens the state directory, and the record in it of a server with rules. Returns also what the last process left there,
/// if the server is an agent without a parent: a root keeps marks, and below it the parent knows how much is out.
///
/// # Errors
///
/// If it cannot be used.
pub(super) fn open(
    config: &ServerConfig,
) -> Result<(Option<Kept>, Records, Option<MarksByResource>), StateError> {
    let kept = match &config.state {
        Some(state) => state.open(&config.node_name, config.keeps_marks())?,
        None => None,
    };
    let (mut records, mut left) = (Records::default(), None);
    if let Some((directory, past)) = kept.as_ref().filter(|_| config.rules.is_some()) {
        let is_alone = config.doors.makes_templates;
        let place = if is_alone { "alone" } else { "in a tree" };
        let about = format!("{} {place}", config.node_name);
        let counts = matches!(past.uncounted, None | Some(Uncounted::Learned));
        let (path, trust) = (directory.path().join(RECORDS), (counts, past.is_unused));
        let opened = Records::open(&path, &about, trust, Time::ZERO);
        let unusable = |error: io::Error| StateError::Unusable {
            path: path.clone(),
            source: error.into(),
        };
        (records, left) = opened.map_err(unusable)?;
        left = left.filter(|_| is_alone);
    }
    Ok((kept, records, left))
}

/// Makes a server the master for ever, with what its last process has left. It keeps the directory until it ends.
pub(super) fn begin_alone(
    state: &Arc<ServerState>,
    kept: Option<Kept>,
    (keeps_marks, recorded): (bool, Option<MarksByResource>),
    background: &mut JoinSet<()>,
) {
    let found = kept.map(|(directory, past)| {
        state.set_state_directory(None);
        state.history().open(directory.path().join(HISTORY));
        let writes = state.node().mark_writes();
        background.spawn(write_marks(directory, writes, Arc::clone(state)));
        past.marks
    });
    let found = found.filter(|_| keeps_marks);
    let begin = |replica: &mut Replica, now| replica.handle_alone(found, now);
    state.node().input(begin);
    if let Some(recorded) = recorded {
        let begin = |node: &mut Node, _| node.handle_recorded(recorded);
        state.node().change(begin);
    }
}
