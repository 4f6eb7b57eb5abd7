//! Metrics of the doors for programs without a client library. Without rules they are 0.

use std::fmt;

use doorward::rules::Outcome;

use crate::metrics::families::{Families, flag, float};
use crate::status::ServerState;

/// Writes them.
pub(super) fn write(state: &ServerState, families: &mut Families<'_>) -> fmt::Result {
    let seen = state.edge().map(|edge| edge.seen()).unwrap_or_default();
    let decisions = [
        ("allowed", seen.allowed),
        ("shadow", seen.shadow),
        ("refused", seen.refused),
    ];
    let rows = decisions
        .iter()
        .map(|(outcome, count)| ([("outcome", *outcome)], *count));
    families.counters(
        "edge_decisions",
        "Requests decided by rules, from RLS, HTTP and Redis clients",
        rows,
    )?;
    let tallies = state.edge().map(|edge| edge.limiter().tallies());
    let tallies = tallies.as_deref().unwrap_or_default();
    let rows = tallies.iter().flat_map(|tally| {
        Outcome::ALL.map(|(outcome, name)| {
            let (domain, rule) = (("domain", &*tally.domain), ("rule", &*tally.rule));
            ([domain, rule, ("outcome", name)], tally.count(outcome))
        })
    });
    families.counters(
        "rule_requests",
        "Answers of each rule to requests, with those that Envoys report",
        rows,
    )?;
    families.counter(
        "edge_unknown_domains",
        "Requests and quota streams of a domain without rules, which pass",
        seen.unknown,
    )?;
    families.gauge(
        "edge_rules_refused",
        "1 if the newest version of the rules is not in force",
        flag(seen.is_refused),
    )?;
    families.gauge(
        "edge_callers",
        "Identities of callers of these doors with leases of shared rules",
        float(seen.callers),
    )?;
    families.gauge(
        "edge_memory_bytes",
        "Estimated memory of callers and buckets of these doors",
        float(seen.bytes),
    )?;
    families.counter(
        "edge_crowded",
        "Callers, resources and buckets that found no room in this memory",
        seen.crowded,
    )?;
    families.gauge(
        "edge_quota_streams",
        "Open streams of Envoy's quota service",
        float(seen.streams),
    )?;
    families.gauge(
        "edge_quota_buckets",
        "Buckets of these streams",
        float(seen.buckets),
    )
}
