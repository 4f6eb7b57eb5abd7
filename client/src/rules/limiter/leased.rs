//! The leases of a request's shared rules.

use std::sync::Arc;
use std::time::Duration;

use doorward_limits::Units;

use crate::rules::decision::{Status, Why};
use crate::rules::limiter::Asked;
use crate::rules::rule::Rule;
use crate::rules::shared::{self, Leases};

/// Amounts that a request took of the leases of its shared rules.
pub(super) struct Leased<'a> {
    leases: Option<&'a dyn Leases>,
    taken: Vec<(&'a Rule, String, u64)>,
    /// Places of statuses, and the units that their leases have left.
    left: Vec<(usize, Units)>,
}

impl<'a> Leased<'a> {
    pub(super) const fn new(leases: Option<&'a dyn Leases>) -> Self {
        Self {
            leases,
            taken: Vec::new(),
            left: Vec::new(),
        }
    }

    /// Takes the cost of a shared rule of its lease. `None`: the rule is not shared, or has no lease. The error is the
    /// status of the refusal.
    pub(super) fn take(
        &mut self,
        rule: Option<&'a Arc<Rule>>,
        why: Why,
        asked: &Asked<'_>,
        place: usize,
    ) -> Option<Result<(), Status>> {
        let is_shared = |rule: &&Arc<Rule>| rule.scope.is_shared() && rule.counted().is_some();
        let rule = rule.filter(is_shared).filter(|_| why != Why::Replaced)?;
        let cost = asked.hits.unwrap_or(rule.cost);
        let descriptor = shared::text(rule, asked.entries);
        let leases = self.leases?;
        // The rule's own limit refuses a larger cost, which the lease owes nevertheless where attempts count.
        let debt_max = rule.counted().map(|it| it.debt_max().floor());
        let part = cost.min(debt_max.unwrap_or(cost));
        let answer = leases.take(rule, &descriptor, part)?;
        Some(match answer {
            Ok(()) => {
                let left = leases.left(rule, &descriptor).map(Units::whole);
                self.left.extend(left.map(|left| (place, left)));
                self.taken.push((rule, descriptor, part));
                Ok(())
            }
            Err(refusal) => Err(Status::over(rule, refusal, Units::whole(cost))),
        })
    }

    /// Takes the cost of a refused request, which counts all the same.
    pub(super) fn charge(&self, rule: Option<&Arc<Rule>>, asked: &Asked<'_>) {
        let limit = rule.and_then(|rule| rule.counted());
        if let (Some(leases), Some(rule), Some(limit)) = (self.leases, rule, limit) {
            let cost = asked.hits.unwrap_or(rule.cost);
            let debt_max = limit.debt_max().floor();
            leases.charge(rule, &shared::text(rule, asked.entries), cost, debt_max);
        }
    }

    /// Lowers the units that are left to those of the leases.
    pub(super) fn bound(self, statuses: &mut [Status]) {
        for (place, left) in self.left {
            if let Some(status) = statuses.get_mut(place) {
                status.bound_remaining(left);
            }
        }
    }

    pub(super) fn give_back(&self) {
        if let Some(leases) = self.leases {
            for (rule, descriptor, cost) in &self.taken {
                leases.give_back(rule, descriptor, *cost, Duration::ZERO);
            }
        }
    }
}
