//! The state of a server at its start, without an election with the content of its state directory.

use std::sync::Arc;

use doorward_door::listener::Address;
use doorward_edge::records::Records;
use doorward_engine::node::marks::MarksByResource;
use doorward_engine::node::{self, Node};
use doorward_engine::time::Time;
use doorward_replica::{Replica, ReplicaConfig};
use doorward_session::child_streams::StreamLimits;
use tokio::task::JoinSet;

use crate::app::ServerConfig;
use crate::clock;
use crate::limits::ServerLimit;
use crate::replica_handle::ReplicaHandle;
use crate::state_directory::{Past, StateDirectory, StateError, Uncounted, unusable, write_marks};
use crate::status::ServerState;
use crate::transports::parent::ParentTransportConfig;

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
        (records, left) = opened.map_err(|error| unusable(&path, error.into()))?;
        left = left.filter(|_| is_alone);
    }
    Ok((kept, records, left))
}

/// Returns the state of a server with a new node.
pub(super) fn new(
    config: &ServerConfig,
    grpc_address: &Address,
    kept: Option<&Kept>,
) -> Arc<ServerState> {
    let bound = |limit| usize::try_from(*config.bounds.get(&limit)?).ok();
    let replica = ReplicaConfig {
        node: node::Config {
            name: config.node_name.clone(),
            incarnation: clock::incarnation(),
            // The name of an agent may outlive its directory, as on Kubernetes: the count would go back.
            starts: kept.and_then(|(_, past)| (!config.doors.has_http).then_some(past.starts)),
            ..config.node.clone()
        },
        parent: config.parent.as_ref().map(ParentTransportConfig::replica),
        push_round: config.push_round,
        stream_limits: StreamLimits {
            children_max: bound(ServerLimit::ChildServers),
            children_of_caller_max: bound(ServerLimit::ChildServersPerAddress),
        },
    };
    let node = ReplicaHandle::new(replica, config.templates.clone(), config.clock);
    let (name, source) = (config.node_name.clone(), config.templates_source.clone());
    let advertised = config.advertise.clone();
    let address = advertised.unwrap_or_else(|| grpc_address.to_string());
    let mut state = ServerState::new(name, address, source, Arc::new(node));
    state.needs_rules = config.doors.has_http;
    if let Some(election) = &config.election {
        // Servers stay ready during an election: two TTLs are longer than it usually takes.
        state.ride_out(2 * election.ttl);
    }
    Arc::new(state)
}

/// Makes a server the master for ever, with what its last process has left. It keeps the directory until it ends.
pub(super) fn begin_alone(
    state: &Arc<ServerState>,
    kept: Option<Kept>,
    (keeps_marks, recorded): (bool, Option<MarksByResource>),
    background: &mut JoinSet<()>,
) {
    let found = kept.map(|(directory, past)| {
        state.state_directory.send_replace(Some(None));
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
