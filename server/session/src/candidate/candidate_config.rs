//! The configuration of a candidate, and facts about templates that an election needs.

use std::time::Duration;

use smol_str::SmolStr;

use super::term;
use crate::time::Time;
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
    /// Returns the timeout of a request to etcd: three quarters of the time from a renewal to the end of the mastership
    /// that it renews. After that, there is time for another endpoint. With a good clock, it is 0.42 TTL.
    pub fn call_timeout(&self) -> Duration {
        let counts = term::valid_until(Time::ZERO, self.ttl, self.clock_tolerance);
        let rest = counts.since(Time::ZERO + self.ttl / 3);
        rest.mul_f64(0.74)
    }
}
