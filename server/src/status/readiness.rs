//! Readiness of a server: requests that are sent here are served, by this server or by one that it names.
//!
//! A server is ready when it knows a master of its node. If it is the master itself and has a parent, the parent must
//! have answered since the process started, and must not refuse this process for another one of the same name. A
//! candidate needs no parent: it sends callers to the master. An agent needs its rules.
//!
//! A ready server stays ready for about as long as an election takes ([`ReadyState::new`]). Otherwise a load balancer
//! would remove all servers of a node at once, although clients have their leases and try again. For the same reason
//! the parent may be lost later: its leases are served until they end, and other servers of the node have the same
//! parent.

use std::time::Duration;

use doorward_engine::node::mastership::Mastership;
use doorward_engine::time::Time;

/// Readiness of a server. An error is the reason why requests cannot be served.
pub type Readiness = Result<(), String>;

/// Facts that readiness depends on, at a moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    /// Master of the node.
    pub mastership: Mastership,
    /// Whether the parent has answered since the start. None: this is the root.
    pub parent_answered: Option<bool>,
    /// Whether the node is its own ancestor, so that there is nothing to lease.
    pub is_in_cycle: bool,
    /// Problem with reaching the parent, if there is one.
    pub parent_problem: Option<String>,
    /// Problem, if etcd cannot be asked.
    pub etcd_problem: Option<String>,
    /// Problem of an agent whose rules are not loaded yet.
    pub rules_problem: Option<String>,
    /// Whether the parent refuses this process, because another one has the node's name.
    pub is_second: bool,
    /// Problem, if there are no templates. A root without templates does not stand for election.
    pub templates_problem: Option<String>,
}

impl Facts {
    /// Returns the missing condition in words. None: none is missing.
    fn missing(&self) -> Option<String> {
        let etcd_and_templates = [&self.etcd_problem, &self.templates_problem];
        let parent = [&self.parent_problem, &None];
        let (why, problems) = match &self.mastership {
            _ if self.rules_problem.is_some() => {
                ("the rules are not loaded", [&self.rules_problem, &None])
            }
            Mastership::Unknown => ("no master of this node is known", etcd_and_templates),
            Mastership::Master { .. } if self.is_in_cycle => (
                "the node is its own ancestor; check --node and --parent of the servers above it",
                parent,
            ),
            Mastership::Master { .. } if self.is_second => (
                "the parent refuses this process, because another one has the name of the node",
                parent,
            ),
            Mastership::Master { .. } if self.parent_answered == Some(false) => (
                "the parent has not answered since this server started",
                parent,
            ),
            Mastership::Master { .. } | Mastership::Elsewhere { .. } => return None,
        };
        let mut why = why.to_owned();
        for problem in problems.into_iter().flatten() {
            why.push_str("; ");
            why.push_str(problem);
        }
        Some(why)
    }
}

/// Readiness of a server over time. It must be judged whenever one of the facts changes: an outage counts from the
/// moment when it was first seen.
#[derive(Debug)]
pub struct ReadyState {
    /// Time that a ready server stays ready in an outage.
    rides_out: Duration,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The server was never ready.
    NotYet,
    /// The server is ready.
    Ready,
    /// The server was ready, and has not been since then.
    Lost { since: Time },
}

impl ReadyState {
    /// Returns the state of a server that was not ready yet. A ready server stays ready for `rides_out`: two TTLs of
    /// the election, or zero without an election.
    pub const fn new(rides_out: Duration) -> Self {
        Self {
            rides_out,
            phase: Phase::NotYet,
        }
    }

    /// Returns the readiness now.
    pub fn judge(&mut self, facts: &Facts, now: Time) -> Readiness {
        let Some(why) = facts.missing() else {
            self.phase = Phase::Ready;
            return Ok(());
        };
        if self.phase == Phase::Ready {
            self.phase = Phase::Lost { since: now };
        }
        match self.ends_at() {
            Some(end) if now < end => Ok(()),
            _ => Err(why),
        }
    }

    /// Returns the time when readiness ends if nothing changes. It may be in the past.
    pub fn ends_at(&self) -> Option<Time> {
        match self.phase {
            Phase::Lost { since } => Some(since + self.rides_out),
            Phase::NotYet | Phase::Ready => None,
        }
    }
}

#[cfg(test)]
mod tests;
