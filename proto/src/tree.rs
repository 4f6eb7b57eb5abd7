//! A tree of servers, from the answers of each of them: the command line and the pages show it.

use std::collections::{BTreeMap, BTreeSet};
use std::slice;

use serde::Serialize;

use crate::admin::v1::{ChildServerStatus, ChildStatus, GetStatusResponse, ResourceStatus};

/// Servers that are asked in all.
const SERVERS_MAX: usize = 2_000;

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

/// A walk from a server downwards. It says whom to ask, level by level; its user asks.
///
/// A child server that is gone comes after the others of its level: it may live, and only its link may be broken; and
/// one that has moved below another parent is found there. A node that was found already is not asked again, so a cycle
/// ends.
#[derive(Debug)]
pub struct TreeWalk {
    places: Vec<Place>,
    /// Largest number of servers, asked or not.
    places_max: usize,
    /// Start of the newest level.
    level_from: usize,
    asked: Asked,
}

impl TreeWalk {
    /// Begins with the status of the first server.
    pub fn new(first: GetStatusResponse, places_max: usize) -> Self {
        Self {
            asked: Asked::from(&first.node),
            places: vec![Place::first(first)],
            places_max,
            level_from: 0,
        }
    }

    /// Returns the servers of the next level that are to be asked. None: the walk is complete.
    pub fn questions(&mut self) -> Vec<Place> {
        let left = self.places_max.saturating_sub(self.places.len());
        let level = self.places.get(self.level_from..).unwrap_or_default();
        let children = level.iter().flat_map(Place::children).take(left);
        let mut children: Vec<Place> = children.collect();
        children.sort_by_key(Place::is_gone);
        for child in &mut children {
            // One without an address may be listed with it elsewhere.
            if child.address.is_some() {
                child.problem = self.asked.ask(&child.node).err();
            }
        }
        self.level_from = self.places.len();
        self.places.extend(children.iter().cloned());
        children.retain(|it| it.problem.is_none());
        children
    }

    /// Takes the statuses of these servers, in their order, or why there is none.
    pub fn take(&mut self, answers: impl IntoIterator<Item = Result<GetStatusResponse, String>>) {
        let level = self.places.iter_mut().skip(self.level_from);
        for (place, answer) in level.filter(|it| it.problem.is_none()).zip(answers) {
            match answer {
                Ok(status) if status.node == place.node => place.status = Some(status),
                Ok(status) => {
                    let problem = format!("the node {} is at its address", status.node);
                    place.problem = Some(problem);
                }
                Err(problem) => place.problem = Some(problem),
            }
        }
    }

    /// Returns all servers, each before those below it, with `others` that no parent lists.
    pub fn end(mut self, others: impl IntoIterator<Item = GetStatusResponse>) -> Vec<Place> {
        self.places.extend(others.into_iter().map(Place::first));
        self.places.sort_by(|a, b| {
            let [a, b] = [a, b].map(|it| it.above.iter().chain([&it.node]));
            a.cmp(b)
        });
        self.places
    }
}

/// Servers that were asked. Each is asked once, so that a circle ends.
#[derive(Debug)]
pub(crate) struct Asked(BTreeSet<String>);

impl Asked {
    pub(crate) fn from(first: &str) -> Self {
        Self(BTreeSet::from([first.to_owned()]))
    }

    /// Notes that a server is asked.
    ///
    /// # Errors
    ///
    /// If it must not be.
    pub(crate) fn ask(&mut self, node: &str) -> Result<(), String> {
        match self.0.len() < SERVERS_MAX {
            true if self.0.insert(node.to_owned()) => Ok(()),
            true => Err("a server of this name is elsewhere in the tree, too".to_owned()),
            false => Err(format!("{SERVERS_MAX} servers were asked")),
        }
    }
}
