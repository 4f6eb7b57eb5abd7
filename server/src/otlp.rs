//! Reports to a collector by OTLP, in builds with the feature `otel`. Other builds have `otlp/off.rs` in its place.
//!
//! Metrics are those of `/metrics`; `points` converts them. Spans are those of [`otel`](crate::otel). They go through a
//! bounded queue to a thread of the SDK, which drops spans if the queue is full. So a collector that does not answer
//! delays no call.

mod points;

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;
use std::{env, mem};

use doorward_etcd::error::innermost;
use opentelemetry::KeyValue;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::{SpanExporter, WithTonicConfig};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use prometheus_client::encoding::prometheus_protobuf::encode;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tonic::transport::Channel;
use tracing::warn;

use crate::app::{Server, ServerError};
use crate::flags::LogFlags;
use crate::metrics::Metrics;
use crate::signals::Signals;
use crate::{clock, otel};

/// Time between two exports of all metrics, unless the standard variable has another.
const INTERVAL: Duration = Duration::from_secs(60);

/// Longest time of one export.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time of the last export of spans, when the server has stopped.
const LAST: Duration = Duration::from_secs(1);

/// Metric families in one message. Collectors take at most 4 MiB, and a family has at most a thousand series.
const FAMILIES_AT_ONCE: usize = 8;

/// Runs a server until a signal stops it. Reports to the collector of the flag, if there is one.
///
/// # Errors
///
/// If a part of the server stops by itself.
pub async fn run(
    flags: &LogFlags,
    name: &str,
    stop: Signals,
    server: Server,
) -> Result<(), ServerError> {
    let Some(endpoint) = &flags.otlp else {
        return stop.run(server).await;
    };
    let endpoint = endpoint.clone().connect_timeout(TIMEOUT).timeout(TIMEOUT);
    let channel = endpoint.connect_lazy();
    let (node, address) = (server.state().node_name(), server.state().address());
    let instance = KeyValue::new("service.instance.id", format!("{node}@{address}"));
    let resource = Resource::builder().with_service_name(name.to_owned());
    let resource = resource.with_attribute(instance).build();
    let mut spans = SdkTracerProvider::builder().with_resource(resource.clone());
    let exporter = SpanExporter::builder().with_tonic();
    match exporter.with_channel(channel.clone()).build() {
        Ok(exporter) => spans = spans.with_batch_exporter(exporter),
        Err(problem) => warn!(%problem, "no traces are sent"),
    }
    let spans = spans.build();
    otel::start(spans.tracer("doorward"));
    tokio::spawn(report(Arc::clone(server.metrics()), resource, channel));
    let stopped = stop.run(server).await;
    let _flushed = spawn_blocking(move || spans.shutdown_with_timeout(LAST)).await;
    stopped
}

/// Sends all metrics now and then. The first failure after a success is a warning.
async fn report(metrics: Arc<Metrics>, resource: Resource, channel: Channel) {
    let every = env::var("OTEL_METRIC_EXPORT_INTERVAL").unwrap_or_default();
    let every = every.parse().map(NonZeroU64::get);
    let every = every.map_or(INTERVAL, Duration::from_millis);
    let (mut client, mut is_known) = (MetricsServiceClient::new(channel), false);
    let since = now();
    loop {
        let metrics = Arc::clone(&metrics);
        // A failure is a bug, and one of `/metrics`, too.
        let families = spawn_blocking(move || encode(&metrics.registry)).await;
        let families = families.unwrap_or(Ok(Vec::new())).unwrap_or_default();
        let converted = |family| points::metric(family, since, now());
        for families in families.chunks(FAMILIES_AT_ONCE) {
            let scope_metrics = vec![ScopeMetrics {
                metrics: families.iter().map(converted).collect(),
                ..Default::default()
            }];
            let resource_metrics = vec![ResourceMetrics {
                resource: Some((&resource).into()),
                scope_metrics,
                ..Default::default()
            }];
            let request = ExportMetricsServiceRequest { resource_metrics };
            match client.export(request).await {
                Ok(_) => is_known = false,
                Err(status) if !mem::replace(&mut is_known, true) => {
                    let problem = innermost(&status);
                    warn!(problem, "the OpenTelemetry collector takes no metrics");
                }
                Err(_) => {}
            }
        }
        sleep(every).await;
    }
}

/// Returns the time since the Unix epoch in nanoseconds.
fn now() -> u64 {
    u64::try_from(clock::wall().as_nanos()).unwrap_or(u64::MAX)
}
