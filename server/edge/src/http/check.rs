//! `/v1/check` and `/v1/charge`: decisions about requests, and their settlement.
//!
//! A body has either `entries`, keys with their values, for each rule whose keys are all among them; or `descriptors`,
//! which find their rules as those of Envoy do. Without a `cost`, the units are those of the rule. A cost of 0 only
//! looks.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use doorward::rules::{Advice, Decision, Descriptor, Entry, Settled, Why};
use serde::{Deserialize, Serialize};

use super::peer::Peer;
use super::problem::{Body, Problem, jitter, whole_seconds};
use crate::asker::Asker;
use crate::caller::RETRY_IN;
use crate::edge::{Asked, Edge};
use crate::rls;

/// Largest number of entries of a request.
const ENTRIES_MAX: usize = 100;

/// Body of a request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Form {
    domain: String,
    entries: Option<BTreeMap<String, String>>,
    descriptors: Option<Vec<Vec<EntryForm>>>,
    /// Units; negative in a charge only.
    cost: Option<i64>,
    client: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EntryForm {
    key: String,
    value: String,
}

/// Decision as a body. An absent amount or time does not exist.
#[derive(Debug, Serialize)]
struct Answer<'a> {
    allowed: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    remaining: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reset_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<&'a str>,
    reason: String,
    /// Action of the rule, if it is neither to serve nor to reject.
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<&'static str>,
}

pub(super) async fn check(
    State(edge): State<Arc<Edge>>,
    peer: Peer,
    body: Body<Form>,
) -> Result<Response, Problem> {
    let Json(form) = body?;
    if form.cost.is_some_and(i64::is_negative) {
        let detail = "cost: is negative; give units back by /v1/charge";
        return Err(Problem::invalid(detail));
    }
    let (entries, caller) = (form.entries(&edge)?, peer.asker(form.client.clone()));
    let descriptors = descriptors(&entries);
    Ok(answer(
        &edge.decide(&form.asked(&descriptors, &caller)).await,
    ))
}

pub(super) async fn charge(
    State(edge): State<Arc<Edge>>,
    peer: Peer,
    body: Body<Form>,
) -> Result<StatusCode, Problem> {
    let Json(form) = body?;
    let (entries, caller) = (form.entries(&edge)?, peer.asker(form.client.clone()));
    let descriptors = descriptors(&entries);
    let settled = match form.cost {
        Some(..0) => Settled::Refund,
        Some(0..) | None => Settled::Charge,
    };
    edge.settle(&form.asked(&descriptors, &caller), settled)
        .await;
    Ok(StatusCode::NO_CONTENT)
}

impl Form {
    fn asked<'a>(&'a self, descriptors: &'a [Descriptor<'a>], caller: &'a Asker) -> Asked<'a> {
        Asked {
            domain: &self.domain,
            descriptors,
            hits: self.cost.map(i64::unsigned_abs),
            caller,
        }
    }

    /// Returns the entries of each descriptor.
    fn entries(&self, edge: &Edge) -> Result<Vec<Vec<Entry<'_>>>, Problem> {
        let alone = self.descriptors.as_ref().filter(|_| self.entries.is_none());
        rls::check(&self.domain, alone.map_or(1, Vec::len)).map_err(Problem::invalid)?;
        let problem = match (&self.entries, &self.descriptors) {
            (Some(values), None) if values.len() <= ENTRIES_MAX => {
                return Ok(edge.limiter().descriptors(&self.domain, values));
            }
            (None, Some(all)) => return Ok(all.iter().map(|it| entries(it)).collect()),
            (Some(values), None) => {
                let count = values.len();
                format!("entries: there are {count}; give at most {ENTRIES_MAX}")
            }
            _ => "give either `entries` or `descriptors`".to_owned(),
        };
        Err(Problem::invalid(problem))
    }
}

fn entries(descriptor: &[EntryForm]) -> Vec<Entry<'_>> {
    let entries = descriptor.iter().map(|it| Entry {
        key: &it.key,
        value: Some(it.value.as_bytes()),
    });
    entries.collect()
}

fn descriptors<'a>(entries: &'a [Vec<Entry<'a>>]) -> Vec<Descriptor<'a>> {
    let descriptors = entries.iter().map(|entries| Descriptor {
        entries,
        hits: None,
    });
    descriptors.collect()
}

fn answer(decision: &Decision) -> Response {
    let wait = match decision.why {
        _ if decision.is_allowed => None,
        Why::NoLease => Some(RETRY_IN),
        _ => decision.retry_after(),
    };
    let jitter = wait.map(jitter).unwrap_or_default();
    let retry_after = wait.map(|wait| wait.saturating_add(jitter));
    let body = Answer {
        allowed: decision.is_allowed,
        remaining: decision.remaining(),
        limit: decision.limit().map(|limit| limit.floor()),
        reset_seconds: decision.reset().map(|reset| reset.as_secs_f64()),
        retry_after_seconds: retry_after.map(|wait| wait.as_secs_f64()),
        rule: decision.rule().map(|rule| rule.path.as_str()),
        reason: decision.why.to_string(),
        action: match decision.advice {
            Advice::Degrade => Some("degrade"),
            Advice::Drop => Some("drop"),
            Advice::Redirect => Some("redirect"),
            Advice::Proceed | Advice::ProceedAfter(_) | Advice::Reject => None,
        },
    };
    let status = decision.http_status().map(StatusCode::from_u16);
    let status = status.and_then(Result::ok).unwrap_or(StatusCode::OK);
    let mut response = (status, Json(body)).into_response();
    let headers = response.headers_mut();
    if let Some(wait) = retry_after {
        headers.insert(header::RETRY_AFTER, whole_seconds(wait).into());
    }
    for (name, value) in decision.headers(jitter) {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.insert(name, value);
        }
    }
    response
}
