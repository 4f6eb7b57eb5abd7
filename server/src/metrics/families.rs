//! Metric families that are read at each scrape.

use std::fmt;

use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;

use crate::yielding::YieldEvery;

/// Time series to write before the thread yields.
const SERIES_PER_STEP: usize = 1_024;

/// Labels of a time series, each with its name.
pub(super) type Labels<'a, const N: usize> = [(&'a str, &'a str); N];

/// A metric of every row of a table: its name, its help, and its value.
pub(super) type Column<T, V = f64> = (&'static str, &'static str, fn(&T) -> V);

/// Metrics, each with its help as documentation, its name and its value: an array of these three.
macro_rules! metrics {
    ($($(#[doc = $help:literal])+ $name:literal: $value:expr;)+) => {
        [$(($name, concat!($($help),+).trim_ascii_start(), $value)),+]
    };
}
pub(super) use metrics;

/// Writes families, and yields now and then.
pub(super) struct Families<'a> {
    encoder: DescriptorEncoder<'a>,
    steps: YieldEvery<SERIES_PER_STEP>,
}

impl<'a> Families<'a> {
    pub(super) fn new(encoder: DescriptorEncoder<'a>) -> Self {
        let steps = YieldEvery::default();
        Self { encoder, steps }
    }

    /// Writes a gauge.
    pub(super) fn gauge(&mut self, name: &str, help: &str, value: f64) -> fmt::Result {
        self.gauges(name, help, [([], value)])
    }

    /// Writes a counter.
    pub(super) fn counter(&mut self, name: &str, help: &str, value: u64) -> fmt::Result {
        self.counters(name, help, [([], value)])
    }

    /// Writes a gauge with a time series for each row. Without rows there is no family.
    pub(super) fn gauges<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<'l, N>, f64)>,
    ) -> fmt::Result {
        self.family(name, help, MetricType::Gauge, rows, |mut series, value| {
            series.encode_gauge(&value)
        })
    }

    /// Writes a counter with a time series for each row. Without rows there is no family.
    pub(super) fn counters<'l, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        rows: impl IntoIterator<Item = (Labels<'l, N>, u64)>,
    ) -> fmt::Result {
        let kind = MetricType::Counter;
        self.family(name, help, kind, rows, |mut series, value| {
            series.encode_counter::<NoLabelSet, u64, u64>(&value, None)
        })
    }

    fn family<'l, V, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        rows: impl IntoIterator<Item = (Labels<'l, N>, V)>,
        write: impl Fn(MetricEncoder<'_>, V) -> fmt::Result,
    ) -> fmt::Result {
        let mut rows = rows.into_iter().peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let mut family = self.encoder.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in rows {
            self.steps.step();
            write(family.encode_family(&labels)?, value)?;
        }
        Ok(())
    }
}

/// Returns 1 for true, and 0 for false.
pub(super) fn flag(value: bool) -> f64 {
    f64::from(u8::from(value))
}

/// Returns a count as a float. It is far below 2^53, or a bound.
pub(super) const fn float(count: usize) -> f64 {
    count as f64
}
