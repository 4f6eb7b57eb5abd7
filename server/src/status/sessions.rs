//! The state of each state machine of a server: the session with its parent, its candidate, the streams of its child
//! servers, and learning mode.
//!
//! The drivers of sessions post each change of a state here, by name, with the names of all other states. So metrics
//! show every state without a second list. Learning mode is read from the node.

use std::sync::{Mutex, PoisonError};

use doorward_session::child_streams::StreamsSnapshot;

/// The present state of a machine, and all its states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    state: &'static str,
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

    /// Returns the name of the present state.
    pub const fn state(&self) -> &'static str {
        self.state
    }

    /// Returns the name of every state, and whether the machine is in it.
    pub fn states(&self) -> impl Iterator<Item = (&'static str, bool)> {
        self.all.iter().map(|name| (*name, *name == self.state))
    }
}

/// The last posts of the drivers.
#[derive(Debug, Default)]
pub struct Sessions {
    parent: Mutex<Option<Machine>>,
    election: Mutex<Option<Machine>>,
    child_streams: Mutex<Option<StreamsSnapshot>>,
}

impl Sessions {
    /// Posts the state of the session with the parent.
    pub fn post_parent(&self, machine: Machine) {
        *self.parent.lock().unwrap_or_else(PoisonError::into_inner) = Some(machine);
    }

    /// Returns the state of the session with the parent. None: there is no parent.
    pub fn parent(&self) -> Option<Machine> {
        let machine = self.parent.lock().unwrap_or_else(PoisonError::into_inner);
        machine.clone()
    }

    /// Posts the state of the candidate.
    pub fn post_election(&self, machine: Machine) {
        *self.election.lock().unwrap_or_else(PoisonError::into_inner) = Some(machine);
    }

    /// Returns this server's state in its election. None: there is no election.
    pub fn election(&self) -> Option<Machine> {
        let machine = self.election.lock().unwrap_or_else(PoisonError::into_inner);
        machine.clone()
    }

    /// Posts the streams of child servers and their states.
    pub fn post_child_streams(&self, snapshot: StreamsSnapshot) {
        let mut streams = self
            .child_streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *streams = Some(snapshot);
    }

    /// Returns the streams of child servers. None: they were never posted.
    pub fn child_streams(&self) -> Option<StreamsSnapshot> {
        let streams = self
            .child_streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        streams.clone()
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
            assert_eq!(machine.state(), state.as_str());
            let present: Vec<_> = machine.states().filter(|(_, is)| *is).collect();
            assert_eq!(present, [(state.as_str(), true)]);
            assert_eq!(machine.states().count(), Learning::ALL.len());
        }
    }
}
