//! A budget as status shows it.

use crate::budget::{Budget, Source};
use crate::messages::{BudgetSnapshot, LeaseSnapshot, LeasesFrom, ResourceSnapshot};
use crate::templates::AlgorithmKind;
use crate::templates::window::UnixMillis;
use crate::time::Time;

impl Budget {
    /// Returns the state of the budget now.
    pub(crate) fn snapshot(&self, at: UnixMillis, now: Time) -> ResourceSnapshot {
        let granter = &self.granter;
        let (leases, children) = granter.holders();
        let needs = granter.needs();
        let reserved = granter.reserved();
        let (template, mark, capacity, upstream) = match &self.source {
            Source::Root(root) => {
                let mark = root.mark.map(|mark| mark.confirmed() as f64);
                (root.template.clone(), mark, granter.total(), None)
            }
            // The amounts of its holders are its own, too, until they return them.
            Source::Parent(parent) => {
                let capacity = granter.total().max(reserved);
                (None, None, capacity, Some(parent.snapshot(now)))
            }
        };
        let terms = self.algorithm.budget.as_deref();
        let said = |name| terms.map_or("", |terms| terms.get(name));
        ResourceSnapshot {
            resource: self.id.clone(),
            template,
            kind: AlgorithmKind::Budget,
            shrink: self.algorithm.shrink,
            lease_length: self.algorithm.lease_length,
            refresh_interval: self.algorithm.refresh_interval,
            capacity: capacity as f64,
            safe_capacity: None,
            wants: granter.base() as f64 + needs.total_wants(),
            granted: reserved as f64,
            reserved: reserved as f64,
            leases,
            children,
            clients: needs.total_subclients(),
            waiting: 0,
            below_floor: None,
            learning_remaining: None,
            grows: false,
            unreported: granter.unreported() as f64,
            unreported_for: None,
            mark,
            upstream,
            budget: Some(BudgetSnapshot {
                used: granter.taken(),
                ends_in: match &self.source {
                    Source::Root(_) => granter.window().remaining(at),
                    Source::Parent(parent) => parent.remaining(now),
                },
                unit: said("unit").to_owned(),
                decimals: said("decimals").parse().unwrap_or_default(),
            }),
        }
    }

    /// Returns holders from that place on, in up to `max` places, child servers first, and the place for the next call.
    pub(crate) fn view(
        &self,
        from: &LeasesFrom,
        holder: &str,
        max: usize,
    ) -> (Vec<LeaseSnapshot>, Option<LeasesFrom>) {
        let place = match from {
            LeasesFrom::Place(place) => *place,
            LeasesFrom::Start | LeasesFrom::After(_) => 0,
        };
        let next = place.saturating_add(max);
        let next = (next < self.granter.len()).then_some(LeasesFrom::Place(next));
        (self.granter.view(place, holder, max), next)
    }
}
