//! `/json`: Envoy's rate limit service in the JSON form of protocol buffers, as envoyproxy/ratelimit serves it.
//!
//! Names are in camel case or as in the `.proto` file, whole numbers are numbers or texts, and null is the default. An
//! answer leaves out fields that have their default.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use doorward_proto::envoy::ratelimit::rate_limit_descriptor::{Entry, RateLimitOverride};
use doorward_proto::envoy::ratelimit::rate_limit_response::rate_limit::Unit;
use doorward_proto::envoy::ratelimit::rate_limit_response::{Code, DescriptorStatus, RateLimit};
use doorward_proto::envoy::ratelimit::{RateLimitDescriptor, RateLimitRequest, RateLimitResponse};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::peer::Peer;
use super::problem::Problem;
use crate::edge::Edge;
use crate::rls;

pub(super) async fn json(
    State(edge): State<Arc<Edge>>,
    peer: Peer,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    if headers.contains_key(header::ORIGIN) {
        let detail = "pages of browsers have no access";
        return Err(Problem::new(StatusCode::FORBIDDEN, detail.to_owned()));
    }
    let Json(form) = Json::<RequestForm>::from_bytes(&body?)?;
    let request = RateLimitRequest::try_from(form).map_err(Problem::invalid)?;
    let answered = rls::answer(&edge, &request, &peer.asker(None)).await;
    let answered = answered.map_err(Problem::invalid)?;
    let status = match answered.overall_code() {
        Code::Ok => StatusCode::OK,
        Code::OverLimit => StatusCode::TOO_MANY_REQUESTS,
        Code::Unknown => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let mut response = (status, Json(ResponseForm::from(&answered))).into_response();
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

/// A whole number.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(try_from = "NumberForm")]
struct Whole(u64);

#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "expected a whole number, as a number or as a text"
)]
enum NumberForm {
    Number(Number),
    Text(String),
}

impl TryFrom<NumberForm> for Whole {
    type Error = String;

    fn try_from(form: NumberForm) -> Result<Self, String> {
        let number = match &form {
            NumberForm::Number(number) => Some(number.clone()),
            NumberForm::Text(text) if text.trim() != text => None,
            NumberForm::Text(text) => serde_json::from_str(text).ok(),
        };
        let whole = number.as_ref().and_then(whole);
        let largest = u64::MAX;
        whole.map(Self).ok_or_else(|| match form {
            NumberForm::Number(it) => format!("{it} is no whole number from 0 to {largest}"),
            NumberForm::Text(it) => format!("{it:?} is no whole number from 0 to {largest}"),
        })
    }
}

/// Returns the value of a number that is whole, also if it is written as `1.0` or `1e2`.
fn whole(number: &Number) -> Option<u64> {
    /// 2⁶⁴.
    const END: f64 = u64::MAX as f64;
    number.as_u64().or_else(|| {
        let value = number.as_f64()?;
        let is_whole = value.fract() == 0.0 && (0.0..END).contains(&value);
        is_whole.then_some(value as u64)
    })
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

fn is_zero(number: &u32) -> bool {
    *number == 0
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ResponseForm<'a> {
    overall_code: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    statuses: Vec<StatusForm<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    response_headers_to_add: Vec<HeaderForm<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusForm<'a> {
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    current_limit: Option<LimitForm<'a>>,
    #[serde(skip_serializing_if = "is_zero")]
    limit_remaining: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_until_reset: Option<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LimitForm<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    name: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    requests_per_unit: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    unit: Option<&'static str>,
}

#[derive(Debug, Serialize)]
struct HeaderForm<'a> {
    key: &'a str,
    value: &'a str,
}

impl<'a> From<&'a RateLimitResponse> for ResponseForm<'a> {
    fn from(response: &'a RateLimitResponse) -> Self {
        let headers = response.response_headers_to_add.iter();
        let headers = headers.map(|it| HeaderForm {
            key: &it.key,
            value: &it.value,
        });
        Self {
            overall_code: response.overall_code().as_str_name(),
            statuses: response.statuses.iter().map(Into::into).collect(),
            response_headers_to_add: headers.collect(),
        }
    }
}

impl<'a> From<&'a DescriptorStatus> for StatusForm<'a> {
    fn from(status: &'a DescriptorStatus) -> Self {
        Self {
            code: status.code().as_str_name(),
            current_limit: status.current_limit.as_ref().map(Into::into),
            limit_remaining: status.limit_remaining,
            duration_until_reset: status.duration_until_reset.map(|it| it.to_string()),
        }
    }
}

impl<'a> From<&'a RateLimit> for LimitForm<'a> {
    fn from(limit: &'a RateLimit) -> Self {
        let unit = Some(limit.unit()).filter(|unit| *unit != Unit::Unknown);
        Self {
            name: &limit.name,
            requests_per_unit: limit.requests_per_unit,
            unit: unit.map(|unit| unit.as_str_name()),
        }
    }
}
