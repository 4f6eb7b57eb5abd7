//! A walk through a tree of servers, from one of them downwards: each is asked for its status.
//!
//! A few are asked at a time, each for the time of a call. A child server that is gone is not asked, so one that has
//! moved below another parent is found there. A node that was found already is not asked again, so a cycle ends.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use doorward_proto::admin::v1::{
    ChildServerStatus, ChildStatus, GetStatusRequest, GetStatusResponse as Status, ResourceStatus,
};
use serde::Serialize;
use tokio::sync::Semaphore;

use crate::caller::MasterCaller;
use crate::failure::Failure;

/// Servers that are asked at a time.
const ASKED_AT_ONCE: usize = 8;

/// Servers of one walk.
const SERVERS_MAX: usize = 2_000;

/// A server of the tree, as `--output json` prints it. Its field names are an interface; `known`, `lease` and `status`
/// have those of `admin.proto`.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Place {
    pub(crate) node: String,
    pub(crate) address: Option<String>,
    /// Names of the nodes from the first one down to its parent.
    pub(crate) above: Vec<String>,
    /// Its parent's record of it. Absent: it was asked first.
    pub(crate) known: Option<ChildServerStatus>,
    /// Its lease on the resource at its parent.
    pub(crate) lease: Option<ChildStatus>,
    /// Its own status.
    pub(crate) status: Option<Status>,
    /// Why it says nothing. Absent: it does.
    pub(crate) problem: Option<String>,
}

impl Place {
    /// Returns the resource, as the server has it.
    pub(crate) fn resource(&self) -> Option<&ResourceStatus> {
        self.status.as_ref()?.resources.first()
    }
}

/// The state that all parts of a walk share.
struct Walk {
    caller: MasterCaller,
    request: GetStatusRequest,
    seen: Mutex<BTreeSet<String>>,
    asking: Semaphore,
}

/// Walks from the master of the servers that are given, each server before those below it. The request asks for one
/// resource, or for none.
pub(crate) async fn walk(
    caller: &MasterCaller,
    request: &GetStatusRequest,
) -> Result<Vec<Place>, Failure> {
    let first = ask(caller, request).await?;
    let walk = Walk {
        caller: caller.clone(),
        request: request.clone(),
        seen: Mutex::new(BTreeSet::from([first.node.clone()])),
        asking: Semaphore::new(ASKED_AT_ONCE),
    };
    let place = Place {
        node: first.node.clone(),
        address: Some(first.address.clone()).filter(|it| !it.is_empty()),
        ..Place::default()
    };
    Ok(below(Arc::new(walk), place, first).await)
}

/// Returns a server, and all below it.
fn below(
    walk: Arc<Walk>,
    place: Place,
    status: Status,
) -> Pin<Box<dyn Future<Output = Vec<Place>> + Send>> {
    Box::pin(async move {
        let mut above = place.above.clone();
        above.push(place.node.clone());
        let children = children_of(&status)
            .into_iter()
            .map(|(known, lease)| Place {
                node: known.child.clone(),
                address: known.address.clone(),
                above: above.clone(),
                known: Some(known),
                lease,
                ..Place::default()
            });
        let asked = children.map(|child| tokio::spawn(visit(Arc::clone(&walk), child)));
        let asked: Vec<_> = asked.collect();
        let mut places = vec![Place {
            status: Some(status),
            ..place
        }];
        for child in asked {
            places.extend(child.await.unwrap_or_default());
        }
        places
    })
}

async fn visit(walk: Arc<Walk>, mut place: Place) -> Vec<Place> {
    match ask_child(&walk, &place).await {
        Ok(status) => below(walk, place, status).await,
        Err(problem) => {
            place.problem = Some(problem);
            vec![place]
        }
    }
}

async fn ask_child(walk: &Walk, place: &Place) -> Result<Status, String> {
    let Some(address) = &place.address else {
        return Err("address unknown: it is of an earlier release, or has none".to_owned());
    };
    if place.known.as_ref().is_some_and(|it| it.state == "gone") {
        return Err("it is gone".to_owned());
    }
    {
        let mut seen = walk.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= SERVERS_MAX {
            return Err(format!("{SERVERS_MAX} servers were asked"));
        }
        if !seen.insert(place.node.clone()) {
            return Err("a server of this name is elsewhere in the tree, too".to_owned());
        }
    }
    let caller = walk.caller.claimed(address).map_err(|it| it.to_string())?;
    let _turn = walk.asking.acquire().await;
    match ask(&caller, &walk.request).await {
        Ok(status) if status.node == place.node => Ok(status),
        Ok(status) => Err(format!("the node {} is at its address", status.node)),
        Err(failure) => Err(failure.to_string()),
    }
}

async fn ask(caller: &MasterCaller, request: &GetStatusRequest) -> Result<Status, Failure> {
    let status = caller.status(request.clone(), false).await?;
    if !status.address.is_empty() || !request.without_resources {
        return Ok(status);
    }
    // It is of the previous release: its resources name its child servers.
    let with_resources = GetStatusRequest::default();
    caller.status(with_resources, false).await
}

/// Returns the child servers of a server with their leases on the resource, sorted by name.
fn children_of(status: &Status) -> Vec<(ChildServerStatus, Option<ChildStatus>)> {
    let known = status.children.iter().cloned();
    let mut children: BTreeMap<String, (ChildServerStatus, Option<ChildStatus>)> =
        known.map(|it| (it.child.clone(), (it, None))).collect();
    for lease in status.resources.iter().flat_map(|it| &it.children) {
        let (known, leased) = children.entry(lease.child.clone()).or_default();
        if known.state.is_empty() {
            known.child.clone_from(&lease.child);
            known.clients_count = known.clients_count.max(lease.clients_count);
            known.leases_remaining_ms = known.leases_remaining_ms.max(Some(lease.expires_in_ms));
        }
        *leased = Some(lease.clone());
    }
    children.into_values().collect()
}
