//! A tree of servers, from the answers of each of them: the command line and the pages show it.

use std::collections::BTreeMap;
use std::slice;

use serde::Serialize;

use crate::admin::v1::{ChildServerStatus, ChildStatus, GetStatusResponse, ResourceStatus};

/// A server of the tree. Its field names are an interface, as JSON; `known`, `lease` and `status` have those of
/// `admin.proto`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Place {
    /// Name of its node.
    pub node: String,
    /// Address, host:port. Absent: none is known.
    pub address: Option<String>,
    /// Names of the nodes from the first one down to its parent.
    pub above: Vec<String>,
    /// Its parent's record of it. Absent: it was asked first.
    pub known: Option<ChildServerStatus>,
    /// Its lease on the resource at its parent.
    pub lease: Option<ChildStatus>,
    /// Its own status.
    pub status: Option<GetStatusResponse>,
    /// Why it says nothing. Absent: it does.
    pub problem: Option<String>,
}

impl Place {
    /// Returns the first server, by its status.
    pub fn first(status: GetStatusResponse) -> Self {
        Self {
            node: status.node.clone(),
            address: Some(status.address.clone()).filter(|it| !it.is_empty()),
            status: Some(status),
            ..Self::default()
        }
    }

    /// Whether its parent has not heard of it for long.
    pub fn is_gone(&self) -> bool {
        self.known.as_ref().is_some_and(|it| it.state == "gone")
    }

    /// Returns the resource, as the server has it.
    pub fn resource(&self) -> Option<&ResourceStatus> {
        self.status.as_ref()?.resources.first()
    }

    /// Returns the child servers, without their own statuses.
    pub fn children(&self) -> Vec<Self> {
        let Some(status) = &self.status else {
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
                known.leases_remaining_ms =
                    known.leases_remaining_ms.max(Some(lease.expires_in_ms));
            }
            *leased = Some(lease.clone());
        }
        let above = [self.above.as_slice(), slice::from_ref(&self.node)].concat();
        let children = children.into_values().map(|(known, lease)| Self {
            node: known.child.clone(),
            address: known.address.clone(),
            above: above.clone(),
            known: Some(known),
            lease,
            ..Self::default()
        });
        children.collect()
    }
}

/// Puts each server before those below it.
pub fn sort(places: &mut [Place]) {
    places.sort_by(|a, b| {
        let [a, b] = [a, b].map(|it| it.above.iter().chain([&it.node]));
        a.cmp(b)
    });
}
