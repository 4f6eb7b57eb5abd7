//! `/v1/lease`: leases of the node for programs that throttle themselves.
//!
//! A program asks again after `refresh_in_seconds`, and says what it has. It is a client of the node, by the name it
//! gives; those of one identity count as one client ([`crowd`](crate::crowd)). Two programs of one name would use one
//! lease twice, so an address is no name.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use doorward_engine::amount::{Amount, AmountError};
use doorward_engine::claims::Subclients;
use doorward_engine::id::{Caller, HolderName, ResourceId};
use doorward_engine::messages::{
    Ask, ClientLease, GetCapacity, Has, Refusal, RefusalReason, ReleaseCapacity,
};
use doorward_engine::node::mastership::{Mastership, Outcome};
use serde::{Deserialize, Serialize};

use super::peer::Peer;
use super::problem::{Body, Problem};
use crate::caller::RETRY_IN;
use crate::crowd::Place;
use crate::edge::Edge;
use crate::holder::LEASE_HOLDERS;

const NO_RECORD: &str = "the record of leases can be neither written nor removed";
const TOO_MANY: &str = "this identity has too many programs with leases of the resource";

/// Body of a request for a lease.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LeaseForm {
    client: Option<String>,
    resource: String,
    wants: f64,
    has: Option<HasForm>,
    #[serde(default)]
    priority: i64,
}

/// Amount that the program may be using now.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HasForm {
    capacity: f64,
    expires_in_seconds: Option<f64>,
}

/// Body of a release.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReleaseForm {
    client: Option<String>,
    resource: String,
}

/// A lease as a body.
#[derive(Debug, Serialize)]
pub(super) struct LeaseAnswer {
    capacity: f64,
    expires_in_seconds: f64,
    refresh_in_seconds: f64,
    limited_by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    learning_for_seconds: Option<f64>,
}

pub(super) async fn lease(
    State(edge): State<Arc<Edge>>,
    peer: Peer,
    body: Body<LeaseForm>,
) -> Result<Json<LeaseAnswer>, Problem> {
    let Json(form) = body?;
    let (name, id) = (client(&peer, form.client)?, resource(&form.resource)?);
    let mut ask = Ask {
        budget: None,
        resource: id.clone(),
        // Rules rank callers. A program may only let others go first.
        priority: form.priority.min(0),
        weight: Subclients::ONE,
        wants: field("wants", Amount::new(form.wants))?,
        has: form.has.map(has).transpose()?,
    };
    let place = place(&peer, id);
    if let Some(place) = &place {
        let (room, now) = (&edge.room, edge.clock.now());
        let weight = edge.crowds.enter(place, &name, room, now);
        ask.weight = weight.ok_or_else(|| unready(TOO_MANY))?;
    }
    let (weight, lent) = (ask.weight, ask.resource.clone());
    let request = GetCapacity {
        client: name.clone(),
        incarnation: None,
        caller: caller(&peer),
        sequence: None,
        asks: vec![ask],
    };
    match edge.node.get_capacity(request).await {
        Some(Outcome::Served(reply)) => match (reply.leases.first(), reply.refused.first()) {
            (Some(lease), _) => {
                // Before the answer leaves.
                if !edge.records().lend(lent.as_str()) {
                    return Err(unready(NO_RECORD));
                }
                if let Some(place) = &place {
                    let until = edge.clock.now() + lease.expires_in;
                    let weight = lease.decided.then_some(weight);
                    edge.crowds.note(place, &name, weight, until);
                }
                Ok(Json(answer(lease)))
            }
            (None, Some(refusal)) => Err(refused(refusal)),
            (None, None) => Err(unready("the node gave no answer")),
        },
        Some(Outcome::NotMaster(Mastership::Elsewhere { master_address, .. })) => {
            let detail = format!("this server is not the master; the master is {master_address}");
            Err(unready(detail))
        }
        Some(Outcome::NotMaster(_)) => {
            Err(unready("this server is not the master, and knows none"))
        }
        None => Err(unready("the node was started anew")),
    }
}

pub(super) async fn release(
    State(edge): State<Arc<Edge>>,
    peer: Peer,
    body: Body<ReleaseForm>,
) -> Result<StatusCode, Problem> {
    let Json(form) = body?;
    let (name, id) = (client(&peer, form.client)?, resource(&form.resource)?);
    let request = ReleaseCapacity {
        words: std::collections::BTreeMap::new(),
        client: name.clone(),
        incarnation: None,
        caller: caller(&peer),
        sequence: None,
        resources: vec![id.clone()],
    };
    edge.node.release(request).await;
    if let Some(place) = place(&peer, id) {
        edge.crowds.leave(&place, &name, &edge.room);
    }
    Ok(StatusCode::NO_CONTENT)
}

fn field<T, E: std::fmt::Display>(name: &str, value: Result<T, E>) -> Result<T, Problem> {
    value.map_err(|error| Problem::invalid(format!("{name}: {error}")))
}

fn resource(id: &str) -> Result<ResourceId, Problem> {
    field("resource", ResourceId::new(id))
}

/// Returns the name of a program in the node, apart from those of clients with other protocols.
fn client(peer: &Peer, in_body: Option<String>) -> Result<HolderName, Problem> {
    let Some(name) = peer.given_name(in_body) else {
        let detail = "client: is missing; give each program a name of its own";
        return Err(Problem::invalid(detail));
    };
    field("client", HolderName::new(&format!("{LEASE_HOLDERS}{name}")))
}

/// Returns the crowd of a program. None: it has proved no identity.
fn place(peer: &Peer, resource: ResourceId) -> Option<Place> {
    let identity = peer.identity()?;
    Some((identity.into(), resource))
}

fn caller(peer: &Peer) -> Option<Caller> {
    peer.address.map(|address| Caller::new(address.get()))
}

fn has(form: HasForm) -> Result<Has, Problem> {
    let capacity: Result<_, AmountError> = Amount::new(form.capacity);
    let expires_in = form.expires_in_seconds.map(Duration::try_from_secs_f64);
    Ok(Has {
        capacity: field("has.capacity", capacity)?,
        expires_in: field("has.expires_in_seconds", expires_in.transpose())?,
        granted_by: None,
    })
}

fn unready(detail: impl Into<String>) -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).retry_in(Some(RETRY_IN))
}

fn refused(refusal: &Refusal) -> Problem {
    let status = match refusal.reason {
        RefusalReason::UnknownResource => StatusCode::NOT_FOUND,
        RefusalReason::AnotherProcess(_)
        | RefusalReason::Unnumbered
        | RefusalReason::IsBudget
        | RefusalReason::IsNoBudget => StatusCode::CONFLICT,
        RefusalReason::NotReady
        | RefusalReason::RefusedByParent
        | RefusalReason::TooManyAccounts
        | RefusalReason::Full(_) => StatusCode::SERVICE_UNAVAILABLE,
    };
    let is_unready = status == StatusCode::SERVICE_UNAVAILABLE;
    let wait = refusal.retry_in.or(is_unready.then_some(RETRY_IN));
    Problem::new(status, refusal.to_string()).retry_in(wait)
}

fn answer(lease: &ClientLease) -> LeaseAnswer {
    LeaseAnswer {
        capacity: lease.capacity.get(),
        expires_in_seconds: lease.expires_in.as_secs_f64(),
        refresh_in_seconds: lease.refresh_in.as_secs_f64(),
        limited_by: lease.limited_by.as_str(),
        learning_for_seconds: lease.learning_for.map(|it| it.as_secs_f64()),
    }
}
