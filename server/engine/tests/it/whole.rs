//! Views of all of a node at once, of which a server takes a page at a time.

use doorward_engine::id::ResourceId;
use doorward_engine::messages::{
    Conflict, Counters, LeaseSnapshot, LeasesFrom, ResourceSnapshot, Totals,
};
use doorward_engine::node::Node;
use doorward_engine::time::Time;

/// State of a node at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeSnapshot {
    /// Resources, sorted by id.
    pub resources: Vec<ResourceSnapshot>,
    /// Names that two live processes used recently.
    pub conflicts: Vec<Conflict>,
    /// Counts since the node was created.
    pub counters: Counters,
}

/// Views of all of a node.
pub trait Whole {
    /// A view of the node without its leases.
    fn snapshot(&self, now: Time) -> NodeSnapshot;

    /// Up to `max` leases of one resource, sorted by holder if those are all.
    fn lease_snapshots(&self, resource: &ResourceId, max: usize, now: Time) -> Vec<LeaseSnapshot>;

    /// Sums over all resources.
    fn totals(&self, now: Time) -> Totals;
}

impl Whole for Node {
    fn snapshot(&self, now: Time) -> NodeSnapshot {
        NodeSnapshot {
            resources: self.snapshots_after(None, usize::MAX, now),
            conflicts: self.conflicts_after(None, usize::MAX, now),
            counters: self.counters(),
        }
    }

    fn lease_snapshots(&self, resource: &ResourceId, max: usize, now: Time) -> Vec<LeaseSnapshot> {
        let (mut leases, _) = self.leases_from(resource, &LeasesFrom::Start, "", usize::MAX, now);
        leases.truncate(max);
        leases.sort_by(|a, b| a.holder.cmp(&b.holder));
        leases
    }

    fn totals(&self, now: Time) -> Totals {
        let mut totals = Totals::default();
        self.add_to_totals(&mut totals, None, usize::MAX, now);
        totals
    }
}
