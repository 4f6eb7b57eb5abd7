//! Metrics of the node's lock, which every request waits for.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::status::ServerState;

pub(super) fn encode(
    state: &ServerState,
    encoder: &mut DescriptorEncoder,
) -> Result<(), fmt::Error> {
    let times = state.node().lock_times();
    for (name, help, spans) in [
        (
            "node_lock_held_seconds",
            "How long the lock of the node was held, each time",
            &times.held,
        ),
        (
            "node_lock_wait_seconds",
            "How long the lock of the node was waited for, each time",
            &times.waited,
        ),
    ] {
        let seen = spans.seen();
        encoder
            .encode_descriptor(name, help, None, MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(seen.sum, seen.count, &seen.counts, None)?;
    }
    Ok(())
}
