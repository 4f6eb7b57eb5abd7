//! A span for each GetCapacity call. The program sets the tracer and the propagator, globally.

use std::collections::HashMap;

use opentelemetry::trace::{SpanKind, TraceContextExt, Tracer};
use opentelemetry::{Context, global};
use tonic::codegen::http::HeaderMap;
use tonic::metadata::MetadataMap;
use tonic::{Extensions, Request};

/// Begins the span of a call. Returns the request, whose metadata names the span, and the span, which ends when it is
/// dropped.
pub(super) fn outgoing<T>(message: T) -> (Request<T>, Context) {
    let tracer = global::tracer("doorward-client");
    let span = tracer.span_builder("doorman.Capacity/GetCapacity");
    let span = span.with_kind(SpanKind::Client).start(&tracer);
    let span = Context::new().with_span(span);
    let mut headers = HashMap::new();
    global::get_text_map_propagator(|it| it.inject_context(&span, &mut headers));
    let metadata = MetadataMap::from_headers(HeaderMap::try_from(&headers).unwrap_or_default());
    let request = Request::from_parts(metadata, Extensions::default(), message);
    (request, span)
}
