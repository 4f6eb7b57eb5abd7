//! Who is the master of the node.
//!
//! Servers of the same node elect one that decides; the others send callers to it. An election
//! tells the present [`Standing`], and every change of it, through a watch channel. A node with a
//! single server needs none ([`fixed`]); candidates meet in etcd ([`etcd`]; everything is decided in
//! [`doorward_session::candidate`]). New templates pass through a [gate](templates_gate).

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

/// How the master is found.
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
    /// Its node.
    pub node: String,
    /// Where others reach it.
    pub address: String,
    /// Where its pages are, if they are anywhere.
    pub http_address: Option<String>,
    /// Its place in the tree, as far as it knows now.
    pub place: Arc<dyn Fn() -> TreePlace + Send + Sync>,
    /// By how much its clock may be wrong.
    pub clock_tolerance: Tolerance,
    /// Whether it could decide if it was the master: it has templates, if it needs them.
    pub able: watch::Receiver<bool>,
    /// By which templates it would decide. Absent: it has a parent, which tells it.
    pub templates: Option<CandidateTemplates>,
}

/// The templates of a candidate of the root.
#[derive(Clone, Debug)]
pub struct CandidateTemplates {
    /// Templates in force at the start.
    pub in_force: Templates,
    /// Where all are that there ever were. Absent: they are in a file, and former ones not known.
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
    /// What the server is there.
    pub role: Role,
    /// How many nodes are above it, if it knows.
    pub level: Option<u32>,
}

/// An election that a server takes part in, until it resigns or this is dropped.
#[derive(Debug)]
pub enum Running {
    /// There is none.
    Fixed(watch::Receiver<Standing>),
    /// In etcd.
    Etcd(etcd::EtcdElection),
}

impl Election {
    /// Through how long an election servers stay ready: two TTLs, which is longer than one takes as a
    /// rule. Zero: there is none.
    pub fn rides_out(&self) -> Duration {
        match self {
            Self::Fixed => Duration::ZERO,
            Self::Etcd(config) => 2 * config.ttl,
        }
    }

    /// Takes part.
    pub fn start(self, candidate: CandidateServer) -> Running {
        match self {
            Self::Fixed => Running::Fixed(fixed::start()),
            Self::Etcd(config) => Running::Etcd(etcd::start(*config, candidate)),
        }
    }
}

impl Running {
    /// The standing now, and every change of it. The channel closes when nothing will change any
    /// more.
    pub fn standings(&self) -> watch::Receiver<Standing> {
        match self {
            Self::Fixed(standings) => standings.clone(),
            Self::Etcd(running) => running.standings(),
        }
    }

    /// Where new templates pass through.
    pub fn gate(&self) -> TemplatesGate {
        match self {
            Self::Fixed(_) => TemplatesGate::open(),
            Self::Etcd(running) => running.gate(),
        }
    }

    /// What this server does in the election, and every change of it, if there is one.
    pub fn states(&self) -> Option<watch::Receiver<CandidateState>> {
        match self {
            Self::Fixed(_) => None,
            Self::Etcd(running) => Some(running.states()),
        }
    }

    /// How etcd is doing, if it is asked.
    pub fn contact(&self) -> Option<watch::Receiver<etcd::EtcdHealth>> {
        match self {
            Self::Fixed(_) => None,
            Self::Etcd(running) => Some(running.contact()),
        }
    }

    /// Gives up the mastership, so that another candidate has it at once, and takes part no more.
    /// Whoever calls this decides nothing any more. Bounded in time.
    pub async fn resign(self) {
        match self {
            Self::Fixed(_) => {}
            Self::Etcd(running) => running.resign().await,
        }
    }
}
