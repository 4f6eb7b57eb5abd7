//! Conversion between wire and engine types. Only this module knows both.
//!
//! It parses everything from outside, so the code behind it checks nothing again. It refuses an invalid resource of a
//! request, and the server serves the others. It refuses a request that is invalid as a whole with `INVALID_ARGUMENT`,
//! and nothing changes.
//!
//! prost does not enforce proto2's `required`: an absent number is 0 and an absent text is empty. An empty id is
//! refused; wants of 0 are valid. An `expiry_time` of 0 in `has` counts as absent, since no lease that matters
//! ended in 1970.

mod algorithm;
pub mod server_capacity;

use std::collections::HashSet;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::claims::Subclients;
use doorward_engine::id::{Caller, HolderName, Incarnation, MastershipId, ResourceId};
use doorward_engine::messages::{
    Ask, BudgetWord, ClientLease, GetCapacity, GetCapacityReply, Has, LimitedBy, Refusal,
    RefusalReason, ReleaseCapacity, Released,
};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_proto::budget;
use doorward_proto::doorman as wire;
use doorward_session::time::{millis, millis_up};
use tonic::Status as RpcStatus;

use crate::limits::ServerLimit;

/// Most resources in one request. The node decides about all of them under its lock.
pub const RESOURCES_PER_REQUEST_MAX: usize = 1_000;

/// Message of the refusal of a resource that a request names more than once.
const NAMED_TWICE: &str = "it stands in the request more than once; only the first counts";

/// Parses a client's request. Returns it with the refusals of its invalid resources.
///
/// # Errors
///
/// `INVALID_ARGUMENT` if the request is invalid as a whole.
pub fn get_capacity(
    request: wire::GetCapacityRequest,
    caller: Option<Caller>,
    wall: Duration,
) -> Result<(GetCapacity, Vec<wire::Refusal>), RpcStatus> {
    let client = holder_name("client_id", &request.client_id)?;
    check_count(request.resource.len())?;
    let mut asks = Vec::with_capacity(request.resource.len());
    let mut refused = Vec::new();
    let mut named = HashSet::with_capacity(request.resource.len());
    for asked in &request.resource {
        // If the first mention is invalid, a second one is refused too: the client may have meant either.
        let is_first = named.insert(asked.resource_id.as_str());
        match ask(asked, wall) {
            Ok(ask) if is_first => asks.push(ask),
            Ok(_) => refused.push(refusal(&asked.resource_id, NAMED_TWICE.to_owned())),
            Err(message) => refused.push(refusal(&asked.resource_id, message)),
        }
    }
    let request = GetCapacity {
        caller,
        incarnation: request.incarnation.and_then(Incarnation::new),
        client,
        sequence: request.sequence,
        asks,
    };
    Ok((request, refused))
}

/// Parses a client's release. Drops invalid resource ids, because no client can hold such a resource.
///
/// # Errors
///
/// `INVALID_ARGUMENT` if the request is invalid as a whole.
pub fn release_capacity(
    request: &wire::ReleaseCapacityRequest,
    caller: Option<Caller>,
) -> Result<ReleaseCapacity, RpcStatus> {
    check_count(request.resource_id.len())?;
    let words = request.resource_id.iter().zip(&request.budget);
    let words = words.filter_map(|(id, word)| {
        let word = budget::word(Some(word))?;
        let closes = true;
        Some((ResourceId::new(id).ok()?, BudgetWord { closes, ..word }))
    });
    let ids = request.resource_id.iter();
    Ok(ReleaseCapacity {
        words: words.collect(),
        caller,
        incarnation: request.incarnation.and_then(Incarnation::new),
        client: holder_name("client_id", &request.client_id)?,
        sequence: request.sequence,
        resources: ids.filter_map(|id| ResourceId::new(id).ok()).collect(),
    })
}

/// Converts the result of a release, one for each resource. If another server is the master, names that server.
pub fn release_capacity_response(
    request: &ReleaseCapacity,
    outcome: Outcome<Vec<Released>>,
) -> wire::ReleaseCapacityResponse {
    let results = match outcome {
        Outcome::Served(results) => results,
        Outcome::NotMaster(mastership) => {
            return wire::ReleaseCapacityResponse {
                mastership: Some(redirection(&mastership)),
                result: Vec::new(),
            };
        }
    };
    let result = |(resource, result): (&ResourceId, Released)| wire::ReleaseResult {
        unless_heard_ms: match result {
            Released::UnlessHeard(after) => Some(millis_up(after)),
            _ => None,
        },
        resource_id: Some(resource.to_string()),
        outcome: Some(
            match result {
                Released::Freed => wire::release_result::Outcome::Released,
                Released::UnlessHeard(_) => wire::release_result::Outcome::UnlessHeard,
                Released::NotThere => wire::release_result::Outcome::NotHeld,
                Released::OutOfOrder => wire::release_result::Outcome::OutOfOrder,
            }
            .into(),
        ),
    };
    wire::ReleaseCapacityResponse {
        mastership: None,
        result: request.resources.iter().zip(results).map(result).collect(),
    }
}

/// Converts the answer to a client. If another server is the master, names that server.
pub fn get_capacity_outcome(
    outcome: Outcome<GetCapacityReply>,
    refused: Vec<wire::Refusal>,
    wall: Duration,
) -> wire::GetCapacityResponse {
    match outcome {
        Outcome::Served(reply) => get_capacity_response(reply, refused, wall),
        Outcome::NotMaster(mastership) => wire::GetCapacityResponse {
            mastership: Some(redirection(&mastership)),
            ..wire::GetCapacityResponse::default()
        },
    }
}

/// Converts a master's answer, and adds the refusals of invalid resources.
pub fn get_capacity_response(
    reply: GetCapacityReply,
    mut refused: Vec<wire::Refusal>,
    wall: Duration,
) -> wire::GetCapacityResponse {
    refused.extend(reply.refused.into_iter().map(refusal_message));
    let response = |lease: &ClientLease| wire::ResourceResponse {
        resource_id: lease.resource.as_str().to_owned(),
        gets: wire::Lease {
            granted_by: lease.granted_by.map(MastershipId::get),
            ..lease_message(lease.capacity, lease.expires_in, lease.refresh_in, wall)
        },
        safe_capacity: lease.safe_capacity.map(f64::from),
        limited_by: limited_by(lease).map(Into::into),
        learning_for_ms: lease.learning_for.map(millis_up),
        decided: Some(lease.decided),
        sequence: None,
        budget: lease.budget.as_ref().map(budget::state_message),
    };
    wire::GetCapacityResponse {
        response: reply.leases.iter().map(response).collect(),
        refused,
        ..wire::GetCapacityResponse::default()
    }
}

/// Returns why a lease is no larger. None: the lease covers the wants decided before, and the new wants are not decided
/// yet.
fn limited_by(lease: &ClientLease) -> Option<wire::LimitedBy> {
    Some(match lease.limited_by {
        LimitedBy::Wants if !lease.decided => return None,
        LimitedBy::Wants => wire::LimitedBy::Wants,
        LimitedBy::Share => wire::LimitedBy::Share,
        LimitedBy::Others => wire::LimitedBy::Others,
        LimitedBy::Learning => wire::LimitedBy::Learning,
        LimitedBy::ParentLearning => wire::LimitedBy::ParentLearning,
        LimitedBy::CapacityLowered => wire::LimitedBy::CapacityLowered,
        LimitedBy::Parent => wire::LimitedBy::Parent,
    })
}

fn refusal_message(refused: Refusal) -> wire::Refusal {
    let reason = match refused.reason {
        RefusalReason::UnknownResource => wire::refusal::Reason::UnknownResource,
        RefusalReason::NotReady => wire::refusal::Reason::NotReady,
        RefusalReason::AnotherProcess(_) => wire::refusal::Reason::AnotherProcess,
        RefusalReason::Unnumbered | RefusalReason::IsBudget | RefusalReason::IsNoBudget => {
            wire::refusal::Reason::InvalidRequest
        }
        RefusalReason::RefusedByParent => wire::refusal::Reason::Unspecified,
        RefusalReason::Full(_) | RefusalReason::TooManyAccounts => wire::refusal::Reason::TooMany,
    };
    wire::Refusal {
        retry_in_ms: refused.retry_in.map(millis),
        resource_id: Some(refused.resource.to_string()),
        reason: Some(reason.into()),
        message: Some(match refused.reason {
            RefusalReason::Full(full) => ServerLimit::of(full.limit).refusal(full.max),
            reason => reason.to_string(),
        }),
    }
}

/// Names the master, in the answer of a server that is not the master.
pub fn redirection(mastership: &Mastership) -> wire::Mastership {
    match mastership {
        Mastership::Elsewhere {
            master_address,
            epoch,
        } => wire::Mastership {
            master_address: Some(master_address.clone()),
            epoch: *epoch,
        },
        Mastership::Master { .. } | Mastership::Unknown => wire::Mastership::default(),
    }
}

/// Converts the answer to Discovery. Other servers reach this server at `own_address`.
pub fn discovery_response(mastership: &Mastership, own_address: &str) -> wire::DiscoveryResponse {
    let named = match mastership {
        Mastership::Master { epoch } => wire::Mastership {
            master_address: Some(own_address.to_owned()),
            epoch: *epoch,
        },
        Mastership::Elsewhere { .. } | Mastership::Unknown => redirection(mastership),
    };
    wire::DiscoveryResponse {
        mastership: named,
        is_master: mastership.is_master(),
    }
}

fn holder_name(field: &str, text: &str) -> Result<HolderName, RpcStatus> {
    HolderName::new(text).map_err(|error| RpcStatus::invalid_argument(format!("{field} {error}")))
}

fn check_count(resources: usize) -> Result<(), RpcStatus> {
    if resources <= RESOURCES_PER_REQUEST_MAX {
        return Ok(());
    }
    Err(RpcStatus::invalid_argument(format!(
        "the request names {resources} resources; at most {RESOURCES_PER_REQUEST_MAX} in one \
         request, so split it"
    )))
}

/// Parses one resource of a request. Returns an error if it is invalid.
fn ask(asked: &wire::ResourceRequest, wall: Duration) -> Result<Ask, String> {
    let resource =
        ResourceId::new(&asked.resource_id).map_err(|error| format!("resource_id {error}"))?;
    let said = |error: String| format!("{resource}: {error}");
    let wants = amount("wants", asked.wants).map_err(said)?;
    let has = asked.has.as_ref().map(|lease| has(lease, wall));
    let has = has.transpose().map_err(said)?;
    Ok(Ask {
        resource,
        priority: asked.priority,
        weight: Subclients::ONE,
        wants,
        has,
        budget: budget::word(asked.budget.as_ref()),
    })
}

fn has(lease: &wire::Lease, wall: Duration) -> Result<Has, String> {
    let expires_in = match (lease.expires_in_ms, lease.expiry_time) {
        (Some(millis), _) => Some(Duration::from_millis(millis)),
        (None, 0) => None,
        // An expiry before the epoch has passed too.
        (None, seconds) => Some(
            Duration::from_secs(u64::try_from(seconds).unwrap_or_default()).saturating_sub(wall),
        ),
    };
    Ok(Has {
        granted_by: lease.granted_by.map(MastershipId::new),
        capacity: amount("has.capacity", lease.capacity)?,
        expires_in,
    })
}

fn amount(field: &str, value: f64) -> Result<Amount, String> {
    Amount::new(value).map_err(|error| format!("{field} {error}"))
}

fn amount_if_given(field: &str, value: Option<f64>) -> Result<Option<Amount>, String> {
    value.map(|value| amount(field, value)).transpose()
}

fn refusal(resource_id: &str, message: String) -> wire::Refusal {
    wire::Refusal {
        retry_in_ms: None,
        resource_id: Some(resource_id.to_owned()),
        reason: Some(wire::refusal::Reason::InvalidRequest.into()),
        message: Some(message),
    }
}

/// Converts a lease answered at that wall clock time. Rounds its end down, in both units, so that the holder never
/// believes in it for longer than the granter.
fn lease_message(
    capacity: Amount,
    expires_in: Duration,
    refresh_in: Duration,
    wall: Duration,
) -> wire::Lease {
    let expiry = wall.saturating_add(expires_in);
    wire::Lease {
        granted_by: None,
        expiry_time: i64::try_from(expiry.as_secs()).unwrap_or(i64::MAX),
        refresh_interval: i64::try_from(refresh_in.as_secs().max(1)).unwrap_or(i64::MAX),
        capacity: capacity.get(),
        expires_in_ms: Some(millis(expires_in)),
        refresh_in_ms: Some(millis(refresh_in)),
    }
}

#[cfg(test)]
mod tests;
