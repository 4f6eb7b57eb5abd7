//! Sums over all resources of a node, folded page by page.
//!
//! A node may have a million resources. A reader adds them up a page at a time ([`Node::add_to_totals`]), and requests are
//! served in between. So the sums are not of one moment.

use crate::id::ResourceId;
use crate::messages::Counters;
use crate::node::Node;
use crate::resource::Resource;
use crate::time::Time;

/// Sums over all resources.
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
    /// Some resource learns for as long as leases of its algorithm last.
    pub(super) learns_usually: bool,
    /// Some resource learns.
    pub(super) learns: bool,
    /// A server above learns.
    pub(super) learns_above: bool,
}

impl Totals {
    fn add(&mut self, resource: &Resource, now: Time) {
        let leases = resource.holders();
        self.resources += 1;
        self.leases += leases;
        self.children += resource.children().count();
        self.clients += resource.clients();
        self.waiting += resource.waiting();
        self.leases_per_resource = self.leases_per_resource.max(leases);
        self.refused_by_parent += usize::from(resource.is_refused(now));
        self.learns_usually |= resource.learns_usually(now);
        self.learns |= resource.learning_left(now).is_some();
        self.learns_above |= resource.learns_above(now);
    }
}

impl Node {
    /// Returns the number of resources with leases out.
    pub fn resources_count(&self) -> usize {
        self.resources.len()
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
        let (mut last, before) = (None, totals.resources);
        for (id, entry) in self.resources.after(after).take(max) {
            totals.add(&entry.resource, now);
            last = Some(id);
        }
        last.filter(|_| totals.resources - before == max).cloned()
    }

    /// Sums over all resources. O(resources): [`Node::add_to_totals`] is for a reader that must not hold up requests.
    pub fn totals(&self, now: Time) -> Totals {
        let mut totals = Totals::default();
        self.add_to_totals(&mut totals, None, usize::MAX, now);
        totals
    }
}
