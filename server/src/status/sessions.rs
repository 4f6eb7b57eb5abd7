//! The state of each state machine of a server: the session with its parent, its candidate, the streams of its child
//! servers, and learning mode.
//!
//! A machine is shown by the name of its state, with the names of all other states. So metrics show every state without
//! a second list.

use doorward_replica::Replica;
use doorward_session::candidate::state::CandidateState;
use doorward_session::child_streams::StreamsSnapshot;
use doorward_session::parent_session::{ParentSession, STATES};
use doorward_session::time::Time;

/// The present state of a machine, and all its states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    pub(super) state: &'static str,
    all: Vec<&'static str>,
}

impl Machine {
    /// Returns the machine of any `enum` of named states.
    pub fn new<S: Copy>(state: S, all: &[S], name: fn(S) -> &'static str) -> Self {
        Self {
            state: name(state),
            all: all.iter().copied().map(name).collect(),
        }
    }

    /// Returns the name of every state, and whether the machine is in it.
    pub fn states(&self) -> impl Iterator<Item = (&'static str, bool)> {
        self.all.iter().map(|name| (*name, *name == self.state))
    }
}

/// The machines of a server.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    /// Session with the parent. Absent: there is no parent.
    pub parent: Option<Machine>,
    /// Candidate. Absent: there is no election.
    pub election: Option<Machine>,
    /// Streams of child servers.
    pub child_streams: StreamsSnapshot,
}

impl Sessions {
    /// Returns the machines of a replica.
    pub fn of(replica: &Replica, now: Time) -> Self {
        let parent = replica.parent_session().map(ParentSession::state);
        let candidate = replica.candidate().map(|candidate| candidate.state(now));
        Self {
            parent: parent.map(|state| Machine::new(state, &STATES, |name| name)),
            election: candidate
                .map(|state| Machine::new(state, &CandidateState::ALL, CandidateState::as_str)),
            child_streams: replica.streams(),
        }
    }
}

#[cfg(test)]
mod tests {
    use doorward_engine::node::mastership::Learning;

    use super::*;

    #[test]
    fn a_machine_is_in_one_of_its_states() {
        for state in Learning::ALL {
            let machine = Machine::new(state, &Learning::ALL, Learning::as_str);
            assert_eq!(machine.state, state.as_str());
            let present: Vec<_> = machine.states().filter(|(_, is)| *is).collect();
            assert_eq!(present, [(state.as_str(), true)]);
            assert_eq!(machine.states().count(), Learning::ALL.len());
        }
    }
}
