//! Conversion between messages of the wire and of the state; no other file knows both.

#![cfg_attr(
    not(feature = "wire"),
    allow(unreachable_pub, reason = "only tests reach it")
)]

use std::time::Duration;

use doorward_proto::{budget, doorman};

use crate::capacity::Capacity;
use crate::state::{Granted, Has, LimitedBy, RefusalKind, Refused, Request, Response};
use doorward_session::time::millis;
use doorward_session::visible;

/// Returns a request in the wire format. `since_epoch` is the wall clock, for old servers.
pub fn request(
    client_id: &str,
    incarnation: u64,
    request: &Request,
    since_epoch: Duration,
) -> doorman::GetCapacityRequest {
    let ask = |ask: &crate::state::Ask| doorman::ResourceRequest {
        resource_id: ask.resource.clone(),
        priority: ask.priority,
        has: ask.has.map(|has| lease(has, since_epoch)),
        wants: ask.wants,
        budget: ask.budget.as_ref().map(budget::word_message),
    };
    doorman::GetCapacityRequest {
        incarnation: Some(incarnation),
        client_id: client_id.to_owned(),
        resource: request.asks.iter().map(ask).collect(),
        sequence: Some(request.sequence),
    }
}

fn lease(has: Has, since_epoch: Duration) -> doorman::Lease {
    let expiry = since_epoch.saturating_add(has.expires_in);
    doorman::Lease {
        granted_by: has.granted_by,
        expiry_time: i64::try_from(expiry.as_secs()).unwrap_or(i64::MAX),
        refresh_interval: 1,
        capacity: has.capacity,
        // Rounded up: a lease of less than a millisecond may still be used, and 0 means that it has
        // ended.
        expires_in_ms: Some(millis(
            has.expires_in.saturating_add(Duration::from_nanos(999_999)),
        )),
        refresh_in_ms: None,
    }
}

/// Returns a master's answer. `since_epoch` is the wall clock when the request was sent: old
/// servers send a lease's end, and not its remaining time.
pub fn response(response: doorman::GetCapacityResponse, since_epoch: Duration) -> Response {
    let granted = response.response.into_iter().map(|answer| {
        // A missing lease reads as one of zeros, which the state refuses because it has ended.
        let gets = answer.gets;
        let until_expiry = || {
            let expiry = Duration::from_secs(u64::try_from(gets.expiry_time).unwrap_or(0));
            expiry.saturating_sub(since_epoch)
        };
        let interval = || Duration::from_secs(u64::try_from(gets.refresh_interval).unwrap_or(0));
        Granted {
            limited_by: answer.limited_by.and_then(limited_by),
            learning_for: answer.learning_for_ms.map(Duration::from_millis),
            decided: answer.decided,
            sequence: answer.sequence,
            resource: answer.resource_id,
            capacity: gets.capacity,
            expires_in: gets
                .expires_in_ms
                .map_or_else(until_expiry, Duration::from_millis),
            refresh_in: gets
                .refresh_in_ms
                .map_or_else(interval, Duration::from_millis),
            safe_capacity: answer.safe_capacity.map(safe_capacity),
            granted_by: gets.granted_by,
            budget: answer.budget.as_ref().and_then(budget::state),
        }
    });
    let refused = response.refused.into_iter().map(|refusal| Refused {
        kind: match refusal.reason() {
            doorman::refusal::Reason::UnknownResource => RefusalKind::Unknown,
            // A server of a previous version refuses the later of two processes until the first one has ended.
            doorman::refusal::Reason::NotReady | doorman::refusal::Reason::AnotherProcess => {
                RefusalKind::NotReady
            }
            _ => RefusalKind::Other,
        },
        retry_in: refusal.retry_in_ms.map(Duration::from_millis),
        message: match &refusal.message {
            Some(message) => visible::cut(message).into_owned(),
            None => "the server gave no reason".to_owned(),
        },
        resource: refusal.resource_id.unwrap_or_default(),
    });
    Response {
        granted: granted.collect(),
        refused: refused.collect(),
    }
}

/// Returns the reason, or `None` if it is unknown.
fn limited_by(number: i32) -> Option<LimitedBy> {
    match doorman::LimitedBy::try_from(number).ok()? {
        doorman::LimitedBy::Unspecified => None,
        doorman::LimitedBy::Wants => Some(LimitedBy::Wants),
        doorman::LimitedBy::Share => Some(LimitedBy::Share),
        doorman::LimitedBy::Others => Some(LimitedBy::Others),
        doorman::LimitedBy::Learning => Some(LimitedBy::Learning),
        doorman::LimitedBy::ParentLearning => Some(LimitedBy::ParentLearning),
        doorman::LimitedBy::CapacityLowered => Some(LimitedBy::CapacityLowered),
        doorman::LimitedBy::Parent => Some(LimitedBy::Parent),
    }
}

fn safe_capacity(value: f64) -> Capacity {
    // −1 means no limit.
    if value == -1.0 {
        Capacity::Unlimited
    } else {
        Capacity::Limited(value)
    }
}
