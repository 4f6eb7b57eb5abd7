//! In which state each machine of a server is: how it asks its parent, how it takes part in its election, the
//! streams of its child servers, and learning mode.
//!
//! Drivers of sessions post here what the machines say of themselves, whenever that changes: a state by its name,
//! and which others there are. So metrics show all of them, and nobody keeps a second list. Learning mode is
//! asked of the node.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use doorward_engine::node::learning::Learning;
use serde::Serialize;

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
}

/// The states of all machines, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StatesStatus {
    /// How the parent is asked. Absent: this is the root.
    pub parent_session: Option<&'static str>,
    /// How this server takes part in its election. Absent: there is none.
    pub election: Option<&'static str>,
    /// How many streams of child servers are in each state.
    pub child_streams: BTreeMap<&'static str, usize>,
    /// Whether the server learns, and why.
    pub learning: &'static str,
}

impl StatesStatus {
    pub(super) fn of(sessions: &Sessions, streams: usize, learning: Learning) -> Self {
        Self {
            parent_session: sessions.parent().as_ref().map(Machine::state),
            election: sessions.election().as_ref().map(Machine::state),
            child_streams: child_streams(streams).collect(),
            learning: learning.as_str(),
        }
    }
}

/// How many streams of child servers are in each state: one that is not open is none.
pub(crate) fn child_streams(open: usize) -> impl Iterator<Item = (&'static str, usize)> {
    [("open", open)].into_iter()
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn what_was_not_posted_is_absent() {
        let sessions = Sessions::default();
        let status = StatesStatus::of(&sessions, 0, Learning::Over);
        assert_eq!((status.parent_session, status.election), (None, None));
        sessions.post_election(Machine::new("b", &["a", "b"], |name| name));
        let status = StatesStatus::of(&sessions, 2, Learning::Above);
        assert_eq!((status.parent_session, status.election), (None, Some("b")));
        assert_eq!(
            (status.child_streams["open"], status.learning),
            (2, "above")
        );
    }
}
