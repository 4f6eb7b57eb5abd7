//! Undoes the count of a request that passed all rules, and that something else refuses.

use std::sync::Arc;
use std::time::Duration;

use doorward_limits::{Algorithm as _, Moment, Units};

use crate::rules::decision::Decision;
use crate::rules::limiter::{Asked, InForce, Limiter};
use crate::rules::shared::{self, Leases};

impl Limiter {
    /// Gives back what a request took. `asked`: the same as for the decision.
    pub(crate) fn undo(
        &self,
        in_force: &InForce,
        asked: &[Asked<'_>],
        decision: &Decision,
        leases: Option<&dyn Leases>,
        now: Moment,
    ) {
        let took = Duration::from_nanos(now.nanos_since(decision.at));
        for (it, status) in asked.iter().zip(&decision.statuses) {
            let Some(rule) = &status.rule else {
                continue;
            };
            // Other rules may be in force by now.
            let in_force_now = it
                .number
                .and_then(|number| in_force.rules.rules().get(number));
            if !in_force_now.is_some_and(|now| Arc::ptr_eq(now, rule)) {
                continue;
            }
            let cost = it.hits.unwrap_or(rule.cost);
            if status.is_leased
                && let Some(leases) = leases
            {
                leases.give_back(rule, &shared::text(rule, it.entries), cost, took);
            }
            if status.answer.is_some()
                && let Some((_, counters)) = in_force.counted(it.number)
                && let Some(counter) = counters.keys.get()
            {
                let others = rule.others(it.hits, status.is_leased);
                let cost = Units::whole(cost).saturating_add(others);
                counter.update(self.key(it.entries), now, |limit, state, now| {
                    limit.refund(state, cost, now);
                });
            }
        }
    }
}
