//! Metrics of the state machines of a server. Each machine has a metric with a label `state`: 1 for its present state,
//! and 0 for every other state. A server has many child streams; their metric counts the streams in each state. The
//! number of time series is fixed.

use std::fmt;

use doorward_engine::node::mastership::Learning;
use doorward_engine::node::pages::Totals;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::metrics::float;
use crate::status::ServerState;
use crate::status::sessions::Machine;

pub(super) fn encode(
    state: &ServerState,
    totals: &Totals,
    encoder: &mut DescriptorEncoder,
) -> Result<(), fmt::Error> {
    let learning = state.node().look(|node, now| node.learning(totals, now));
    let learning = Machine::new(learning, &Learning::ALL, Learning::as_str);
    let sessions = state.sessions();
    for (name, help, machine) in [
        (
            "parent_session_state",
            "1 for what the server does to ask its parent",
            sessions.parent,
        ),
        (
            "election_state",
            "1 for how the server takes part in the election of its node's master",
            sessions.election,
        ),
        (
            "learning",
            "1 for why the server is in learning mode, or that it is not",
            Some(learning),
        ),
    ] {
        let Some(machine) = machine else {
            continue;
        };
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (state, is_present) in machine.states() {
            let gauge = ConstGauge::new(f64::from(u8::from(is_present)));
            gauge.encode(family.encode_family(&[("state", state)])?)?;
        }
    }
    let streams = sessions.child_streams;
    let help = "Streams of child servers";
    let mut family = encoder.encode_descriptor("child_streams", help, None, MetricType::Gauge)?;
    for (state, streams) in streams.streams {
        let gauge = ConstGauge::new(float(streams));
        gauge.encode(family.encode_family(&[("state", state.as_str())])?)?;
    }
    let (name, help) = (
        "child_streams_closed",
        "Streams of child servers that this server ended, by the reason",
    );
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (closing, times) in streams.closed {
        let counter = ConstCounter::new(times);
        counter.encode(family.encode_family(&[("reason", closing.as_str())])?)?;
    }
    Ok(())
}
