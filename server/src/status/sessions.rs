//! In which state each machine of a server is: how it asks its parent, how it takes part in its election, the
//! streams of its child servers, and learning mode.
//!
//! Drivers of sessions post here what the machines say of themselves, whenever that changes: a state by its name,
//! and which others there are. So metrics show all of them, and nobody keeps a second list. Learning mode is
//! asked of the node.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};

use doorward_engine::node::learning::Learning;
use doorward_session::child_streams::Snapshot;
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
#[derive(Default)]
pub struct Sessions {
    parent: Mutex<Option<Machine>>,
    election: Mutex<Option<Machine>>,
    /// Who knows of the streams of child servers.
    streams: OnceLock<Box<dyn Fn() -> Snapshot + Send + Sync>>,
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions")
            .field("parent", &self.parent)
            .field("election", &self.election)
            .finish_non_exhaustive()
    }
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

    /// Whom to ask for the streams of child servers. Only the first one counts.
    pub fn ask_for_streams(&self, ask: impl Fn() -> Snapshot + Send + Sync + 'static) {
        let _only_the_first = self.streams.set(Box::new(ask));
    }

    /// How many streams of child servers are in each state.
    pub fn streams(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let streams = self.streams.get().map(|ask| ask().streams);
        let streams = streams.into_iter().flatten();
        streams.map(|(state, streams)| (state.as_str(), streams))
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
    pub(super) fn of(sessions: &Sessions, learning: Learning) -> Self {
        Self {
            parent_session: sessions.parent().as_ref().map(Machine::state),
            election: sessions.election().as_ref().map(Machine::state),
            child_streams: sessions.streams().collect(),
            learning: learning.as_str(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use doorward_session::child_streams::ChildStreams;
    use doorward_session::time::Time;

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
        let status = StatesStatus::of(&sessions, Learning::Over);
        assert_eq!((status.parent_session, status.election), (None, None));
        assert_eq!(status.child_streams, BTreeMap::new());
        sessions.post_election(Machine::new("b", &["a", "b"], |name| name));
        let mut streams = ChildStreams::new(Duration::ZERO);
        streams.handle_connected(Time::ZERO);
        sessions.ask_for_streams(move || streams.snapshot());
        let status = StatesStatus::of(&sessions, Learning::Above);
        assert_eq!((status.parent_session, status.election), (None, Some("b")));
        let streams = BTreeMap::from([("opening", 1), ("open", 0)]);
        assert_eq!((status.child_streams, status.learning), (streams, "above"));
    }
}
