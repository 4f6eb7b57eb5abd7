//! Metrics of the state machines of a server. Each machine has a metric with a label `state`: 1 for its present state,
//! and 0 for every other state. A server has many child streams; their metric counts the streams in each state. The
//! number of time series is fixed.

use std::fmt;

use doorward_engine::node::mastership::Learning;
use doorward_engine::node::pages::Totals;
use doorward_session::candidate::state::CandidateState;
use doorward_session::parent_session::STATES;

use crate::metrics::families::{Families, flag, float, metrics};
use crate::status::ServerState;

pub(super) fn write(
    state: &ServerState,
    totals: &Totals,
    families: &mut Families<'_>,
) -> fmt::Result {
    let learning = state.node().look(|node, now| node.learning(totals, now));
    let sessions = state.sessions();
    let election = sessions.election.map(CandidateState::as_str);
    for (name, help, (present, all)) in metrics! {
        /// 1 for what the server does to ask its parent
        "parent_session_state": (sessions.parent, &STATES[..]);
        /// 1 for how the server takes part in the election of its node's master
        "election_state": (election, &CandidateState::ALL.map(CandidateState::as_str)[..]);
        /// 1 for why the server is in learning mode, or that it is not
        "learning": (Some(learning.as_str()), &Learning::ALL.map(Learning::as_str)[..]);
    } {
        let states = all.iter().filter(|_| present.is_some());
        let rows = states.map(|state| ([("state", *state)], flag(present == Some(*state))));
        families.gauges(name, help, rows)?;
    }
    let node = state.node();
    let (streams, pushes) = node.look(|node, _| (node.client_streams(), node.counters().pushed));
    let help = "Clients with an open stream";
    families.gauge("client_streams", help, float(streams))?;
    families.counter("client_pushes", "Leases pushed to clients", pushes)?;
    let streams = sessions.child_streams;
    let rows = streams.streams.into_iter();
    let rows = rows.map(|(state, streams)| ([("state", state.as_str())], float(streams)));
    families.gauges("child_streams", "Streams of child servers", rows)?;
    let rows = streams.closed.into_iter();
    let rows = rows.map(|(reason, times)| ([("reason", reason.as_str())], times));
    let help = "Streams of child servers that this server ended, by the reason";
    families.counters("child_streams_closed", help, rows)
}
