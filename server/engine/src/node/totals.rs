//! Sums over all resources of a node, kept as things change.
//!
//! A node may have a million resources, and whoever looks holds up every request meanwhile. So nobody adds them up:
//! each resource has what it was counted with ([`Counted`], and its [`Weight`]), and after each change of it the sums
//! change by the difference. What depends on the time is kept as when it ends.

mod peak;

use crate::admission::weight::{Weight, counted as to_u32};
use crate::amount::Amount;
use crate::exact_sum::ExactSum;
use crate::node::Node;
use crate::node::totals::peak::Peak;
use crate::resource::{Ends, Resource};
use crate::snapshot::Counters;
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
}

/// What a resource was counted with, besides what it [weighs](Weight).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counted {
    waiting: u32,
    clients: f64,
    /// Most resources have none.
    ends: Option<Box<Ends>>,
}

impl Counted {
    fn ends(&self) -> Ends {
        self.ends.as_deref().copied().unwrap_or_default()
    }

    /// Asserts that it is what a resource is to be counted with. The number of clients is a sum, and may be another one by
    /// a rounding.
    ///
    /// # Panics
    ///
    /// If it is not.
    pub(super) fn assert_is_of(&self, resource: &Resource) {
        let id = resource.id();
        let waiting = to_u32(resource.waiting());
        assert_eq!(self.waiting, waiting, "who waits for {id}");
        assert_eq!(self.ends(), resource.ends(), "what ends of {id}");
    }
}

/// The sums. See the [module](self).
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct NodeSums {
    leases: usize,
    children: usize,
    waiting: usize,
    clients: ExactSum,
    /// Leases of each resource that has any.
    sizes: Peak<u32>,
    refused: Peak<Time>,
    learns_usually: Peak<Time>,
    learns: Peak<Time>,
    learns_above: Peak<Time>,
}

impl NodeSums {
    /// A resource has changed, which weighed so much before, and so much now. `has_new_clients`: other clients may be served.
    pub(super) fn note(
        &mut self,
        counted: &mut Counted,
        weighed: [Weight; 2],
        resource: &Resource,
        has_new_clients: bool,
    ) {
        let clients = if has_new_clients {
            resource.clients()
        } else {
            counted.clients
        };
        let ends = resource.ends();
        let (is_same, former) = (counted.ends() == ends, counted.ends.take());
        let after = Counted {
            waiting: to_u32(resource.waiting()),
            clients,
            ends: None,
        };
        self.replace_leases(weighed);
        if *counted != after {
            self.replace(counted, &after);
            *counted = after;
        }
        if is_same {
            counted.ends = former;
            return;
        }
        self.replace_ends(former.as_deref().copied().unwrap_or_default(), ends);
        counted.ends = (ends != Ends::default()).then(|| Box::new(ends));
    }

    /// A resource is no more.
    pub(super) fn note_gone(&mut self, counted: &Counted, weighed: Weight) {
        self.replace_leases([weighed, Weight::default()]);
        self.replace(counted, &Counted::default());
        self.replace_ends(counted.ends(), Ends::default());
    }

    fn replace_leases(&mut self, weighed: [Weight; 2]) {
        let [before, after] = weighed.map(|it| (it.holders(), it.curves as usize));
        if before == after {
            return;
        }
        self.leases = self.leases + after.0 - before.0;
        self.children = self.children + after.1 - before.1;
        let sizes = [before, after].map(|it| Some(to_u32(it.0)).filter(|leases| *leases > 0));
        self.sizes.replace(sizes[0], sizes[1]);
    }

    fn replace(&mut self, before: &Counted, after: &Counted) {
        self.waiting = self.waiting + after.waiting as usize - before.waiting as usize;
        let clients = [before, after].map(|it| Amount::from_computed(it.clients));
        self.clients.replace(clients[0], clients[1]);
    }

    fn replace_ends(&mut self, before: Ends, after: Ends) {
        let said = |time: Time| Some(time).filter(|time| *time > Time::ZERO);
        for (peak, before, after) in [
            (&mut self.refused, before.refused, after.refused),
            (
                &mut self.learns_usually,
                before.learns_usually,
                after.learns_usually,
            ),
            (&mut self.learns, before.learns, after.learns),
            (
                &mut self.learns_above,
                before.learns_above,
                after.learns_above,
            ),
        ] {
            peak.replace(said(before), said(after));
        }
    }

    /// Whether resources learn only because longer leases may be out; false says more than true. None: none
    /// learns, or only as long as a server above does.
    pub(super) fn learn_for_longer_leases(&self, has_parent: bool, now: Time) -> Option<bool> {
        if lasts(&self.learns_usually, now) {
            return Some(false);
        }
        if !lasts(&self.learns, now) {
            return None;
        }
        if has_parent {
            // The parent's books show how long leases of its predecessor last.
            (!self.learn_above(now)).then_some(false)
        } else {
            Some(true)
        }
    }

    /// Whether a server above learns.
    pub(super) fn learn_above(&self, now: Time) -> bool {
        lasts(&self.learns_above, now)
    }

    /// Holders of the resource that has most of them.
    pub(super) fn leases_per_resource(&self) -> usize {
        self.sizes.largest().unwrap_or(0) as usize
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

    /// Sums over all resources. Costs the same however many there are.
    pub fn totals(&self, now: Time) -> Totals {
        let sums = &self.sums;
        Totals {
            resources: self.resources.len(),
            leases: sums.leases,
            children: sums.children,
            clients: sums.clients.rounded_down(),
            waiting: sums.waiting,
            leases_per_resource: sums.leases_per_resource(),
            refused_by_parent: sums.refused.count_above(now),
        }
    }

    /// Asserts that the sums are what the resources add up to. O(resources), for tests.
    ///
    /// # Panics
    ///
    /// If they are not.
    pub(super) fn assert_summed(&self) {
        let mut sums = NodeSums::default();
        for (id, entry) in self.resources.iter() {
            let mut counted = Counted::default();
            let weighed = [Weight::default(), entry.resource.weight()];
            sums.note(&mut counted, weighed, &entry.resource, true);
            assert_eq!(entry.counted, counted, "what {id} is counted with");
        }
        assert_eq!(self.sums, sums, "sums over resources");
    }
}

/// Whether any of that ends later.
fn lasts(ends: &Peak<Time>, now: Time) -> bool {
    ends.largest().is_some_and(|end| end > now)
}
