//! A look at many resources, a few at a time: snapshots by page, and sums over all.
//!
//! A node may have a million resources, and whoever looks holds up every request meanwhile. So each call here
//! looks at as many as the caller says, and the caller goes on after the last of them. Resources that come and
//! go in between are seen or not; each is seen once at most.

use crate::id::ResourceId;
use crate::node::learning::Learning;
use crate::node::{Entry, Node};
use crate::snapshot::{Counters, ResourceSnapshot};
use crate::time::Time;

/// Sums over resources.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Resources with leases out.
    pub resources: usize,
    /// Leases out.
    pub leases: usize,
    /// Leases of child servers among them.
    pub children: usize,
    /// Clients served, those below child servers included.
    pub clients: f64,
    /// Holders that get less than their share until others have shrunk.
    pub waiting: usize,
    /// Holders of the resource that has most of them.
    pub leases_per_resource: usize,
    /// Resources that the parent refuses.
    pub refused_by_parent: usize,
    /// Whether resources learn only because longer leases may be out; false says more than true. Absent: none
    /// learns.
    pub(super) learns_for_longer_leases: Option<bool>,
    /// Whether a server above learns.
    pub(super) learns_above: bool,
}

impl Totals {
    /// Sums over these and others.
    pub fn add(&mut self, other: &Self) {
        self.resources += other.resources;
        self.leases += other.leases;
        self.children += other.children;
        self.clients += other.clients;
        self.waiting += other.waiting;
        self.leases_per_resource = self.leases_per_resource.max(other.leases_per_resource);
        self.refused_by_parent += other.refused_by_parent;
        let learn = [self, other].map(|it| it.learns_for_longer_leases);
        self.learns_for_longer_leases = learn.into_iter().flatten().min();
        self.learns_above |= other.learns_above;
    }

    fn of(entry: &Entry, now: Time) -> Self {
        let resource = &entry.resource;
        let (children, clients, waiting) = resource.counts();
        Self {
            resources: 1,
            leases: resource.holders(),
            children,
            clients,
            waiting,
            leases_per_resource: resource.holders(),
            refused_by_parent: usize::from(resource.is_refused_by_parent(now)),
            learns_for_longer_leases: resource.learns_for_longer_leases(now),
            learns_above: resource.learns_above(now),
        }
    }
}

impl Node {
    /// How many resources have leases out.
    pub fn resources_count(&self) -> usize {
        self.resources.len()
    }

    /// What happened since the node came to be.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// A view of up to `max` resources after that one in the order of their ids, without their leases. Absent:
    /// from the first one on. O(log resources + max).
    pub fn snapshots_after(
        &self,
        after: Option<&ResourceId>,
        max: usize,
        now: Time,
    ) -> Vec<ResourceSnapshot> {
        let entries = self.entries_after(after).take(max);
        entries
            .map(|(_, entry)| entry.resource.snapshot(now))
            .collect()
    }

    /// Sums over up to `max` resources after that one, and the last of these if there are more. O(log resources
    /// + max).
    pub fn totals_after(
        &self,
        after: Option<&ResourceId>,
        max: usize,
        now: Time,
    ) -> (Totals, Option<ResourceId>) {
        let mut totals = Totals::default();
        let mut entries = self.entries_after(after);
        let mut last = None;
        for (id, entry) in entries.by_ref().take(max) {
            totals.add(&Totals::of(entry, now));
            last = Some(id);
        }
        let is_more = entries.next().is_some();
        (totals, last.filter(|_| is_more).cloned())
    }

    /// Whether this node learns, and why, given the sums over all its resources. O(templates).
    pub fn learning_by(&self, totals: &Totals, now: Time) -> Learning {
        self.learning_with(totals.learns_for_longer_leases, totals.learns_above, now)
    }

    fn entries_after(
        &self,
        after: Option<&ResourceId>,
    ) -> impl Iterator<Item = (&ResourceId, &Entry)> {
        self.resources.after(after)
    }
}
