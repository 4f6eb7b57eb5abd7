//! Metrics of the doors for programs without a client library. Without rules they are 0.

use std::fmt;

use doorward::rules::Outcome;

use crate::metrics::families::{Families, flag, float, metrics};
use crate::status::ServerState;

/// Writes them.
pub(super) fn write(state: &ServerState, families: &mut Families<'_>) -> fmt::Result {
    let seen = state.edge().map(|edge| edge.seen()).unwrap_or_default();
    let rows = [
        ([("outcome", "allowed")], seen.allowed),
        ([("outcome", "shadow")], seen.shadow),
        ([("outcome", "refused")], seen.refused),
    ];
    let help = "Requests decided by rules, from RLS, HTTP and Redis clients";
    families.counters("edge_decisions", help, rows)?;
    let tallies = state.edge().map(|edge| edge.limiter().tallies());
    let tallies = tallies.as_deref().unwrap_or_default();
    let rows = tallies.iter().flat_map(|tally| {
        Outcome::ALL.map(|(outcome, name)| {
            let (domain, rule) = (("domain", &*tally.domain), ("rule", &*tally.rule));
            ([domain, rule, ("outcome", name)], tally.count(outcome))
        })
    });
    let help = "Answers of each rule to requests, with those that Envoys report";
    families.counters("rule_requests", help, rows)?;
    for (name, help, count) in metrics! {
        /// Requests and quota streams of a domain without rules, which pass
        "edge_unknown_domains": seen.unknown;
        /// Callers, resources and buckets that found no room in this memory
        "edge_crowded": seen.crowded;
        /// Reservations of budgets that were refused although more may be there
        "edge_budget_refused_early": seen.refused_early;
    } {
        families.counter(name, help, count)?;
    }
    for (name, help, value) in metrics! {
        /// 1 if the newest version of the rules is not in force
        "edge_rules_refused": flag(state.refused_rules().is_some());
        /// Identities of callers of these doors with leases of shared rules
        "edge_callers": float(seen.callers);
        /// Estimated memory of callers and buckets of these doors
        "edge_memory_bytes": float(seen.bytes);
        /// Open streams of Envoy's quota service
        "edge_quota_streams": float(seen.streams);
        /// Buckets of these streams
        "edge_quota_buckets": float(seen.buckets);
    } {
        families.gauge(name, help, value)?;
    }
    Ok(())
}
