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
            Mastership::Master { .. } | Mastership::Follower { .. } => return None,
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
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn master() -> Mastership {
        Mastership::Master { epoch: Some(1) }
    }

    fn follower() -> Mastership {
        Mastership::Follower {
            master_address: "there:1".to_owned(),
            epoch: Some(1),
        }
    }

    fn at(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn root(mastership: Mastership) -> Facts {
        Facts {
            mastership,
            ..Facts::default()
        }
    }

    fn below(mastership: Mastership, answered: bool) -> Facts {
        Facts {
            parent_answered: Some(answered),
            ..root(mastership)
        }
    }

    #[track_caller]
    fn check(state: &mut ReadyState, facts: &Facts, second: u64, ready: bool) {
        let judged = state.judge(facts, at(second));
        assert_eq!(judged.is_ready(), ready, "at {second} s: {judged:?}");
    }

    #[test]
    fn a_server_that_is_its_own_ancestor_is_not_ready_whoever_answered() {
        let master = Mastership::Master { epoch: None };
        let facts = Facts {
            is_in_cycle: true,
            ..below(master, true)
        };
        let mut state = ReadyState::new(Duration::ZERO);
        check(&mut state, &facts, 1, false);
        let Readiness::Unready(why) = state.judge(&facts, at(1)) else {
            panic!("it is not");
        };
        assert!(why.contains("its own ancestor"), "{why}");
    }

    #[test]
    fn a_server_is_ready_when_it_knows_a_master_and_as_the_master_its_parent_has_answered() {
        for (facts, ready) in [
            (root(Mastership::Unknown), false),
            (root(master()), true),
            (root(follower()), true),
            (below(Mastership::Unknown, true), false),
            (below(master(), false), false),
            (below(master(), true), true),
            (below(follower(), false), true),
        ] {
            let mut state = ReadyState::new(2 * TTL);
            assert_eq!(state.judge(&facts, at(0)).is_ready(), ready, "{facts:?}");
        }
    }

    #[test]
    fn an_election_that_lasts_less_than_two_ttls_leaves_it_ready() {
        let mut state = ReadyState::new(2 * TTL);
        check(&mut state, &root(Mastership::Unknown), 0, false);
        check(&mut state, &root(follower()), 5, true);
        check(&mut state, &root(Mastership::Unknown), 100, true);
        assert_eq!(state.ends_at(), Some(at(120)));
        check(&mut state, &root(Mastership::Unknown), 119, true);
        check(&mut state, &root(master()), 119, true);
        assert_eq!(state.ends_at(), None);
        // The next one counts from its own beginning.
        check(&mut state, &root(Mastership::Unknown), 130, true);
        check(&mut state, &root(Mastership::Unknown), 149, true);
        check(&mut state, &root(Mastership::Unknown), 150, false);
        check(&mut state, &root(follower()), 151, true);
    }

    #[test]
    fn a_new_master_has_as_long_to_hear_of_its_parent() {
        let mut state = ReadyState::new(2 * TTL);
        check(&mut state, &below(follower(), false), 0, true);
        check(&mut state, &below(Mastership::Unknown, false), 10, true);
        check(&mut state, &below(master(), false), 15, true);
        check(&mut state, &below(master(), false), 30, false);
        check(&mut state, &below(master(), true), 31, true);
    }

    #[test]
    fn without_an_election_nothing_is_waited_for() {
        let mut state = ReadyState::new(Duration::ZERO);
        check(&mut state, &root(master()), 0, true);
        check(&mut state, &root(Mastership::Unknown), 0, false);
    }

    #[test]
    fn it_says_what_is_missing_and_why() {
        let text_of = |text: &str| Some(text.to_owned());
        let problems = Facts {
            parent_problem: text_of("refused"),
            etcd_problem: text_of("etcd is away"),
            templates_problem: text_of("there are none"),
            ..below(master(), false)
        };
        assert_eq!(
            problems.missing(),
            text_of("the parent has not answered since this server started; refused")
        );
        let unknown = Facts {
            mastership: Mastership::Unknown,
            ..problems
        };
        assert_eq!(
            unknown.missing(),
            text_of("no master of this node is known; etcd is away; there are none")
        );
    }
}
