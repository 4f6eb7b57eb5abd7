//! Requests of child servers and answers of parents: conversion between the wire and the engine, in both directions.

use std::collections::BTreeSet;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::claims::{BandDemand, Subclients};
use doorward_engine::division::ParentTerms;
use doorward_engine::id::{HolderName, Incarnation, MastershipId, ResourceId};
use doorward_engine::messages::{
    GetServerCapacity, GetServerCapacityReply, Refusal, RefusalReason, ReportedLeases, ServerAsk,
    ServerLease,
};
use doorward_engine::templates::{DURATION_MAX, HolderBounds, SafeCapacity};
use doorward_proto::budget;
use doorward_proto::doorman as wire;
use doorward_session::visible;
use prost::Message;

use super::{
    algorithm, amount, amount_if_given, lease_message, millis, millis_up, refusal_message,
};
use crate::rpc::MESSAGE_BYTES_MAX;

mod read_request;

pub use read_request::ReadRequest;

/// Most priority bands of one resource, in a child's request and in its answer.
const BANDS_MAX: usize = 1_000;

/// Most masterships of one node that are kept apart.
const MASTERSHIPS_MAX: usize = 64;

/// Most nodes from a parent up to the root.
const ANCESTORS_MAX: usize = 64;

/// Part of a number of clients that is a rounding.
const CLIENTS_ROUNDING: f64 = 1e-10;

/// Converts a master's answer to a child, and adds the refusals of invalid resources.
pub fn get_server_capacity_response(
    reply: GetServerCapacityReply,
    mut refused: Vec<wire::Refusal>,
    wall: Duration,
) -> wire::GetServerCapacityResponse {
    refused.extend(reply.refused.into_iter().map(refusal_message));
    let leases = reply.leases.into_iter();
    wire::GetServerCapacityResponse {
        response: leases.map(|it| server_lease_message(it, wall)).collect(),
        mastership: None,
        refused,
        ancestor: reply.ancestors,
    }
}

/// Writes a lease that this server plans for a child.
pub fn planned_lease_message(lease: ServerLease) -> Vec<u8> {
    server_lease_message(lease, Duration::ZERO).encode_to_vec()
}

/// Reads a lease that the parent plans for this server.
///
/// # Errors
///
/// If it is none, with the reason.
pub fn planned_lease(message: &[u8]) -> Result<ServerLease, String> {
    let message = wire::ServerCapacityResourceResponse::decode(message);
    let message = message.map_err(|error| error.to_string())?;
    let resource = ResourceId::new(&message.resource_id);
    let resource = resource.map_err(|error| format!("resource_id {error}"))?;
    server_lease(resource, message, Duration::ZERO)
}

fn server_lease_message(
    lease: ServerLease,
    wall: Duration,
) -> wire::ServerCapacityResourceResponse {
    let band = |(priority, amount): (i64, Amount)| wire::PriorityBandGrant {
        priority,
        capacity: amount.get(),
    };
    let accounted = lease.terms.accounted.into_iter().map(MastershipId::get);
    let bounds = lease.terms.holder_bounds;
    wire::ServerCapacityResourceResponse {
        inherited: lease.terms.inherited.map(Amount::get),
        accounted: accounted.collect(),
        resource_id: lease.resource.to_string(),
        gets: wire::Lease {
            granted_by: lease.granted_by.map(MastershipId::get),
            ..lease_message(lease.capacity, lease.expires_in, lease.refresh_in, wall)
        },
        algorithm: lease.algorithm.as_ref().map(algorithm::message),
        safe_capacity: lease.terms.safe_capacity.map(f64::from),
        band: lease.terms.bands.into_iter().map(band).collect(),
        sequence: lease.sequence,
        share: Some(lease.terms.share.get()),
        per_client: lease.terms.per_client.map(Amount::get),
        learning: lease.terms.learning.then_some(true),
        reserved: lease.terms.reserved.map(Amount::get),
        reserved_for_ms: lease.terms.reserved_for.map(millis),
        inherited_for_ms: lease.terms.inherited_for.map(millis_up),
        predecessor_for_ms: lease.terms.predecessor_for.map(millis_up),
        learning_for_ms: lease.terms.learning_for.map(millis_up),
        decided: lease.decided,
        safe_is_static: lease.terms.safe_is_static.then_some(true),
        wants_max: bounds.wants_max.map(Amount::get),
        subclients_max: bounds.subclients_max.map(Subclients::get),
        budget: lease.budget.as_ref().map(budget::state_message),
    }
}

/// Converts this server's own request to its parent. Splits it, because demand curves can be long and a parent refuses
/// any message above [`MESSAGE_BYTES_MAX`].
pub fn get_server_capacity_requests(
    request: &GetServerCapacity,
    wall: Duration,
) -> Vec<wire::GetServerCapacityRequest> {
    let whole = get_server_capacity_request(request, wall);
    split(whole, MESSAGE_BYTES_MAX)
}

/// Splits a message into parts of at most `bytes_max` bytes, unless a single resource is larger.
fn split(
    whole: wire::GetServerCapacityRequest,
    bytes_max: usize,
) -> Vec<wire::GetServerCapacityRequest> {
    /// Bytes of the tag and the length of a resource.
    const FRAME_BYTES: usize = 8;
    if whole.encoded_len() <= bytes_max {
        return vec![whole];
    }
    let empty = wire::GetServerCapacityRequest {
        resource: Vec::new(),
        ..whole.clone()
    };
    let mut parts = Vec::new();
    let (mut part, mut bytes) = (empty.clone(), empty.encoded_len());
    for resource in whole.resource {
        let more = resource.encoded_len() + FRAME_BYTES;
        if bytes + more > bytes_max && !part.resource.is_empty() {
            parts.push(std::mem::replace(&mut part, empty.clone()));
            bytes = empty.encoded_len();
        }
        bytes += more;
        part.resource.push(resource);
    }
    parts.push(part);
    parts
}

/// Converts this server's own request to its parent into one message.
pub fn get_server_capacity_request(
    request: &GetServerCapacity,
    wall: Duration,
) -> wire::GetServerCapacityRequest {
    let asks = request.asks.iter();
    wire::GetServerCapacityRequest {
        incarnation: request.incarnation.map(Incarnation::get),
        mastership: request.mastership.map(MastershipId::get),
        server_id: request.server.to_string(),
        resource: asks.map(|ask| server_ask_message(ask, wall)).collect(),
        sequence: request.sequence,
        height: Some(request.height),
        epoch: request.epoch,
        traceparent: None,
        address: request.address.as_ref().map(ToString::to_string),
    }
}

/// Returns a number of clients without roundings. A part of one counts as one, so that its curve is valid.
fn whole(clients: f64) -> f64 {
    (clients - CLIENTS_ROUNDING * clients.max(1.0)).ceil()
}

fn server_ask_message(ask: &ServerAsk, wall: Duration) -> wire::ServerCapacityResourceRequest {
    let band = |band: &BandDemand| wire::PriorityBandAggregate {
        priority: band.priority,
        // A whole number, and `as` saturates.
        num_clients: whole(band.clients) as i64,
        wants: band.wants.get(),
        level: band.curve.points().iter().map(|p| p.level).collect(),
        demand: band.curve.points().iter().map(|p| p.demand).collect(),
    };
    let outstanding_for = ask.outstanding.and_then(|has| has.expires_in);
    wire::ServerCapacityResourceRequest {
        reported: ask.reported.iter().map(handed_out).collect(),
        unheard: Some(ask.unreported.get()).filter(|unreported| *unreported > 0.0),
        resource_id: ask.resource.to_string(),
        has: ask.has.map(|has| {
            let lasts = has.expires_in.unwrap_or_default();
            wire::Lease {
                expires_in_ms: Some(millis_up(lasts)),
                granted_by: has.granted_by.map(MastershipId::get),
                ..lease_message(has.capacity, lasts, Duration::ZERO, wall)
            }
        }),
        wants: ask.demand.bands().iter().map(band).collect(),
        outstanding: ask.outstanding.map(|has| has.capacity.get()),
        outstanding_for_ms: outstanding_for.map(millis_up),
        learning: ask.learning.then_some(true),
        budget: ask.budget.as_ref().map(budget::word_message),
    }
}

fn handed_out(part: &ReportedLeases) -> wire::HandedOut {
    wire::HandedOut {
        granted_by: part.granted_by.map(MastershipId::get),
        capacity: part.capacity.get(),
    }
}

/// A parent's answer: its valid part, and the problems of the rest.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReadAnswer {
    /// The valid part.
    pub reply: GetServerCapacityReply,
    /// Resources whose answer is invalid, and the problem.
    pub nonsense: Vec<(ResourceId, String)>,
}

/// Parses a parent's answer. `sent_at` is the wall clock time when the request was sent. It matters for Doorman
/// servers, which send the end of a lease as absolute time.
pub fn parents_answer(response: wire::GetServerCapacityResponse, sent_at: Duration) -> ReadAnswer {
    let mut answer = ReadAnswer::default();
    for lease in response.response {
        // No server can ask for such a resource, so this is no answer to this server.
        let Ok(resource) = ResourceId::new(&lease.resource_id) else {
            continue;
        };
        match server_lease(resource.clone(), lease, sent_at) {
            Ok(lease) => answer.reply.leases.push(lease),
            Err(problem) => {
                let problem = visible::cut(&problem).into_owned();
                answer.nonsense.push((resource, problem));
            }
        }
    }
    for refused in response.refused {
        let reason = match refused.reason() {
            wire::refusal::Reason::UnknownResource => RefusalReason::UnknownResource,
            wire::refusal::Reason::NotReady => RefusalReason::NotReady,
            wire::refusal::Reason::AnotherProcess => {
                RefusalReason::AnotherProcess(span(refused.retry_in_ms()))
            }
            _ => RefusalReason::RefusedByParent,
        };
        if let Ok(resource) = ResourceId::new(refused.resource_id()) {
            answer.reply.refused.push(Refusal::new(resource, reason));
        }
    }
    let ancestors = response.ancestor.into_iter().take(ANCESTORS_MAX);
    // No node has an invalid name.
    answer.reply.ancestors = ancestors.filter(|it| HolderName::new(it).is_ok()).collect();
    answer
}

/// Adds a refusal for each resource that was asked for and is not in the answer. A Doorman server omits a resource that
/// it does not know.
pub fn refuse_unanswered(asked: &GetServerCapacity, answer: &mut ReadAnswer) {
    let reply = &mut answer.reply;
    let leased = reply.leases.iter().map(|lease| &lease.resource);
    let refused = reply.refused.iter().map(|refused| &refused.resource);
    let nonsense = answer.nonsense.iter().map(|(resource, _)| resource);
    let answered: BTreeSet<ResourceId> = leased.chain(refused).chain(nonsense).cloned().collect();
    let silent = asked.asks.iter().map(|ask| ask.resource.clone());
    let unknown = silent.filter(|resource| !answered.contains(resource));
    let unknown = unknown.map(|it| Refusal::new(it, RefusalReason::UnknownResource));
    reply.refused.extend(unknown);
}

/// Converts a time span, capped at the longest valid one.
fn span(millis: u64) -> Duration {
    Duration::from_millis(millis).min(DURATION_MAX)
}

fn server_lease(
    resource: ResourceId,
    answer: wire::ServerCapacityResourceResponse,
    sent_at: Duration,
) -> Result<ServerLease, String> {
    let algorithm = answer.algorithm.as_ref().map(algorithm::heard);
    let gets = &answer.gets;
    let capacity = amount("gets.capacity", gets.capacity)?;
    let expires_in = match gets.expires_in_ms {
        Some(millis) => span(millis),
        None => Duration::from_secs(u64::try_from(gets.expiry_time).unwrap_or_default())
            .saturating_sub(sent_at)
            .min(DURATION_MAX),
    };
    let refresh_in = match gets.refresh_in_ms {
        Some(millis) => Duration::from_millis(millis),
        None => Duration::from_secs(u64::try_from(gets.refresh_interval).unwrap_or_default())
            .max(Duration::from_secs(1)),
    };
    let share = amount_if_given("share", answer.share)?.unwrap_or(capacity);
    let per_client = amount_if_given("per_client", answer.per_client)?;
    // −1 marks unlimited; it is no amount.
    let safe_capacity = match answer.safe_capacity {
        Some(-1.0) => Some(SafeCapacity::Unlimited),
        given => amount_if_given("safe_capacity", given)?.map(SafeCapacity::Limited),
    };
    let bands = bands(&answer)?;
    let accounted = answer.accounted.iter().take(MASTERSHIPS_MAX);
    Ok(ServerLease {
        granted_by: gets.granted_by.map(MastershipId::new),
        resource,
        capacity,
        expires_in,
        refresh_in,
        algorithm: algorithm.transpose()?,
        terms: ParentTerms {
            inherited: amount_if_given("inherited", answer.inherited)?,
            accounted: accounted.map(|it| MastershipId::new(*it)).collect(),
            share,
            bands,
            per_client,
            learning: answer.learning.unwrap_or_default(),
            reserved: amount_if_given("reserved", answer.reserved)?,
            reserved_for: answer.reserved_for_ms.map(span),
            predecessor_for: answer.predecessor_for_ms.map(span),
            inherited_for: answer.inherited_for_ms.map(span),
            safe_capacity,
            safe_is_static: answer.safe_is_static.unwrap_or_default(),
            holder_bounds: holder_bounds(&answer)?,
            learning_for: answer.learning_for_ms.map(span),
        },
        sequence: answer.sequence,
        decided: answer.decided,
        budget: answer.budget.as_ref().and_then(budget::state),
    })
}

/// Converts the capacity for each priority.
fn bands(answer: &wire::ServerCapacityResourceResponse) -> Result<Vec<(i64, Amount)>, String> {
    let bands = answer.band.iter().take(BANDS_MAX).map(|band| {
        let capacity = amount("capacity", band.capacity);
        let capacity = capacity.map_err(|error| format!("band {}: {error}", band.priority))?;
        Ok((band.priority, capacity))
    });
    bands.collect()
}

/// Converts the limits of a parent for a single holder. A `wants_max` of 0 counts as absent, because it would leave
/// nothing to any holder.
fn holder_bounds(answer: &wire::ServerCapacityResourceResponse) -> Result<HolderBounds, String> {
    let wants_max = amount_if_given("wants_max", answer.wants_max)?;
    let subclients_max = answer.subclients_max.map(Subclients::new).transpose();
    Ok(HolderBounds {
        wants_max: wants_max.filter(|most| !most.is_zero()),
        subclients_max: subclients_max.map_err(|error| format!("subclients_max {error}"))?,
    })
}

#[cfg(test)]
#[path = "server_capacity_tests.rs"]
mod tests;
