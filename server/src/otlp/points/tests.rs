//! Each kind of metric, in OTLP.

use opentelemetry_proto::tonic::common::v1::{self as wire, any_value};
use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
use prometheus_client::encoding::prometheus_protobuf::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram as Observed;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use super::*;

const CUMULATIVE: otlp::AggregationTemporality = otlp::AggregationTemporality::Cumulative;

/// Returns a metric in one line: its kind, and its series with their labels.
fn text(metric: &otlp::Metric) -> String {
    let labels = |attributes: &[wire::KeyValue]| {
        let pairs = attributes.iter().map(|it| {
            let Some(any_value::Value::StringValue(value)) = &it.value.as_ref().unwrap().value
            else {
                panic!("no text: {it:?}");
            };
            format!("{} {value}", it.key)
        });
        pairs.collect::<Vec<_>>().join(", ")
    };
    let number = |it: &otlp::NumberDataPoint| {
        assert_eq!((it.start_time_unix_nano, it.time_unix_nano), (1, 2));
        let Some(Value::AsDouble(value)) = it.value else {
            panic!("no value: {it:?}");
        };
        format!("[{}] {value}", labels(&it.attributes))
    };
    match metric.data.as_ref().unwrap() {
        Data::Sum(sum) => {
            assert!(sum.is_monotonic);
            assert_eq!(sum.aggregation_temporality(), CUMULATIVE);
            format!("sum {}", number(&sum.data_points[0]))
        }
        Data::Gauge(gauge) => format!("gauge {}", number(&gauge.data_points[0])),
        Data::Histogram(histogram) => {
            assert_eq!(histogram.aggregation_temporality(), CUMULATIVE);
            let it = &histogram.data_points[0];
            assert_eq!((it.start_time_unix_nano, it.time_unix_nano), (1, 2));
            format!(
                "histogram [{}] {:?} below {:?}: {} of {:?}",
                labels(&it.attributes),
                it.bucket_counts,
                it.explicit_bounds,
                it.count,
                it.sum
            )
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_kind_of_metric_keeps_its_name_its_labels_and_its_values() {
    let node = [("node".into(), "eu".into())];
    let mut registry = Registry::with_prefix_and_labels("doorward", node.into_iter());
    let calls = Family::<[(&str, &str); 1], Counter>::default();
    calls.get_or_create(&[("code", "OK")]).inc_by(7);
    registry.register("rpcs", "Calls", calls);
    let load = Gauge::<i64>::default();
    load.set(-3);
    registry.register("load", "A gauge", load);
    registry.register("build", "An info", Info::new([("version", "1")]));
    let took = Observed::new([1.0, 2.0]);
    for seconds in [0.5, 0.5, 1.5, 9.0] {
        took.observe(seconds);
    }
    registry.register("seconds", "A histogram", took);

    let families = encode(&registry).unwrap();
    let metrics: Vec<_> = families.iter().map(|it| metric(it, 1, 2)).collect();
    let lines = metrics
        .iter()
        .map(|it| format!("{}: {}", it.name, text(it)));
    let expected = [
        "doorward_rpcs_total: sum [node eu, code OK] 7",
        "doorward_load: gauge [node eu] -3",
        "doorward_build_info: gauge [node eu, version 1] 1",
        "doorward_seconds: histogram [node eu] [2, 1, 1] below [1.0, 2.0]: 4 of Some(11.5)",
    ];
    assert_eq!(lines.collect::<Vec<_>>(), expected);
    assert_eq!(metrics[0].description, "Calls.");
}
