//! A walk through a tree of servers, from one of them downwards: each is asked for its status.
//!
//! A child server that is gone is asked after the others of its level: it may live, and only its link may be broken; and
//! one that has moved below another parent is found there. A node that was found already is not asked again, so a cycle
//! ends.

use std::collections::BTreeMap;
use std::slice;

use doorward_proto::admin::v1::{
    ChildServerStatus, ChildStatus, GetStatusRequest, GetStatusResponse as Status, ResourceStatus,
};
use serde::Serialize;

use crate::caller::MasterCaller;
use crate::caller::named_servers::NamedServers;
use crate::failure::Failure;

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

/// Servers in all, asked or not.
const PLACES_MAX: usize = 10_000;

impl Place {
    /// Whether its parent has not heard of it for long.
    fn is_gone(&self) -> bool {
        self.known.as_ref().is_some_and(|it| it.state == "gone")
    }

    /// Returns the resource, as the server has it.
    pub(crate) fn resource(&self) -> Option<&ResourceStatus> {
        self.status.as_ref()?.resources.first()
    }
}

/// Walks from the master of the servers that are given, each server before those below it. The request asks for one
/// resource, or for none.
pub(crate) async fn walk(
    caller: &MasterCaller,
    request: &GetStatusRequest,
) -> Result<Vec<Place>, Failure> {
    let first = ask(caller.clone(), request.clone()).await?;
    let mut servers = NamedServers::below(caller, &first.node);
    let mut places = vec![Place {
        node: first.node.clone(),
        address: Some(first.address.clone()).filter(|it| !it.is_empty()),
        status: Some(first),
        ..Place::default()
    }];
    let mut level_from = 0;
    while let Some(level @ [_, ..]) = places.get(level_from..) {
        let left = PLACES_MAX.saturating_sub(places.len());
        let mut children: Vec<Place> = level.iter().flat_map(children_of).take(left).collect();
        children.sort_by_key(Place::is_gone);
        let questions = children
            .iter()
            .map(|it| (it.node.clone(), it.address.clone(), request.clone()));
        let answers = servers.ask(questions, ask, |status| &status.node).await;
        for (child, answer) in children.iter_mut().zip(answers) {
            match answer {
                Ok(status) => child.status = Some(status),
                Err(problem) => child.problem = Some(problem),
            }
        }
        level_from = places.len();
        places.extend(children);
    }
    places.sort_by(|a, b| {
        let [a, b] = [a, b].map(|it| it.above.iter().chain([&it.node]));
        a.cmp(b)
    });
    Ok(places)
}

async fn ask(caller: MasterCaller, request: GetStatusRequest) -> Result<Status, Failure> {
    let is_of_servers = request.without_resources;
    let status = caller.status(request, false).await?;
    if !status.address.is_empty() || !is_of_servers {
        return Ok(status);
    }
    // It is of the previous release: its resources name its child servers.
    let with_resources = GetStatusRequest::default();
    caller.status(with_resources, false).await
}

/// Returns the child servers of a server with their leases on the resource.
fn children_of(parent: &Place) -> Vec<Place> {
    let Some(status) = &parent.status else {
        return Vec::new();
    };
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
    let above = [parent.above.as_slice(), slice::from_ref(&parent.node)].concat();
    let children = children.into_values().map(|(known, lease)| Place {
        node: known.child.clone(),
        address: known.address.clone(),
        above: above.clone(),
        known: Some(known),
        lease,
        ..Place::default()
    });
    children.collect()
}
