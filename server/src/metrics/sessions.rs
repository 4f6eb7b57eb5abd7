//! Metrics of the state machines of a server. Each machine has a metric with a label `state`: 1 for its present state,
//! and 0 for every other state. A server has many child streams; their metric counts the streams in each state. The
//! number of time series is fixed.

use std::fmt;

use doorward_engine::node::mastership::Learning;
use doorward_engine::node::pages::Totals;

use crate::metrics::families::{Families, flag, float, metrics};
use crate::status::ServerState;
use crate::status::sessions::Machine;

pub(super) fn write(
    state: &ServerState,
    totals: &Totals,
    families: &mut Families<'_>,
) -> fmt::Result {
    let learning = state.node().look(|node, now| node.learning(totals, now));
    let learning = Machine::new(learning, &Learning::ALL, Learning::as_str);
    let sessions = state.sessions();
    for (name, help, machine) in metrics! {
        /// 1 for what the server does to ask its parent
        "parent_session_state": sessions.parent;
        /// 1 for how the server takes part in the election of its node's master
        "election_state": sessions.election;
        /// 1 for why the server is in learning mode, or that it is not
        "learning": Some(learning);
    } {
        let states = machine.iter().flat_map(Machine::states);
        let rows = states.map(|(state, is_present)| ([("state", state)], flag(is_present)));
        families.gauges(name, help, rows)?;
    }
    let node = state.node();
    let (streams, pushes) = node.look(|node, _| (node.client_streams(), node.counters().pushed));
    families.gauge(
        "client_streams",
        "Clients with an open stream",
        float(streams),
    )?;
    families.counter("client_pushes", "Leases pushed to clients", pushes)?;
    let streams = sessions.child_streams;
    let rows = streams.streams.into_iter();
    let rows = rows.map(|(state, streams)| ([("state", state.as_str())], float(streams)));
    families.gauges("child_streams", "Streams of child servers", rows)?;
    let rows = streams.closed.into_iter();
    let help = "Streams of child servers that this server ended, by the reason";
    families.counters(
        "child_streams_closed",
        help,
        rows.map(|(reason, times)| ([("reason", reason.as_str())], times)),
    )
}
