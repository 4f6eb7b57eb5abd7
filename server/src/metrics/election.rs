//! Metrics of mastership, and of etcd if there is an election.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::status::ServerState;

pub(super) fn encode(
    state: &ServerState,
    encoder: &mut DescriptorEncoder,
) -> Result<(), fmt::Error> {
    let (epoch, masterships, master_for) = state.node().look(|node, now| {
        let master_for = node.valid_until().map(|until| until.since(now));
        (node.mastership(now).epoch(), node.masterships(), master_for)
    });
    let counter = ConstCounter::new(masterships);
    counter.encode(encoder.encode_descriptor(
        "mastership_changes",
        "How often the node had another master, or none, as this server saw it",
        None,
        MetricType::Counter,
    )?)?;
    let Some(contact) = state.etcd_health() else {
        return Ok(());
    };
    let is_up = f64::from(u8::from(contact.problem.is_none()));
    #[expect(clippy::cast_precision_loss, reason = "a revision far below 2^53")]
    let epoch = epoch.unwrap_or(0) as f64;
    for (name, help, value) in [
        ("etcd_up", "1 if etcd answers the election", is_up),
        (
            "mastership_epoch",
            "The epoch of the node's master; 0: none is known",
            epoch,
        ),
        (
            "mastership_remaining_seconds",
            "How long this server is the master if nothing more is heard from etcd; 0: it is not",
            master_for.map_or(0.0, |left| left.as_secs_f64()),
        ),
    ] {
        let gauge = ConstGauge::new(value);
        gauge.encode(encoder.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
    }
    Ok(())
}
