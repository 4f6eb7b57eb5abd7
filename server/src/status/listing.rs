//! The lists of a status: resources by pages, and their leases.
//!
//! A server may hold a million resources, and one of them a million leases. Every request for capacity waits while the
//! status reads the node. So the status reads [`RESOURCES_PER_LOOK`] resources or [`LEASES_PER_LOOK`] leases at a time,
//! and lets requests in between. A page ends at the requested number of entries, or when the answer is full.

use std::collections::BTreeMap;
use std::iter;
use std::time::Duration;

use doorward_engine::id::{HolderId, HolderName, ResourceId};
use doorward_engine::messages::{Conflict, LeaseSnapshot, LeasesFrom, ResourceSnapshot};
use doorward_engine::node::Node;
use doorward_engine::node::child_servers::ChildServer;
use doorward_engine::node::pages::Totals;
use doorward_engine::plan::{Plan, PlannedDivision, Terms};
use doorward_engine::time::Time;
use doorward_proto::admin::v1::{
    ChildServerStatus, ConflictStatus, GetStatusRequest, ResourceStatus,
};
use prost::Message;

use crate::status::{Query, ServerState, model};
use crate::yielding::YieldEvery;

/// Number of resources to read while requests wait.
pub const RESOURCES_PER_LOOK: usize = 32;

/// Number of resources to add up while requests wait.
pub const RESOURCES_ADDED_PER_LOOK: usize = 512;

/// Largest number of resources that are added up anew for each reader.
const RESOURCES_ADDED_EACH_TIME: usize = 10_000;

/// Largest age of the sums over more resources.
const TOTALS_AGE_MAX: Duration = Duration::from_secs(5);

/// Number of leases to read while requests wait.
pub const LEASES_PER_LOOK: usize = 64;

/// Number of leases that are searched for a holder before a page ends.
const LEASES_SEARCHED_MAX: usize = 100_000;

/// Number of leases that take as long to search as a resource without any.
const LEASES_PER_RESOURCE: usize = 16;

/// Number of names under which two processes ask, to read while requests wait.
const CONFLICTS_PER_LOOK: usize = 64;

/// Number of resources to write before the thread yields.
const RESOURCES_PER_STEP: usize = 128;

/// Number of leases to write before the thread yields.
const LEASES_PER_STEP: usize = 256;

/// Largest size of the resources on a page, in bytes. A gRPC client accepts 4 MiB by default, and a page contains more
/// than resources.
const PAGE_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Largest number of leases on a page, over all resources. A lease of a child server counts twice: as a child and as a
/// lease. A page ends before the resource that exceeds it, unless that is the first one.
pub const LEASES_MAX: usize = 10_000;

/// Free space on a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    leases: usize,
    bytes: usize,
    /// Whether an entry was left out for lack of bytes.
    is_short: bool,
}

impl Room {
    /// An empty page.
    pub(super) const EMPTY_PAGE: Self = Self {
        leases: LEASES_MAX,
        bytes: PAGE_BYTES_MAX,
        is_short: false,
    };

    /// Takes space for an entry of `bytes` bytes. Returns whether there was enough.
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.bytes.checked_sub(bytes);
        self.bytes = left.unwrap_or(0);
        self.is_short |= left.is_none();
        left.is_some()
    }
}

impl ServerState {
    /// Returns up to `limit` resources after the given one, and the token of the next page if there are more.
    pub(super) fn page(
        &self,
        after: Option<ResourceId>,
        limit: usize,
        query: &Query,
    ) -> (Vec<ResourceStatus>, Option<String>) {
        let GetStatusRequest { holder, named, .. } = &query.request;
        let (is_by_holder, is_by_name) = (!holder.is_empty(), !named.is_empty());
        let (leases_max, mut searched) = (query.leases_max(), 0_usize);
        let mut resources: Vec<ResourceStatus> = Vec::new();
        let mut room = Room::EMPTY_PAGE;
        let mut last = after.as_ref().map(ResourceId::to_string);
        // One resource more than listed tells whether there is another page.
        let read_max = match is_by_holder || is_by_name {
            true => usize::MAX,
            false => limit.saturating_add(1),
        };
        for snapshot in self.snapshots_after(after, read_max) {
            let leases = snapshot.children.saturating_add(match is_by_holder {
                true => 1,
                false => leases_max.min(snapshot.leases),
            });
            let is_full = resources.len() >= limit
                || room.bytes == 0
                || searched >= LEASES_SEARCHED_MAX
                || (leases > room.leases && !resources.is_empty());
            if is_full {
                return (resources, last);
            }
            if is_by_name && !snapshot.resource.as_str().to_lowercase().contains(named) {
                searched += 1;
                last = Some(snapshot.resource.to_string());
                continue;
            }
            if is_by_holder {
                searched += snapshot.leases + LEASES_PER_RESOURCE;
                if self.leases(&snapshot.resource, 1, holder).is_empty() {
                    last = Some(snapshot.resource.to_string());
                    continue;
                }
            }
            let resource = self.resource(snapshot, query, &mut room);
            if room.is_short && !resources.is_empty() {
                // The next page lists it in full.
                return (resources, last);
            }
            last = Some(resource.resource_id.clone());
            resources.push(resource);
        }
        (resources, None)
    }

    /// Returns up to `max` resources after the given one, without leases. It reads some of them at a time.
    pub fn snapshots_after(
        &self,
        after: Option<ResourceId>,
        max: usize,
    ) -> impl Iterator<Item = ResourceSnapshot> {
        let mut next = Some((after, max));
        let mut steps = YieldEvery::<RESOURCES_PER_STEP>::default();
        let looks = iter::from_fn(move || {
            let (after, left) = next.take().filter(|(_, left)| *left > 0)?;
            let look = left.min(RESOURCES_PER_LOOK);
            let read = |node: &Node, now: Time| node.snapshots_after(after.as_ref(), look, now);
            let seen = self.node().look(read);
            steps.step_by(look);
            if seen.len() == look {
                next = Some((seen.last().map(|it| it.resource.clone()), left - look));
            }
            Some(seen)
        });
        looks.flatten()
    }

    /// Returns sums over all resources. If there are many, the sums are up to [`TOTALS_AGE_MAX`] old.
    pub fn totals(&self) -> Totals {
        let mut known = self.totals.lock();
        let (since, totals) = *known;
        let now = self.node().clock().now();
        if totals.resources > RESOURCES_ADDED_EACH_TIME && now.since(since) < TOTALS_AGE_MAX {
            return totals;
        }
        let (mut totals, mut after) = (Totals::default(), None);
        loop {
            after = self.node().look(|node, now| {
                node.add_to_totals(&mut totals, after.as_ref(), RESOURCES_ADDED_PER_LOOK, now)
            });
            if after.is_none() {
                break;
            }
        }
        *known = (now, totals);
        totals
    }

    /// Returns a resource with as many of its leases as there is space for.
    pub(super) fn resource(
        &self,
        snapshot: ResourceSnapshot,
        query: &Query,
        room: &mut Room,
    ) -> ResourceStatus {
        let (id, children) = (snapshot.resource.clone(), snapshot.children);
        let listed = model::resource(snapshot);
        room.take(listed.encoded_len());
        let children = self.leases(&id, children.min(room.leases), "");
        let children = Self::rendered_leases(children, room, model::child);
        let leases_max = query.leases_max().min(room.leases);
        let leases = self.leases(&id, leases_max, &query.request.holder);
        ResourceStatus {
            children,
            leases: Self::rendered_leases(leases, room, |it, now| Some(model::lease(it, now))),
            ..listed
        }
    }

    /// Returns leases as far as there is space for them.
    fn rendered_leases<T: Message>(
        leases: Vec<(LeaseSnapshot, Time)>,
        room: &mut Room,
        render: impl Fn(&LeaseSnapshot, Time) -> Option<T>,
    ) -> Vec<T> {
        let mut steps = YieldEvery::<LEASES_PER_STEP>::default();
        let mut rendered = Vec::new();
        for (lease, now) in leases {
            steps.step();
            let Some(lease) = render(&lease, now) else {
                continue;
            };
            // Each entry begins with a tag and a length.
            if !room.take(lease.encoded_len() + 5) {
                break;
            }
            rendered.push(lease);
        }
        room.leases = room.leases.saturating_sub(rendered.len());
        rendered
    }

    /// Returns up to `max` leases of a resource whose holder's name contains `holder`, each with the time of reading.
    /// Leases of child servers are among the first ones that are read. The result is sorted by holder.
    pub fn leases(
        &self,
        resource: &ResourceId,
        max: usize,
        holder: &str,
    ) -> Vec<(LeaseSnapshot, Time)> {
        // A holder that goes and comes back meanwhile is read twice, but listed once.
        let mut seen: BTreeMap<HolderId, (LeaseSnapshot, Time)> = BTreeMap::new();
        let mut looks = self.lease_looks(resource, LeasesFrom::Start, holder);
        while seen.len() < max
            && let Some((leases, _, now)) = looks.next()
        {
            // Child servers come first.
            let leases = leases.into_iter().take(max - seen.len());
            seen.extend(leases.map(|lease| (lease.holder.clone(), (lease, now))));
        }
        seen.into_values().collect()
    }

    /// Returns the child servers.
    pub fn child_servers(&self) -> Vec<ChildServerStatus> {
        let (mut shown, mut last): (_, Option<HolderName>) = (Vec::new(), None);
        loop {
            let (seen, now): (Vec<ChildServer>, Time) = self.node().look(|node, now| {
                let seen = node.child_servers_after(last.as_ref(), LEASES_PER_LOOK, now);
                (seen, now)
            });
            last = seen.last().map(|child| child.name.clone());
            shown.extend(seen.iter().map(|child| model::child_server(child, now)));
            if seen.len() < LEASES_PER_LOOK {
                return shown;
            }
        }
    }

    /// Reads the leases of a resource from that place on whose holder's name contains `holder`, some at a time. Each item
    /// is what was read, the place for the rest, if there is more, and the time of reading.
    pub fn lease_looks(
        &self,
        resource: &ResourceId,
        from: LeasesFrom,
        holder: &str,
    ) -> impl Iterator<Item = (Vec<LeaseSnapshot>, Option<LeasesFrom>, Time)> {
        let mut next = Some(from);
        let mut steps = YieldEvery::<{ 2 * LEASES_PER_STEP }>::default();
        iter::from_fn(move || {
            let from = next.take()?;
            let (leases, then, now) = self.node().look(|node, now| {
                let (leases, then) =
                    node.leases_from(resource, &from, holder, LEASES_PER_LOOK, now);
                (leases, then, now)
            });
            steps.step_by(LEASES_PER_LOOK);
            next.clone_from(&then);
            Some((leases, then, now))
        })
    }

    /// Divides the present demand of a resource by other terms.
    pub fn divided(&self, resource: &ResourceId, terms: Terms) -> PlannedDivision {
        let mut plan = Plan::new(terms);
        for (leases, ..) in self.lease_looks(resource, LeasesFrom::Start, "") {
            leases.iter().for_each(|lease| plan.add(&lease.demand));
        }
        plan.divide()
    }

    /// Returns the names under which two live processes asked lately.
    pub(super) fn conflicts(&self) -> Vec<ConflictStatus> {
        let (mut shown, mut last): (_, Option<HolderId>) = (Vec::new(), None);
        loop {
            let (seen, now): (Vec<Conflict>, Time) = self.node().look(|node, now| {
                let seen = node.conflicts_after(last.as_ref(), CONFLICTS_PER_LOOK, now);
                (seen, now)
            });
            shown.extend(seen.iter().map(|conflict| model::conflict(conflict, now)));
            if seen.len() < CONFLICTS_PER_LOOK {
                return shown;
            }
            last = seen.last().map(|conflict| conflict.holder.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_in_takes_what_is_left() {
        let mut room = Room {
            leases: 1,
            bytes: 10,
            is_short: false,
        };
        assert!(room.take(4) && room.take(6) && !room.is_short);
        assert!(room.take(0));
        assert!(!room.take(1) && room.is_short && room.bytes == 0);
    }
}
