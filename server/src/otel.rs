//! OpenTelemetry: metrics and traces by OTLP, in builds with the feature `otel`. Other builds have `otel/off.rs` in its
//! place.
//!
//! - Metrics are those of `/metrics`; `points` converts them.
//! - Every gRPC call has a span. The header `traceparent` names its parent.
//! - Requests between servers are messages on a stream, so the message has the `traceparent`. The child has a span from
//!   the request to the answer, and the parent from the message to its answer. If a client's call waits for the answer,
//!   the child's span is below that of the call. So the first request of a client is one trace up to the root.
//! - Spans are made with the API of OpenTelemetry. Spans of `tracing` would change the log.
//!
//! A process has one tracer, because it has one server. Spans go through a bounded queue to a thread of the SDK, which
//! drops spans if the queue is full. So a collector that does not answer delays no call.

mod points;

use std::collections::HashMap;
use std::num::NonZeroU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use std::{env, mem};

use doorward_door::calls::CallService;
use doorward_door::request_body::RequestBody;
use doorward_etcd::error::innermost;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{FutureExt, Span as _, SpanContext, SpanKind};
use opentelemetry::trace::{TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{SpanExporter, WithTonicConfig};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_client::MetricsServiceClient;
use opentelemetry_proto::tonic::metrics::v1::{ResourceMetrics, ScopeMetrics};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use prometheus_client::encoding::prometheus_protobuf::encode;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tonic::Status as RpcStatus;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tonic::transport::{Channel, Endpoint};
use tracing::warn;

use crate::app::{Server, ServerError};
use crate::metrics::Metrics;
use crate::signals::Signals;
use crate::{clock, methods};

/// Time between two exports of all metrics, unless the standard variable has another.
const INTERVAL: Duration = Duration::from_secs(60);

/// Longest time of one export.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time of the last export of spans, when the server has stopped.
const LAST: Duration = Duration::from_secs(1);

/// Metric families in one message. Collectors take at most 4 MiB, and a family has at most a thousand series.
const FAMILIES_AT_ONCE: usize = 8;

/// Longest `traceparent` that is read. Today's version has 55 bytes, and a later one may have more.
const TRACEPARENT_BYTES_MAX: usize = 128;

/// Name of the spans of a request between servers.
const EXCHANGE: &str = "doorman.GetServerCapacityRequest";

static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// A span, which ends when it is dropped.
pub(crate) type Span = opentelemetry_sdk::trace::Span;

/// The flag of OpenTelemetry.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OtlpFlags {
    /// OpenTelemetry collector for metrics and traces, by OTLP over gRPC without TLS: usually one on this machine,
    /// http://127.0.0.1:4317 [default: none].
    ///
    /// OTEL_TRACES_SAMPLER and OTEL_TRACES_SAMPLER_ARG choose traces.
    #[arg(long, help_heading = "Logs", hide_short_help = true)]
    #[arg(value_name = "http://HOST:PORT")]
    pub otlp: Option<Endpoint>,
}

impl OtlpFlags {
    /// Runs a server until a signal stops it. Reports to the collector of the flag, if there is one.
    ///
    /// # Errors
    ///
    /// If a part of the server stops by itself.
    pub async fn run(self, name: &str, stop: Signals, server: Server) -> Result<(), ServerError> {
        let Some(endpoint) = self.otlp else {
            return stop.run(server).await;
        };
        let endpoint = endpoint.connect_timeout(TIMEOUT).timeout(TIMEOUT);
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
        let _is_first = TRACER.set(spans.tracer("doorward"));
        tokio::spawn(report(Arc::clone(server.metrics()), resource, channel));
        let stopped = stop.run(server).await;
        let _flushed = spawn_blocking(move || spans.shutdown_with_timeout(LAST)).await;
        stopped
    }
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

/// Gives each call of services a span.
pub(crate) const fn traced<S>(services: S) -> Traced<S> {
    Traced(services)
}

/// Services whose calls have spans.
#[derive(Debug)]
pub(crate) struct Traced<S>(S);

impl<S: CallService<B>, B: Send + 'static> CallService<B> for Traced<S> {
    async fn answer(&self, request: Request<RequestBody<B>>) -> Response<Body> {
        let name = methods::ALL.iter().find(|it| **it == request.uri().path());
        let name = name.map_or("other", |it| it.trim_start_matches('/'));
        let traceparent = request.headers().get("traceparent");
        let traceparent = traceparent.and_then(|it| it.to_str().ok());
        let Some(span) = begin(SpanKind::Server, name, traceparent) else {
            return self.0.answer(request).await;
        };
        let call = Context::new().with_span(span);
        // Most calls are decided before their future starts, so that is in the context, too.
        let answer = async { self.0.answer(request).await };
        let response = answer.with_context(call.clone()).await;
        let status = RpcStatus::from_header_map(response.headers());
        let code = status.map_or(0, |status| i32::from(status.code()));
        let (service, method) = name.split_once('/').unwrap_or_default();
        call.span().set_attributes([
            KeyValue::new("rpc.system", "grpc"),
            KeyValue::new("rpc.service", service),
            KeyValue::new("rpc.method", method),
            KeyValue::new("rpc.grpc.status_code", i64::from(code)),
        ]);
        response
    }
}

/// Begins a span. Without a valid `traceparent`, it begins a trace.
fn begin(kind: SpanKind, name: &'static str, traceparent: Option<&str>) -> Option<Span> {
    let tracer = TRACER.get()?;
    let valid = traceparent.filter(|it| it.len() <= TRACEPARENT_BYTES_MAX);
    let headers = valid.map(|it| ("traceparent".to_owned(), it.to_owned()));
    let headers: HashMap<String, String> = headers.into_iter().collect();
    let parent = TraceContextPropagator::new().extract_with_context(&Context::new(), &headers);
    let span = tracer.span_builder(name).with_kind(kind);
    Some(span.start_with_context(tracer, &parent))
}

/// Begins the span of a request to the parent, below the span of `trace`. Returns it with its `traceparent`.
pub(crate) fn asks(trace: Option<&str>) -> Option<(Span, String)> {
    let span = begin(SpanKind::Client, EXCHANGE, trace)?;
    let traceparent = traceparent(span.span_context());
    Some((span, traceparent))
}

/// Begins the span of a child's request.
pub(crate) fn answers(traceparent: Option<&str>) -> Option<Span> {
    begin(SpanKind::Server, EXCHANGE, traceparent)
}

/// Returns the `traceparent` of the call that is served now. It is invalid if the call has no span.
pub(crate) fn current() -> Option<String> {
    TRACER.get()?;
    Context::map_current(|it| Some(traceparent(it.span().span_context())))
}

fn traceparent(span: &SpanContext) -> String {
    let flags = span.trace_flags().to_u8();
    format!("00-{}-{}-{flags:02x}", span.trace_id(), span.span_id())
}
