//! Whether a server is ready: whether requests that are sent here are served, by this server or by one
//! that it names.
//!
//! A server is ready when it knows a master of its node and, if that is itself and it has a parent, the
//! parent has answered since the process started. A candidate needs no parent: it sends callers to the
//! master.
//!
//! What was ready stays so for as long as an election takes as a rule ([`ReadyState::new`]), for whoever
//! routes by readiness would take all servers of a node away at once, and clients have their leases and
//! try again. For the same reason a parent that was there once may go: what it leased is served until
//! that ends, and other servers of the node have the same parent.

use std::time::Duration;

use doorward_engine::node::mastership::Mastership;
use doorward_engine::time::Time;

/// Whether requests can be served, by this server or by one that it knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// They can.
    Ready,
    /// They cannot, and why.
    Unready(String),
}

impl Readiness {
    /// Whether they can.
    pub fn is_ready(&self) -> bool {
        *self == Self::Ready
    }
}

/// What it depends on, at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Who is the master.
    pub mastership: Mastership,
    /// Whether the parent has answered since the start. None: this is the root.
    pub parent_answered: Option<bool>,
    /// Whether the node is its own ancestor, so that there is nothing to lease.
    pub is_in_cycle: bool,
    /// Why the parent cannot be reached, or not as it should.
    pub parent_problem: Option<String>,
    /// Why etcd cannot be asked.
    pub etcd_problem: Option<String>,
    /// Why there are no templates, without which a root does not stand for election.
    pub templates_problem: Option<String>,
}

impl Facts {
    /// What is missing, in words. None: nothing.
    fn missing(&self) -> Option<String> {
        let (mut why, problems) = match &self.mastership {
            Mastership::Unknown => (
                "no master of this node is known".to_owned(),
                [&self.etcd_problem, &self.templates_problem],
            ),
            Mastership::Master { .. } if self.is_in_cycle => (
                "the node is its own ancestor; check --node and --parent of the servers above it"
                    .to_owned(),
                [&self.parent_problem, &None],
            ),
            Mastership::Master { .. } if self.parent_answered == Some(false) => (
                "the parent has not answered since this server started".to_owned(),
                [&self.parent_problem, &None],
            ),
            Mastership::Master { .. } | Mastership::Elsewhere { .. } => return None,
        };
        for problem in problems.into_iter().flatten() {
            why.push_str("; ");
            why.push_str(problem);
        }
        Some(why)
    }
}

/// Whether a server is ready, over time. It must be asked when something changes that readiness depends
/// on: what is missing counts from when it was first seen to be.
#[derive(Debug)]
pub struct ReadyState {
    /// For how long what was ready stays so.
    rides_out: Duration,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Something was missing from the start.
    NotYet,
    /// Nothing is missing.
    Ready,
    /// Something is missing since then that was there before.
    Lost { since: Time },
}

impl ReadyState {
    /// A server that was not ready yet. What was ready stays so for `rides_out`: two TTLs of the
    /// election, or not at all if there is none.
    pub const fn new(rides_out: Duration) -> Self {
        Self {
            rides_out,
            phase: Phase::NotYet,
        }
    }

    /// Whether it is ready now.
    pub fn judge(&mut self, facts: &Facts, now: Time) -> Readiness {
        let Some(why) = facts.missing() else {
            self.phase = Phase::Ready;
            return Readiness::Ready;
        };
        if self.phase == Phase::Ready {
            self.phase = Phase::Lost { since: now };
        }
        match self.ends_at() {
            Some(end) if now < end => Readiness::Ready,
            _ => Readiness::Unready(why),
        }
    }

    /// When it is ready no more if nothing changes. It may be over.
    pub fn ends_at(&self) -> Option<Time> {
        match self.phase {
            Phase::Lost { since } => Some(since + self.rides_out),
            Phase::NotYet | Phase::Ready => None,
        }
    }
}

#[cfg(test)]
mod tests;
