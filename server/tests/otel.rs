//! Telemetry of servers and clients, as an OpenTelemetry collector gets it. The test is the collector.
//!
//! Servers and clients have sent their spans when they have stopped, so the tests wait for nothing else.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, helpers included"
)]

#[path = "it/driven_child.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod driven_child;
#[path = "it/running.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod running;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{ChildStderr, Command, Stdio};
use std::sync::LazyLock;

use doorward::Client;
use doorward_proto::doorman::GetServerCapacityRequest;
use doorward_proto::doorman::capacity_client::CapacityClient;
use opentelemetry::global;
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{NumberDataPoint, number_data_point};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tempfile::NamedTempFile;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};

use crate::driven_child::{Child, ask, wants};
use crate::running::{PATIENCE, asked, get, gets, without_node};

/// Name of a call's span at both ends.
const GET_CAPACITY: &str = "doorman.Capacity/GetCapacity";

/// Name of the span of a request between servers, at both ends.
const EXCHANGE: &str = "doorman.GetServerCapacityRequest";

/// Receiver of all telemetry.
#[derive(Clone)]
struct Service {
    spans: mpsc::UnboundedSender<Sent>,
    metrics: mpsc::UnboundedSender<ExportMetricsServiceRequest>,
}

/// A span, and the service and the instance that sent it.
#[derive(Debug)]
struct Sent {
    service: String,
    instance: String,
    span: Span,
}

struct Collector {
    address: String,
    spans: mpsc::UnboundedReceiver<Sent>,
    metrics: mpsc::UnboundedReceiver<ExportMetricsServiceRequest>,
}

impl Collector {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (spans, sent_spans) = mpsc::unbounded_channel();
        let (metrics, sent_metrics) = mpsc::unbounded_channel();
        let service = Service { spans, metrics };
        let server = tonic::transport::Server::builder()
            .add_service(TraceServiceServer::new(service.clone()))
            .add_service(MetricsServiceServer::new(service))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(server);
        Self {
            address,
            spans: sent_spans,
            metrics: sent_metrics,
        }
    }

    /// Returns all spans since the last call.
    fn take_spans(&mut self) -> Vec<Sent> {
        std::iter::from_fn(|| self.spans.try_recv().ok()).collect()
    }
}

#[tonic::async_trait]
impl TraceService for Service {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        for of_resource in request.into_inner().resource_spans {
            let resource = of_resource.resource.unwrap();
            let spans = of_resource.scope_spans.into_iter();
            for span in spans.flat_map(|it| it.spans) {
                let sent = Sent {
                    service: attribute(&resource, "service.name"),
                    instance: attribute(&resource, "service.instance.id"),
                    span,
                };
                self.spans.send(sent).unwrap();
            }
        }
        Ok(Response::new(Default::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Service {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        self.metrics.send(request.into_inner()).unwrap();
        Ok(Response::new(Default::default()))
    }
}

/// Returns an attribute of a resource, or nothing.
fn attribute(of: &Resource, key: &str) -> String {
    let found = of.attributes.iter().find(|it| it.key == key);
    found.map(value).unwrap_or_default()
}

fn value(attribute: &KeyValue) -> String {
    match attribute.value.as_ref().and_then(|it| it.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        other => panic!("no text: {other:?}"),
    }
}

/// Templates of the root: 100 of each resource, without learning mode.
static TEMPLATES: LazyLock<NamedTempFile> = LazyLock::new(|| {
    let mut file = NamedTempFile::with_suffix(".yaml").unwrap();
    let text = "resources:\n- identifier_glob: \"*\"\n  capacity: 100\n  algorithm:\n    kind: FAIR_SHARE\n    \
                lease_length: 60\n    refresh_interval: 5\n    learning_mode_duration: 0\n";
    file.write_all(text.as_bytes()).unwrap();
    file
});

/// A server process that sends telemetry. It is killed when dropped.
struct Process {
    child: std::process::Child,
    logs: BufReader<ChildStderr>,
    grpc: String,
    pages: String,
}

impl Process {
    /// Starts a root.
    fn root(collector: &str) -> Self {
        let templates = TEMPLATES.path().to_str().unwrap();
        Self::start(collector, &["--templates", templates])
    }

    fn start(collector: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_doorward-server"))
            .args(["--listen", "127.0.0.1:0", "--http-listen", "127.0.0.1:0"])
            .args(["--refresh-floor", "0s", "--log-format", "json"])
            .args(["--otlp", &format!("http://{collector}")])
            .args(arguments)
            .env_clear()
            .env("OTEL_METRIC_EXPORT_INTERVAL", "50")
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let logs = BufReader::new(child.stderr.take().unwrap());
        let mut process = Self {
            child,
            logs,
            grpc: String::new(),
            pages: String::new(),
        };
        let serving = process.wait_for_log("serving gRPC");
        process.grpc = serving["grpc"].as_str().unwrap().to_owned();
        let pages = process.wait_for_log("status page at http://");
        let pages = pages["message"].as_str().unwrap().rsplit('/').nth(1);
        process.pages = pages.unwrap().to_owned();
        process
    }

    /// Reads the log up to the line with that message.
    fn wait_for_log(&mut self, message: &str) -> serde_json::Value {
        loop {
            let mut line = String::new();
            self.logs.read_line(&mut line).unwrap();
            let entry: serde_json::Value = serde_json::from_str(&line).expect(message);
            if entry["message"].as_str().unwrap().starts_with(message) {
                return entry;
            }
        }
    }

    async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.grpc));
        endpoint.unwrap().connect().await.unwrap()
    }

    /// Returns a page.
    fn page(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.pages).unwrap();
        let host = &self.pages;
        let head = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }

    /// Stops the server, which sends its last spans. Returns the rest of its log.
    fn stop(mut self) -> String {
        let id = self.child.id().to_string();
        Command::new("kill").arg(id).status().unwrap();
        let mut rest = String::new();
        self.logs.read_to_string(&mut rest).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(0), "{rest}");
        rest
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sets the tracer of clients in this process.
fn trace_clients(collector: &str) -> SdkTracerProvider {
    let endpoint = format!("http://{collector}");
    let exporter = SpanExporter::builder().with_tonic();
    let exporter = exporter.with_endpoint(endpoint).build().unwrap();
    let resource = opentelemetry_sdk::Resource::builder().with_service_name("frontend");
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource.build())
        .build();
    global::set_tracer_provider(provider.clone());
    global::set_text_map_propagator(TraceContextPropagator::new());
    provider
}

/// Returns the span of this kind and parent that this server sent.
#[track_caller]
fn child_of<'a>(
    parent: &Span,
    spans: &'a [Sent],
    (instance, kind, name): (&str, SpanKind, &str),
) -> &'a Span {
    let found = spans.iter().find(|it| {
        it.span.parent_span_id == parent.span_id
            && it.instance.starts_with(instance)
            && it.span.kind == kind as i32
            && it.span.name == name
    });
    let found = found.unwrap_or_else(|| panic!("no {kind:?} {name} of {instance} in {spans:#?}"));
    assert_eq!(found.span.trace_id, parent.trace_id);
    assert!(found.span.end_time_unix_nano >= found.span.start_time_unix_nano);
    &found.span
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clients_first_request_is_one_trace_through_the_leaf_to_the_root() {
    let mut collector = Collector::start().await;
    let provider = trace_clients(&collector.address);
    let root = Process::root(&collector.address);
    let arguments = ["--node", "eu", "--parent", &root.grpc];
    let mut leaf = Process::start(&collector.address, &arguments);
    leaf.wait_for_log("the parent answers");
    let client = Client::builder().id("a").address(leaf.grpc.clone());
    let client = client.connect().await.unwrap();
    let resource = client.resource("r").wants(30.0).open().unwrap();
    let lease = resource.wait_for_lease(PATIENCE).await.unwrap();
    assert_eq!(lease.get(), 30.0);
    client.close().await;
    leaf.stop();
    root.stop();
    let flush = move || provider.shutdown();
    tokio::task::spawn_blocking(flush).await.unwrap().unwrap();

    let spans = collector.take_spans();
    let mut of_client = spans.iter().filter(|it| it.service == "frontend");
    let first = &of_client.next().expect("a call").span;
    assert_eq!(
        (first.name.as_str(), first.kind),
        (GET_CAPACITY, SpanKind::Client as i32)
    );
    let at_leaf = child_of(
        first,
        &spans,
        ("eu@127.0.0.1:", SpanKind::Server, GET_CAPACITY),
    );
    let code = at_leaf
        .attributes
        .iter()
        .find(|it| it.key == "rpc.grpc.status_code");
    let code = code.and_then(|it| it.value.clone()?.value);
    assert_eq!(code, Some(any_value::Value::IntValue(0)));
    let up = child_of(at_leaf, &spans, ("eu@", SpanKind::Client, EXCHANGE));
    let at_root = child_of(up, &spans, ("root@127.0.0.1:", SpanKind::Server, EXCHANGE));
    // The answer ends the spans, in this order.
    let ends = [at_root, up, at_leaf, first].map(|it| it.end_time_unix_nano);
    assert!(ends.is_sorted(), "{ends:?}");
    // Other requests of the leaf are traces of their own.
    let others = spans
        .iter()
        .filter(|it| it.span.name == EXCHANGE && it.span.trace_id != first.trace_id);
    for Sent { span, .. } in others.filter(|it| it.span.kind == SpanKind::Client as i32) {
        assert!(span.parent_span_id.is_empty(), "{span:?}");
    }
    let servers = spans.iter().filter(|it| it.service == "doorward-server");
    assert!(servers.count() > 3);
}

/// Returns the values of metrics in text, by name and labels.
fn values_of_text(text: &str) -> BTreeMap<String, f64> {
    let samples = text.lines().filter(|it| !it.starts_with('#'));
    let samples = samples.map(|line| line.rsplit_once(' ').unwrap());
    samples
        .map(|(series, value)| (series.to_owned(), value.parse().unwrap()))
        .collect()
}

/// Adds the values of a message of the root, by name and labels, as in text.
fn add_values(values: &mut BTreeMap<String, f64>, request: ExportMetricsServiceRequest) {
    let mut add = |name: &str, attributes: &[KeyValue], value| {
        let labels = attributes.iter().filter(|it| it.key != "node");
        let labels = labels.map(|it| format!("{}={:?}", it.key, self::value(it)));
        let labels = labels.collect::<Vec<_>>().join(",");
        let of = if labels.is_empty() {
            labels
        } else {
            format!("{{{labels}}}")
        };
        values.insert(format!("{name}{of}"), value);
    };
    let number = |it: &NumberDataPoint| match it.value {
        Some(number_data_point::Value::AsDouble(value)) => value,
        other => panic!("{other:?}"),
    };
    for of_resource in request.resource_metrics {
        let resource = of_resource.resource.unwrap();
        assert_eq!(attribute(&resource, "service.name"), "doorward-server");
        assert!(attribute(&resource, "service.instance.id").starts_with("root@127.0.0.1:"));
        for metric in of_resource
            .scope_metrics
            .into_iter()
            .flat_map(|it| it.metrics)
        {
            let name = &metric.name;
            match metric.data.unwrap() {
                Data::Gauge(gauge) => {
                    gauge
                        .data_points
                        .iter()
                        .for_each(|it| add(name, &it.attributes, number(it)));
                }
                Data::Sum(sum) => {
                    sum.data_points
                        .iter()
                        .for_each(|it| add(name, &it.attributes, number(it)));
                }
                Data::Histogram(histogram) => {
                    for it in histogram.data_points {
                        let count = it.bucket_counts.iter().sum::<u64>();
                        assert_eq!(count, it.count);
                        add(&format!("{name}_count"), &it.attributes, count as f64);
                    }
                }
                other => panic!("{other:?}"),
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_collector_gets_the_metrics_of_the_page() {
    let mut collector = Collector::start().await;
    let server = Process::root(&collector.address);
    let mut client = CapacityClient::new(server.channel().await);
    assert_eq!(gets(&mut client, "a", asked("r", 30.0)).await, 30.0);
    let page = values_of_text(&without_node(&server.page("/metrics"), "root"));
    let compared = [
        "doorward_templates",
        "doorward_resource_wants{resource=\"r\"}",
        "doorward_decisions_total",
        "doorward_rpcs_total{method=\"doorman.Capacity/GetCapacity\",code=\"OK\"}",
        "doorward_rpc_duration_seconds_count{method=\"doorman.Capacity/GetCapacity\"}",
        &format!(
            "doorward_build_info{{version={:?}}}",
            env!("CARGO_PKG_VERSION")
        ),
    ];
    for series in compared {
        assert!(page.contains_key(series), "{series}: {page:#?}");
    }
    // Of a histogram, only the count is compared.
    let is_part = |series: &str| series.contains("_bucket{") || series.contains("_sum");
    let mut sent = BTreeMap::new();
    while page.iter().any(|(series, value)| match sent.get(series) {
        Some(sent) => compared.contains(&&**series) && sent != value,
        None => !is_part(series),
    }) {
        let request = tokio::time::timeout(PATIENCE, collector.metrics.recv()).await;
        let request = request.unwrap_or_else(|_| panic!("{sent:#?}, not {page:#?}"));
        add_values(&mut sent, request.unwrap());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_and_stops_do_not_wait_for_a_collector_that_does_not_answer() {
    // The one accepts connections and never answers. The other is gone.
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addresses = [&silent, &gone].map(|it| it.local_addr().unwrap().to_string());
    drop(gone);
    for address in &addresses {
        let server = Process::root(address);
        let mut client = CapacityClient::new(server.channel().await);
        // More calls than the queue has room for their spans.
        for number in 0..3_000 {
            let answer = get(
                &mut client,
                &format!("client-{number}"),
                vec![asked("r", 1.0)],
            )
            .await;
            assert_eq!(answer.refused, []);
        }
        assert_eq!(server.page("/readyz"), "ready\n");
        let stopped = tokio::task::spawn_blocking(|| server.stop());
        let log = tokio::time::timeout(PATIENCE, stopped)
            .await
            .unwrap()
            .unwrap();
        if *address == addresses[1] {
            let warnings = log
                .matches("the OpenTelemetry collector takes no metrics")
                .count();
            assert_eq!(warnings, 1, "{log}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_childs_request_without_a_valid_trace_starts_one_and_is_answered() {
    let mut collector = Collector::start().await;
    let server = Process::root(&collector.address);
    let mut child = Child::open_on(server.channel().await).await;
    let valid = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let given = ["nonsense", &"-".repeat(100_000), valid].map(|it| Some(it.to_owned()));
    for (sequence, traceparent) in (1..).zip([None].into_iter().chain(given)) {
        let request = ask("eu", sequence, vec![wants("r", 10.0, 1)]);
        let request = GetServerCapacityRequest {
            traceparent,
            ..request
        };
        assert_eq!(child.gets(request).await, 10.0);
    }
    drop(child);
    server.stop();
    let spans = collector.take_spans();
    let exchanges = spans.iter().filter(|it| it.span.name == EXCHANGE);
    let parents: Vec<_> = exchanges
        .map(|it| it.span.parent_span_id.as_slice())
        .collect();
    let named = [0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31];
    assert_eq!(parents, [&[][..], &[], &[], &named]);
}
