//! Metrics of limits: bound, use and refusals of each. The number of time series is fixed. A limit without a bound, or
//! whose use is not counted, has no series of that kind.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

use crate::limits::LimitFigure;
use crate::status::ServerState;

/// A gauge of every limit: its name, its help, and its value.
type LimitGauge = (&'static str, &'static str, fn(&LimitFigure) -> Option<u64>);

const LIMIT_GAUGES: [LimitGauge; 2] = [
    (
        "limit_max",
        "The bound, in what the limit's name says: things, bytes, milliseconds, or things each second",
        |figure| figure.max,
    ),
    (
        "limit_used",
        "What is in use; of a limit for each address, template or resource, the most that one of them uses",
        |figure| figure.used,
    ),
];

pub(super) fn encode(
    state: &ServerState,
    encoder: &mut DescriptorEncoder,
) -> Result<(), fmt::Error> {
    let figures = state.limit_figures();
    for (name, help, value_of) in LIMIT_GAUGES {
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for figure in &figures {
            let Some(value) = value_of(figure) else {
                continue;
            };
            let labels = [("limit", figure.limit.name())];
            let gauge = ConstGauge::new(float(value));
            gauge.encode(family.encode_family(&labels)?)?;
        }
    }
    let mut family = encoder.encode_descriptor(
        "limit_refused",
        "How often something was refused, or ended, for the limit",
        None,
        MetricType::Counter,
    )?;
    for figure in &figures {
        let labels = [("limit", figure.limit.name())];
        let counter = ConstCounter::new(figure.refused);
        counter.encode(family.encode_family(&labels)?)?;
    }
    Ok(())
}

#[expect(
    clippy::cast_precision_loss,
    reason = "bounds above 2^53 need not be exact"
)]
const fn float(value: u64) -> f64 {
    value as f64
}
