//! Spans of OpenTelemetry, in builds with the feature `otel`. Other builds have `otel/off.rs` in its place.
//!
//! - Every gRPC call has a span. The header `traceparent` names its parent.
//! - Requests between servers are messages on a stream, so the message has the `traceparent`. The child has a span from
//!   the request to the answer, and the parent from the message to its answer. If a client's call waits for the answer,
//!   the child's span is below that of the call. So the first request of a client is one trace up to the root.
//! - Spans are made with the API of OpenTelemetry. Spans of `tracing` would change the log.
//!
//! A process has one tracer, because it has one server.

use std::collections::HashMap;
use std::sync::OnceLock;

use doorward_door::calls::CallService;
use doorward_door::request_body::RequestBody;
use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{FutureExt, Span as _, SpanContext, SpanKind};
use opentelemetry::trace::{TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracer;
use tonic::Status as RpcStatus;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};

use crate::methods;

/// Longest `traceparent` that is read. Today's version has 55 bytes, and a later one may have more.
const TRACEPARENT_BYTES_MAX: usize = 128;

/// Name of the spans of a request between servers.
const EXCHANGE: &str = "doorman.GetServerCapacityRequest";

static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// Makes spans from now on. The first tracer counts.
pub(crate) fn start(tracer: SdkTracer) {
    let _is_first = TRACER.set(tracer);
}

/// A span, which ends when it is dropped.
pub(crate) type Span = opentelemetry_sdk::trace::Span;

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
