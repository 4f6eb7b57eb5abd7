//! The configuration of a candidate, and what an election needs to know of templates.

use std::time::Duration;

use smol_str::SmolStr;

use crate::time::tolerance::Tolerance;

/// The configuration of a candidate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CandidateConfig {
    /// The address at which others reach it.
    pub address: SmolStr,
    /// The id of its process: a new one each time the server starts.
    pub server: SmolStr,
    /// The address of its pages, if it has any.
    pub pages: Option<SmolStr>,
    /// The rest of its registration, as the driver writes it.
    pub rest: SmolStr,
    /// How long the master's lease in etcd lasts without a renewal. Whole seconds, at least 2.
    pub ttl: Duration,
    /// By how much its clock may be wrong.
    pub clock_tolerance: Tolerance,
    /// How many endpoints etcd has. If one fails, the others are tried at once.
    pub endpoints: u32,
    /// The templates in force. Absent: its node has a parent, which decides how long leases last.
    pub templates: Option<ActiveTemplates>,
}

/// What an election needs to know of the templates in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveTemplates {
    /// Identifies their lease lengths: the same text for the same lengths.
    pub digest: SmolStr,
    /// Their longest lease.
    pub longest: Duration,
    /// Whether etcd keeps the former templates.
    pub has_history: bool,
}

/// Templates that are to come into force, compared with those in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextTemplates {
    /// Identifies their lease lengths.
    pub digest: SmolStr,
    /// Their longest lease.
    pub longest: Duration,
    /// The longest lease by the templates in force of a resource that gets a shorter one by these.
    pub outlasts: Duration,
    /// The same, counting only resources for which a master that has begun must learn for longer.
    pub learning_outlasts: Duration,
}

impl CandidateConfig {
    /// How long a request to etcd may take: it must end well before the next renewal is due.
    pub fn call_timeout(&self) -> Duration {
        let (least, most) = (Duration::from_millis(250), Duration::from_millis(1_500));
        (self.ttl / 6).clamp(least, most)
    }
}
