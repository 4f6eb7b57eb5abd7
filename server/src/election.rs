//! The election of the node's master.
//!
//! The servers of a node elect one that decides; the others send callers to it. An election publishes the present
//! [`Standing`] and every change of it through a watch channel. A node with a single server needs none ([`fixed`]).
//! Candidates meet in etcd ([`etcd`]), and [`doorward_session::candidate`] makes all decisions. New templates pass a
//! [gate](templates_gate).

pub mod etcd;
pub mod fixed;
pub mod templates_gate;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::templates::Templates;
use doorward_etcd::directory::Role;
use doorward_etcd::layout::DocumentKeys;
pub use doorward_session::candidate::standing::Standing;
pub use doorward_session::candidate::state::CandidateState;
use doorward_session::time::tolerance::Tolerance;
use templates_gate::TemplatesGate;
use tokio::sync::watch;

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

/// An election that a server takes part in, until the server resigns or this is dropped.
#[derive(Debug)]
pub enum Running {
    /// No election.
    Fixed(watch::Receiver<Standing>),
    /// In etcd.
    Etcd(etcd::EtcdElection),
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

    /// Takes part in the election.
    pub fn start(self, candidate: CandidateServer) -> Running {
        match self {
            Self::Fixed => Running::Fixed(fixed::start()),
            Self::Etcd(config) => Running::Etcd(etcd::start(*config, candidate)),
        }
    }
}

impl Running {
    /// Returns the standing, and every change of it. The channel closes when the standing can change no more.
    pub fn standings(&self) -> watch::Receiver<Standing> {
        match self {
            Self::Fixed(standings) => standings.clone(),
            Self::Etcd(running) => running.standings(),
        }
    }

    /// Returns the gate that new templates pass.
    pub fn gate(&self) -> TemplatesGate {
        match self {
            Self::Fixed(_) => TemplatesGate::open(),
            Self::Etcd(running) => running.gate(),
        }
    }

    /// Returns this server's state in the election, and every change of it. None: there is no election.
    pub fn states(&self) -> Option<watch::Receiver<CandidateState>> {
        match self {
            Self::Fixed(_) => None,
            Self::Etcd(running) => Some(running.states()),
        }
    }

    /// Returns the health of etcd. None: there is no election.
    pub fn contact(&self) -> Option<watch::Receiver<etcd::EtcdHealth>> {
        match self {
            Self::Fixed(_) => None,
            Self::Etcd(running) => Some(running.contact()),
        }
    }

    /// Gives up the mastership, so that another candidate gets it at once, and leaves the election. The caller no
    /// longer grants anything. Bounded in time.
    pub async fn resign(self) {
        match self {
            Self::Fixed(_) => {}
            Self::Etcd(running) => running.resign().await,
        }
    }
}
