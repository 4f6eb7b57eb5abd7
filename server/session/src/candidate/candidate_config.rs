//! The configuration of a candidate, and facts about templates that an election needs.

use std::time::Duration;

use smol_str::SmolStr;

use crate::time::tolerance::Tolerance;

/// The configuration of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateConfig {
    /// Address at which others reach it.
    pub address: SmolStr,
    /// Id of its process: a new one each time the server starts.
    pub server: SmolStr,
    /// Address of its pages, if it has any.
    pub pages: Option<SmolStr>,
    /// Name of its node.
    pub node: SmolStr,
    /// Version of its program.
    pub version: SmolStr,
    /// TTL of the master's lease in etcd. Whole seconds, at least 2.
    pub ttl: Duration,
    /// Largest error of its clock.
    pub clock_tolerance: Tolerance,
    /// Number of etcd's endpoints. If one fails, the candidate tries the others at once.
    pub endpoints: u32,
    /// Templates in force. Absent: its node has a parent, which decides how long leases last.
    pub templates: Option<ActiveTemplates>,
}

/// Facts about the templates in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveTemplates {
    /// Digest of their lease lengths: the same text for the same lengths.
    pub digest: SmolStr,
    /// Length of their longest lease.
    pub longest: Duration,
    /// Whether etcd keeps the former templates.
    pub has_history: bool,
}

/// Facts about new templates, compared with those in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextTemplates {
    /// Digest of their lease lengths.
    pub digest: SmolStr,
    /// Length of their longest lease.
    pub longest: Duration,
    /// Longest lease by the templates in force of a resource that gets a shorter one by these.
    pub outlasts: Duration,
    /// The same, for the resources for which a master that has begun must learn longer.
    pub learning_outlasts: Duration,
}

impl CandidateConfig {
    /// Returns the timeout of a request to etcd. A renewal begins at a third of the TTL and counts for nine tenths of
    /// it: etcd may take two fifths, and after a timeout there is time for another endpoint.
    pub fn call_timeout(&self) -> Duration {
        self.ttl.mul_f64(0.42)
    }
}
