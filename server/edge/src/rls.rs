//! Envoy's rate limit service (RLS): a call for each request that Envoy limits.
//!
//! A descriptor with 0 units only looks. One with negative units gives them back, at most those that the same caller
//! took. A limit in a descriptor is ignored. Shared limits are divided fairly among
//! callers: a caller is an identity, with the value of the metadata `x-doorward-client`; without an identity, that value
//! or an address.

use std::sync::Arc;
use std::time::Duration;

use doorward::rules::{Decision, Descriptor, Entry, Settled, Status as RuleStatus, rule::Counted};
use doorward_proto::envoy::ratelimit::rate_limit_response::rate_limit::Unit;
use doorward_proto::envoy::ratelimit::rate_limit_response::{Code, DescriptorStatus, RateLimit};
use doorward_proto::envoy::ratelimit::rate_limit_service_server::RateLimitService;
use doorward_proto::envoy::ratelimit::{
    HeaderValue, RateLimitDescriptor, RateLimitRequest, RateLimitResponse,
};
use tonic::{Request, Response, Status};

use crate::asker::Asker;
use crate::clock;
use crate::edge::{Asked, Edge};

/// Metadata with the name of a caller.
pub const CLIENT: &str = "x-doorward-client";

/// Answer of all doors before the rules have been read.
pub(crate) const NOT_LOADED: &str =
    "there are no rules: none are read yet, or all are invalid; see the log";

/// Largest number of descriptors of a request.
pub const DESCRIPTORS_MAX: usize = 100;

/// Longest random addition to the wait of a refused caller.
const JITTER_MAX: Duration = Duration::from_secs(1);

/// The service.
#[derive(Clone, Debug)]
pub struct Rls {
    edge: Arc<Edge>,
}

impl Rls {
    /// Serves decisions of an edge.
    pub const fn new(edge: Arc<Edge>) -> Self {
        Self { edge }
    }

    /// Answers a caller.
    ///
    /// # Errors
    ///
    /// `UNAVAILABLE` before rules are read, `INVALID_ARGUMENT` if the request is invalid.
    pub async fn answer(
        &self,
        request: &RateLimitRequest,
        caller: &Asker,
    ) -> Result<RateLimitResponse, Status> {
        if !self.edge.is_loaded() {
            return Err(Status::unavailable(NOT_LOADED));
        }
        let answer = answer(&self.edge, request, caller).await;
        answer.map_err(Status::invalid_argument)
    }
}

#[tonic::async_trait]
impl RateLimitService for Rls {
    async fn should_rate_limit(
        &self,
        request: Request<RateLimitRequest>,
    ) -> Result<Response<RateLimitResponse>, Status> {
        let caller = caller_of(&request);
        let answer = self.answer(request.get_ref(), &caller).await?;
        Ok(Response::new(answer))
    }
}

/// Returns a call's caller.
pub(crate) fn caller_of<T>(request: &Request<T>) -> Asker {
    let named = request.metadata().get(CLIENT);
    let named = named.and_then(|name| name.to_str().ok());
    let (identity, address) = (request.extensions().get(), request.extensions().get());
    Asker::new(named, identity, address)
}

/// Answers a request, also as JSON.
///
/// # Errors
///
/// If it is invalid, with the remedy.
pub async fn answer(
    edge: &Arc<Edge>,
    request: &RateLimitRequest,
    caller: &Asker,
) -> Result<RateLimitResponse, String> {
    check(&request.domain, request.descriptors.len())?;
    if request.descriptors.iter().any(|it| it.limit.is_some()) {
        edge.tell_once(&request.domain, "limits in requests are ignored");
    }
    let entries: Vec<Vec<Entry<'_>>> = request.descriptors.iter().map(entries).collect();
    let descriptors = |gives_back: bool| {
        let all = request.descriptors.iter().zip(&entries);
        let chosen = all.filter(move |(it, _)| it.is_negative_hits == gives_back);
        let descriptors = chosen.map(|(it, entries)| Descriptor {
            entries,
            hits: it.hits_addend,
        });
        descriptors.collect::<Vec<_>>()
    };
    let hits = Some(u64::from(request.hits_addend)).filter(|hits| *hits > 0);
    let of = |descriptors| Asked {
        domain: &request.domain,
        descriptors,
        hits,
        caller,
    };
    let (taken, given_back) = (descriptors(false), descriptors(true));
    if taken.is_empty() {
        edge.settle(&of(&given_back), Settled::Refund).await;
        return Ok(RateLimitResponse {
            overall_code: Code::Ok.into(),
            statuses: vec![given_back_status(); given_back.len()],
            response_headers_to_add: Vec::new(),
        });
    }
    let decision = edge.decide(&of(&taken)).await;
    if decision.is_allowed && !given_back.is_empty() {
        edge.settle(&of(&given_back), Settled::Refund).await;
    }
    Ok(response(request, &decision))
}

/// Refuses a request without a domain, or without descriptors, or with too many.
pub(crate) fn check(domain: &str, descriptors: usize) -> Result<(), String> {
    Err(match descriptors {
        _ if domain.is_empty() => "domain: is empty; give that of the rules".to_owned(),
        0 => "descriptors: is empty; give at least one".to_owned(),
        1..=DESCRIPTORS_MAX => return Ok(()),
        count => format!("descriptors: there are {count}; give at most {DESCRIPTORS_MAX}"),
    })
}

fn entries(descriptor: &RateLimitDescriptor) -> Vec<Entry<'_>> {
    let entries = descriptor.entries.iter();
    let entries = entries.map(|it| Entry {
        key: &it.key,
        value: Some(it.value.as_bytes()),
    });
    entries.collect()
}

fn response(request: &RateLimitRequest, decision: &Decision) -> RateLimitResponse {
    let mut decided = decision.statuses.iter();
    let statuses = request.descriptors.iter();
    let statuses = statuses.map(|it| match it.is_negative_hits {
        true => given_back_status(),
        false => decided.next().map(status).unwrap_or_default(),
    });
    let jitter = JITTER_MAX.mul_f64(clock::chance());
    let headers = decision.headers(jitter).into_iter();
    let headers = headers.map(|(key, value)| HeaderValue {
        key: key.to_owned(),
        value,
    });
    RateLimitResponse {
        overall_code: code(!decision.is_allowed).into(),
        statuses: statuses.collect(),
        response_headers_to_add: headers.collect(),
    }
}

fn given_back_status() -> DescriptorStatus {
    DescriptorStatus {
        code: Code::Ok.into(),
        ..DescriptorStatus::default()
    }
}

fn status(status: &RuleStatus) -> DescriptorStatus {
    let counted = status.rule.as_ref().and_then(|rule| rule.counted());
    let name = status.rule.as_ref().and_then(|rule| rule.name.clone());
    DescriptorStatus {
        code: code(status.is_over).into(),
        current_limit: counted.map(|counted| limit(counted, name.unwrap_or_default())),
        limit_remaining: u32::try_from(status.remaining()).unwrap_or(u32::MAX),
        duration_until_reset: status.reset().and_then(|reset| reset.try_into().ok()),
    }
}

const fn code(is_over: bool) -> Code {
    match is_over {
        true => Code::OverLimit,
        false => Code::Ok,
    }
}

/// Returns the limit of a rule. A window that Envoy has no unit for is of unknown unit.
fn limit(counted: &Counted, name: String) -> RateLimit {
    let seconds = |seconds: u64| seconds * 1_000_000_000;
    let unit = match counted.rate.period().get() {
        it if it == seconds(1) => Unit::Second,
        it if it == seconds(60) => Unit::Minute,
        it if it == seconds(3_600) => Unit::Hour,
        it if it == seconds(86_400) => Unit::Day,
        it if it == seconds(7 * 86_400) => Unit::Week,
        it if it == seconds(30 * 86_400) => Unit::Month,
        it if it == seconds(365 * 86_400) => Unit::Year,
        _ => Unit::Unknown,
    };
    RateLimit {
        name,
        requests_per_unit: u32::try_from(counted.rate.amount().floor()).unwrap_or(u32::MAX),
        unit: unit.into(),
    }
}
