//! In which state each machine of a server is: how it asks its parent, how it takes part in its election, the
//! streams of its child servers, and learning mode.
//!
//! Drivers of sessions post here what the machines say of themselves, whenever that changes: a state by its name,
//! and which others there are. So metrics show all of them, and nobody keeps a second list. Learning mode is
//! asked of the node.

use std::sync::{Mutex, PoisonError};

use doorward_session::child_streams::StreamsSnapshot;

/// The state that a machine is in, among all that it knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Machine {
    state: &'static str,
    all: Vec<&'static str>,
}

impl Machine {
    /// Of any `enum` of states with names.
    pub fn new<S: Copy>(state: S, all: &[S], name: fn(S) -> &'static str) -> Self {
        Self {
            state: name(state),
            all: all.iter().copied().map(name).collect(),
        }
    }

    /// The state by its name.
    pub const fn state(&self) -> &'static str {
        self.state
    }

    /// Every state by its name, and whether the machine is in it.
    pub fn states(&self) -> impl Iterator<Item = (&'static str, bool)> {
        self.all.iter().map(|name| (*name, *name == self.state))
    }
}

/// What drivers posted last.
#[derive(Debug, Default)]
pub struct Sessions {
    parent: Mutex<Option<Machine>>,
    election: Mutex<Option<Machine>>,
    child_streams: Mutex<Option<StreamsSnapshot>>,
}

impl Sessions {
    /// How the parent is asked is in another state now.
    pub fn post_parent(&self, machine: Machine) {
        *self.parent.lock().unwrap_or_else(PoisonError::into_inner) = Some(machine);
    }

    /// How the parent is asked. None: there is none.
    pub fn parent(&self) -> Option<Machine> {
        let machine = self.parent.lock().unwrap_or_else(PoisonError::into_inner);
        machine.clone()
    }

    /// The candidate is in another state now.
    pub fn post_election(&self, machine: Machine) {
        *self.election.lock().unwrap_or_else(PoisonError::into_inner) = Some(machine);
    }

    /// How this server takes part in its election. None: there is none.
    pub fn election(&self) -> Option<Machine> {
        let machine = self.election.lock().unwrap_or_else(PoisonError::into_inner);
        machine.clone()
    }

    /// There are other streams of child servers now, or they are in other states.
    pub fn post_child_streams(&self, snapshot: StreamsSnapshot) {
        let mut streams = self
            .child_streams
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        *streams = Some(snapshot);
    }

    /// The streams of child servers. None: nobody has posted any.
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
