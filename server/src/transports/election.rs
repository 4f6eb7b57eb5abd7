//! The election of the node's master, in etcd.
//!
//! The servers of a node elect one that decides; the others send callers to it. A node with a single server needs no
//! election. The replica's candidate ([`doorward_session::candidate`]) makes all decisions.
//!
//! - `transport` passes events to the replica, and its requests to etcd;
//! - `asker` sends requests to etcd;
//! - `values` translates between etcd's keys, values and transactions and the candidate's;
//! - `history` reads how long leases may last if no term tells it;
//! - `etcd_health` tells pages, metrics and status how etcd is doing.

mod asker;
mod etcd_health;
mod history;
mod transport;
pub mod values;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::node::mastership::Mastership;
use doorward_engine::templates::Templates;
use doorward_etcd::EtcdConnection;
use doorward_etcd::directory::Role;
use doorward_etcd::follow::{Follow, Range};
use doorward_etcd::layout::{DocumentKeys, NodeKeys};
use doorward_replica::templates_in_force;
use doorward_session::candidate::CandidateConfig;
pub use doorward_session::candidate::standing::Standing;
pub use doorward_session::candidate::state::CandidateState;
use doorward_session::candidate::term::valid_until;
use doorward_session::time::Time;
use doorward_session::time::tolerance::Tolerance;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tracing::{info, warn};

use crate::clock;
use crate::status::ServerState;
use asker::Asker;
pub use etcd_health::EtcdHealth;
use etcd_health::EtcdHealthReporter;
use history::History;
use transport::EtcdTransport;

/// Kind of election.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Election {
    /// This server is the only one of its node, and always the master.
    #[default]
    Fixed,
    /// Candidates meet in etcd.
    Etcd(Box<ElectionConfig>),
}

/// A server that takes part.
#[derive(Clone)]
pub struct CandidateServer {
    /// Name of its node.
    pub node: String,
    /// Address that others reach it at.
    pub address: String,
    /// Address of its pages, if it serves any.
    pub http_address: Option<String>,
    /// Its place in the tree, as far as it knows now.
    pub place: Arc<dyn Fn() -> TreePlace + Send + Sync>,
    /// Clock tolerance of its machine.
    pub clock_tolerance: Tolerance,
    /// Whether it could decide if it was the master. A root needs templates for that.
    pub able: watch::Receiver<bool>,
    /// Templates of a candidate of the root. Absent: it has a parent, which tells it.
    pub templates: Option<CandidateTemplates>,
}

/// The templates of a candidate of the root.
#[derive(Clone, Debug)]
pub struct CandidateTemplates {
    /// Templates in force at the start.
    pub in_force: Templates,
    /// Keys of all versions of the templates. Absent: they are in a file, and earlier versions are unknown.
    pub history: Option<DocumentKeys>,
}

impl fmt::Debug for CandidateServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Candidate")
            .field("node", &self.node)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// A place in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreePlace {
    /// Role of the server.
    pub role: Role,
    /// Number of nodes above it, if it is known.
    pub level: Option<u32>,
}

impl Election {
    /// Returns the time for which servers stay ready during an election: two TTLs, longer than an election usually
    /// takes. Zero: there is no election.
    pub fn rides_out(&self) -> Duration {
        match self {
            Self::Fixed => Duration::ZERO,
            Self::Etcd(config) => 2 * config.ttl,
        }
    }

    /// Takes part in the election, or becomes the master for ever.
    pub fn start(
        self,
        candidate: CandidateServer,
        state: &Arc<ServerState>,
    ) -> Option<EtcdElection> {
        match self {
            Self::Fixed => {
                state.node().input(|replica, now| replica.handle_alone(now));
                None
            }
            Self::Etcd(config) => Some(start(*config, candidate, state)),
        }
    }
}

/// Configuration of an election in etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElectionConfig {
    /// Endpoints and credentials of etcd.
    pub etcd: doorward_etcd::EtcdConfig,
    /// Prefix of the keys of all nodes.
    pub prefix: String,
    /// Time that the master's lease lasts without a renewal, which is about the time without a master after a crash.
    /// Whole seconds, at least 2.
    pub ttl: Duration,
}

/// Interval between two reads of the node's keys while no change is reported.
const LOOK: Duration = Duration::from_secs(2);

/// An election in etcd that this server takes part in, until the server resigns or this is dropped.
#[derive(Debug)]
pub struct EtcdElection {
    stop: Option<oneshot::Sender<()>>,
    task: JoinHandle<()>,
}

impl EtcdElection {
    /// Gives up the mastership, so that another candidate gets it at once, and leaves the election. This server grants
    /// nothing from then on. Bounded in time.
    pub async fn resign(mut self) {
        drop(self.stop.take());
        // The candidate gives up within a bounded time.
        let _ = (&mut self.task).await;
    }

    /// Waits until the election stops by itself. Cancel safe.
    pub async fn stopped(&mut self) {
        let _ = (&mut self.task).await;
    }
}

impl Drop for EtcdElection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Takes part in the election.
fn start(
    config: ElectionConfig,
    candidate: CandidateServer,
    state: &Arc<ServerState>,
) -> EtcdElection {
    let ElectionConfig {
        mut etcd,
        prefix,
        ttl,
    } = config;
    let templates = candidate.templates;
    let history = templates.as_ref().and_then(|it| it.history.clone());
    let has_history = history.is_some();
    let taking_part = CandidateConfig {
        address: candidate.address.as_str().into(),
        server: format!("{:016x}", clock::seed()).into(),
        pages: candidate.http_address.map(Into::into),
        rest: values::rest(&candidate.node),
        ttl,
        clock_tolerance: candidate.clock_tolerance,
        endpoints: u32::try_from(etcd.endpoints.len()).unwrap_or(u32::MAX),
        templates: templates.map(|it| templates_in_force(&it.in_force, has_history)),
    };
    etcd.call_timeout = taking_part.call_timeout();
    let etcd = Arc::new(etcd);
    let keys = NodeKeys::new(&prefix, &candidate.node);
    let lasts = valid_until(Time::ZERO, ttl, taking_part.clock_tolerance).since_origin();
    let range = Range::Prefix(keys.prefix().to_owned());
    let node = Arc::clone(state.node());
    let asker = Asker {
        keys: keys.clone(),
        connection: EtcdConnection::new(Arc::clone(&etcd)),
        history: History::new(history),
        clock: node.clock(),
    };
    let transport = EtcdTransport {
        keys,
        follow: Follow::start(etcd, range, LOOK),
        able: candidate.able,
        place: candidate.place,
        health: EtcdHealthReporter::new(lasts, Arc::clone(state)),
        tasks: node.take_part(taking_part),
        node,
        view: None,
        request: None,
        problem: String::new(),
    };
    let (stop, stopped) = oneshot::channel();
    EtcdElection {
        stop: Some(stop),
        task: tokio::spawn(transport.run(asker, stopped)),
    }
}

/// Logs each new master. Runs until the server ends: spawn it.
pub async fn announce(
    state: Arc<ServerState>,
    mut masterships: watch::Receiver<(u64, Mastership)>,
) {
    while masterships.changed().await.is_ok() {
        match &masterships.borrow_and_update().1 {
            Mastership::Master { epoch } => info!(epoch, "this server is the master"),
            Mastership::Elsewhere {
                master_address,
                epoch,
            } => info!(master_address, epoch, "another server is the master"),
            Mastership::Unknown if state.is_stopping() => {}
            Mastership::Unknown => warn!("no master is known"),
        }
    }
}
