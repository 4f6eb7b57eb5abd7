//! Views of much of a node, a little at a time.
//!
//! A node may have a million resources, and one of them a million leases, and every request waits while a view is made.
//! So each call here views only as much as its caller asks for, and returns where to continue. Resources that come and
//! go in between may be missing; each appears once at most.

use std::time::Duration;

use crate::admission::Load;
use crate::id::{HolderId, ResourceId};
pub use crate::messages::Totals;
use crate::messages::{Conflict, Counters, LeaseSnapshot, LeasesFrom, ResourceSnapshot};
use crate::node::Node;
use crate::time::Time;

impl Node {
    /// A view of up to `max` resources after that one in the order of their ids, without their leases. `after` absent:
    /// from the first one on. O(log resources + max).
    pub fn snapshots_after(
        &self,
        after: Option<&ResourceId>,
        max: usize,
        now: Time,
    ) -> Vec<ResourceSnapshot> {
        let of_leases = self.resources.after(after).take(max);
        let of_leases = of_leases.map(|(_, entry)| entry.resource.snapshot(now));
        let of_budgets = self.budgets.after(after).take(max);
        let of_budgets = of_budgets.map(|budget| budget.snapshot(self.budgets.clock_at(now), now));
        let mut all: Vec<_> = of_leases.chain(of_budgets).collect();
        all.sort_by(|one, other| one.resource.cmp(&other.resource));
        all.truncate(max);
        all
    }

    /// Leases of a resource whose holder's name contains `holder`, those of child servers first, and where to go on if
    /// there are more. It looks at up to `max` places of leases, in which there may be fewer of them. A holder that goes
    /// and comes back meanwhile may be seen twice.
    pub fn leases_from(
        &self,
        resource: &ResourceId,
        from: &LeasesFrom,
        holder: &str,
        max: usize,
        now: Time,
    ) -> (Vec<LeaseSnapshot>, Option<LeasesFrom>) {
        if let Some(budget) = self.budgets.get(resource) {
            let (mut leases, next) = budget.view(from, holder, max);
            for lease in &mut leases {
                if let Some(child) = &mut lease.child {
                    child.height = self.children.servers.height(&lease.holder.name);
                }
            }
            return (leases, next);
        }
        let entry = self.resources.get(resource);
        entry.map_or_else(
            || (Vec::new(), None),
            |entry| entry.resource.leases_from(from, holder, max, now),
        )
    }

    /// Names under which two live processes asked recently: up to `max` after that one.
    pub fn conflicts_after(
        &self,
        after: Option<&HolderId>,
        max: usize,
        now: Time,
    ) -> Vec<Conflict> {
        self.conflicts.shown_after(after, now).take(max).collect()
    }

    /// Returns the use of each limit; the [totals](Node::add_to_totals) have the largest resource. O(callers + templates).
    pub fn load(&self) -> Load {
        self.admission.load()
    }

    /// Estimated memory of all resources, holders and callers, in bytes. O(1).
    pub fn lease_memory_bytes(&self) -> usize {
        self.admission.memory_bytes()
    }

    /// Returns the rest of a resource's learning mode. None: it is not learning, or has no holders.
    pub fn learning_left(&self, resource: &ResourceId, now: Time) -> Option<Duration> {
        self.resources
            .get(resource)?
            .resource
            .learning_remaining(now)
    }
}

impl Node {
    /// Returns the number of resources with leases out.
    pub fn resources_count(&self) -> usize {
        self.resources.len() + self.budgets.len()
    }

    /// Returns counters of all events since the node came to be.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Adds up to `max` resources after that one, in the order of their ids. Absent: from the first one on. Returns the
    /// last of them, if there may be more. O(log resources + max).
    pub fn add_to_totals(
        &self,
        totals: &mut Totals,
        after: Option<&ResourceId>,
        max: usize,
        now: Time,
    ) -> Option<ResourceId> {
        if after.is_none() {
            let (leases, children) = self.budgets.holders();
            totals.resources += self.budgets.len();
            totals.leases += leases;
            totals.children += children;
        }
        let (mut last, before) = (None, totals.resources);
        for (id, entry) in self.resources.after(after).take(max) {
            entry.resource.add_to(totals, now);
            last = Some(id);
        }
        last.filter(|_| totals.resources - before == max).cloned()
    }
}
