//! The states of a server's machines as pages and the command line list them.

use crate::admin::v1::States;

impl States {
    /// Returns the existing state machines and their states, by the names of the metrics.
    pub fn listed(&self) -> Vec<(&'static str, String)> {
        let of = |what, state: &Option<String>| Some((what, state.clone()?));
        let streams = self.child_streams.iter().filter(|(_, count)| **count > 0);
        let streams = streams.map(|(state, count)| format!("{count} {state}"));
        let streams: Vec<_> = streams.collect();
        let streams = (!streams.is_empty()).then(|| streams.join(" and "));
        let listed = [
            of("parent session", &self.parent_session),
            of("election", &self.election),
            Some(("learning", self.learning.clone())),
            of("child streams", &streams),
        ];
        listed.into_iter().flatten().collect()
    }
}
