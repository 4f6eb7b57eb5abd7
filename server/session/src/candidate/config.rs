//! What a candidate is, and by which templates it would decide, as far as an election goes by them.

use std::time::Duration;

use smol_str::SmolStr;

use super::clock_error::ClockError;

/// What a candidate is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where others reach it.
    pub address: SmolStr,
    /// Which process it is: another one each time a server starts.
    pub server: SmolStr,
    /// Where its pages are, if they are anywhere.
    pub pages: Option<SmolStr>,
    /// What else it says of itself, as the driver writes it.
    pub rest: SmolStr,
    /// How long the master's lease lasts without being renewed. Whole seconds, at least 2.
    pub ttl: Duration,
    /// By how much its clock may be wrong.
    pub clock_error: ClockError,
    /// How many endpoints etcd has: one that fails is no problem yet, the others are tried at once.
    pub endpoints: u32,
    /// By which templates it would decide. Absent: it has a parent, which tells how long leases last.
    pub templates: Option<InForce>,
}

/// The templates in force, as far as an election goes by them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InForce {
    /// Which lease lengths they give: the same text for the same ones.
    pub digest: SmolStr,
    /// The longest lease by them.
    pub longest: Duration,
    /// Whether etcd has those that there were before.
    pub has_history: bool,
}

/// Templates that are to be in force, beside those that are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextTemplates {
    /// Which lease lengths they give.
    pub digest: SmolStr,
    /// The longest lease by them.
    pub longest: Duration,
    /// How long the longest lease is by those in force for which these give a shorter one.
    pub outlasts: Duration,
    /// The same, as far as a master that has begun is to learn for longer because of it.
    pub learning_outlasts: Duration,
}

impl Config {
    /// How long a question to etcd may take: it must be over well before the next renewal is due.
    pub fn call_timeout(&self) -> Duration {
        let (least, most) = (Duration::from_millis(250), Duration::from_millis(1_500));
        (self.ttl / 6).clamp(least, most)
    }
}
