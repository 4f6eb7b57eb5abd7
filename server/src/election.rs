//! The election of the node's master.
//!
//! The servers of a node elect one that decides; the others send callers to it. A node with a single server needs no
//! election. Candidates meet in etcd ([`etcd`]). The replica makes all decisions; this module carries its requests.

pub mod etcd;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::node::mastership::Mastership;
use doorward_engine::templates::Templates;
use doorward_etcd::directory::Role;
use doorward_etcd::layout::DocumentKeys;
pub use doorward_session::candidate::standing::Standing;
pub use doorward_session::candidate::state::CandidateState;
use doorward_session::time::tolerance::Tolerance;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::election::etcd::EtcdElection;
use crate::status::ServerState;

/// Kind of election.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Election {
    /// This server is the only one of its node, and always the master.
    #[default]
    Fixed,
    /// Candidates meet in etcd.
    Etcd(Box<etcd::ElectionConfig>),
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
            Self::Etcd(config) => Some(etcd::start(*config, candidate, state)),
        }
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
