//! Metrics as OTLP's data points. The names are those of `/metrics`.

use std::mem;

use opentelemetry::KeyValue;
use opentelemetry_proto::tonic::Attributes;
use opentelemetry_proto::tonic::metrics::v1::{self as otlp, metric::Data};
use prometheus_client::encoding::prometheus_protobuf::prometheus_data_model as model;

/// Converts a family. `since` is the start of its counters. Both times are nanoseconds since the Unix epoch.
pub(super) fn metric(family: &model::MetricFamily, since: u64, now: u64) -> otlp::Metric {
    let (mut data_points, mut histograms) = (Vec::new(), Vec::new());
    for series in &family.metric {
        let labels = series.label.iter();
        let labels = labels.map(|it| KeyValue::new(it.name.clone(), it.value.clone()));
        let attributes = Attributes::from(labels).0;
        let counter = series.counter.as_ref().map(|it| it.value);
        let value = counter.or(series.gauge.as_ref().map(|it| it.value));
        if let Some(histogram) = &series.histogram {
            // In OTLP, the last bucket has no bound, and each bucket counts only its own values.
            let buckets = histogram.bucket.iter();
            let buckets = buckets.filter(|it| it.upper_bound < f64::MAX);
            let counts = buckets.clone().map(|it| it.cumulative_count);
            let (counts, mut below) = (counts.chain([histogram.sample_count]), 0);
            let counts = counts.map(|it| it.saturating_sub(mem::replace(&mut below, it)));
            histograms.push(otlp::HistogramDataPoint {
                attributes,
                start_time_unix_nano: since,
                time_unix_nano: now,
                count: histogram.sample_count,
                sum: Some(histogram.sample_sum),
                bucket_counts: counts.collect(),
                explicit_bounds: buckets.map(|it| it.upper_bound).collect(),
                ..Default::default()
            });
        } else {
            data_points.push(otlp::NumberDataPoint {
                attributes,
                start_time_unix_nano: since,
                time_unix_nano: now,
                value: value.map(Into::into),
                ..Default::default()
            });
        }
    }
    let aggregation_temporality = otlp::AggregationTemporality::Cumulative.into();
    otlp::Metric {
        name: family.name.clone(),
        description: family.help.clone(),
        data: Some(match family.r#type() {
            model::MetricType::Counter => Data::Sum(otlp::Sum {
                data_points,
                aggregation_temporality,
                is_monotonic: true,
            }),
            model::MetricType::Histogram => Data::Histogram(otlp::Histogram {
                data_points: histograms,
                aggregation_temporality,
            }),
            _ => Data::Gauge(otlp::Gauge { data_points }),
        }),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests;
