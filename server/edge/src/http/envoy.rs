//! `/json`: Envoy's rate limit service in the JSON form of protocol buffers, as envoyproxy/ratelimit serves it.
//!
//! Names are in camel case or as in the `.proto` file, whole numbers are numbers or texts, and null is the default. An
//! answer leaves out fields that have their default.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::{BytesRejection, JsonRejection};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use doorward_proto::envoy::ratelimit::rate_limit_descriptor::{Entry, RateLimitOverride};
use doorward_proto::envoy::ratelimit::rate_limit_response::rate_limit::Unit;
use doorward_proto::envoy::ratelimit::rate_limit_response::{Code, DescriptorStatus, RateLimit};
use doorward_proto::envoy::ratelimit::{RateLimitDescriptor, RateLimitRequest, RateLimitResponse};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::peer::Peer;
use super::problem::Problem;
use crate::edge::Edge;
use crate::rls;

pub(super) async fn answer(
    State(edge): State<Arc<Edge>>,
    peer: Peer,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    if headers.contains_key(header::ORIGIN) {
        let detail = "pages of browsers have no access";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail));
    }
    let Json(asked) = Json::<RequestForm>::from_bytes(&body.map_err(JsonRejection::from)?)?;
    let request = RateLimitRequest::try_from(asked).map_err(Problem::invalid)?;
    let answered = rls::answer(&edge, &request, &peer.asker(None)).await;
    let answered = answered.map_err(Problem::invalid)?;
    let status = match answered.overall_code() {
        Code::Ok => StatusCode::OK,
        Code::OverLimit => StatusCode::TOO_MANY_REQUESTS,
        Code::Unknown => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let mut response = (status, Json(form(&answered))).into_response();
    for added in &answered.response_headers_to_add {
        let name = HeaderName::try_from(&added.key);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(&added.value)) {
            response.headers_mut().insert(name, value);
        }
    }
    Ok(response)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct RequestForm {
    domain: Option<String>,
    descriptors: Option<Vec<DescriptorForm>>,
    #[serde(alias = "hits_addend")]
    hits_addend: Option<Whole>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct DescriptorForm {
    entries: Option<Vec<EntryForm>>,
    #[serde(alias = "hits_addend")]
    hits_addend: Option<Whole>,
    #[serde(alias = "is_negative_hits")]
    is_negative_hits: Option<bool>,
    limit: Option<IgnoredAny>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct EntryForm {
    key: Option<String>,
    value: Option<String>,
}

/// A whole number, as a number or as a text.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "Value")]
struct Whole(u64);

impl TryFrom<Value> for Whole {
    type Error = String;

    fn try_from(form: Value) -> Result<Self, String> {
        let whole = match &form {
            Value::String(text) => text.parse().ok(),
            number => number.as_u64(),
        };
        let problem = || format!("{form} is no whole number from 0 to {}", u64::MAX);
        whole.map(Self).ok_or_else(problem)
    }
}

impl TryFrom<RequestForm> for RateLimitRequest {
    type Error = String;

    fn try_from(form: RequestForm) -> Result<Self, String> {
        let hits = form.hits_addend.map_or(0, |it| it.0);
        let hits_addend = u32::try_from(hits);
        let descriptors = form.descriptors.unwrap_or_default().into_iter();
        Ok(Self {
            domain: form.domain.unwrap_or_default(),
            descriptors: descriptors.map(Into::into).collect(),
            hits_addend: hits_addend
                .map_err(|_| format!("hitsAddend: {hits} is above the largest, {}", u32::MAX))?,
        })
    }
}

impl From<DescriptorForm> for RateLimitDescriptor {
    fn from(form: DescriptorForm) -> Self {
        let entries = form.entries.unwrap_or_default().into_iter();
        let entries = entries.map(|it| Entry {
            key: it.key.unwrap_or_default(),
            value: it.value.unwrap_or_default(),
        });
        Self {
            entries: entries.collect(),
            hits_addend: form.hits_addend.map(|it| it.0),
            is_negative_hits: form.is_negative_hits.unwrap_or_default(),
            limit: form.limit.map(|_| RateLimitOverride {}),
        }
    }
}

/// Returns the form of an answer.
fn form(response: &RateLimitResponse) -> Value {
    let statuses = response.statuses.iter().map(status);
    let headers = response.response_headers_to_add.iter();
    let headers = headers.map(|it| json!({"key": it.key, "value": it.value}));
    without_defaults(json!({
        "overallCode": response.overall_code().as_str_name(),
        "statuses": statuses.collect::<Vec<_>>(),
        "responseHeadersToAdd": headers.collect::<Vec<_>>(),
    }))
}

fn status(status: &DescriptorStatus) -> Value {
    without_defaults(json!({
        "code": status.code().as_str_name(),
        "currentLimit": status.current_limit.as_ref().map(limit),
        "limitRemaining": status.limit_remaining,
        "durationUntilReset": status.duration_until_reset.map(|it| it.to_string()),
    }))
}

fn limit(limit: &RateLimit) -> Value {
    let unit = Some(limit.unit()).filter(|unit| *unit != Unit::Unknown);
    without_defaults(json!({
        "name": limit.name,
        "requestsPerUnit": limit.requests_per_unit,
        "unit": unit.map(|unit| unit.as_str_name()),
    }))
}

fn without_defaults(mut form: Value) -> Value {
    let defaults = [Value::Null, json!(0), json!(""), json!([])];
    if let Some(fields) = form.as_object_mut() {
        fields.retain(|_, value| !defaults.contains(value));
    }
    form
}
