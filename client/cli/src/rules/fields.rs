//! Rules and domains as fields of text, to be listed and compared.

use doorward::rules::guarded::Bans;
use doorward::rules::rule::{Counted, MAX_WAIT, Rule};
use doorward::rules::{Algorithm, OnFailure, Rank, Rules, Scope};
use doorward_limits::Algorithm as _;

use crate::documents::parts::{Field, NONE, field, or_none};

/// Returns the fields of a domain, the same ones for every domain.
pub(super) fn of_domain(rules: &Rules, domain: &str) -> Vec<Field> {
    let word =
        |is_second, [first, second]: [&str; 2]| if is_second { second } else { first }.to_owned();
    let unmatched = word(rules.rejects_unmatched(domain), ["allow", "reject"]);
    let count = word(rules.counts_attempts(domain), ["allowed", "attempts"]);
    vec![
        field("domain", domain, ""),
        field("unmatched", unmatched, "allow"),
        field("count", count, "allowed"),
    ]
}

/// Returns the fields of a rule, the same ones for every rule; the limit is the first.
pub(super) fn of_rule(rule: &Rule) -> Vec<Field> {
    let counted = rule.counted();
    let soft_limit = counted.and_then(|it| it.soft_limit);
    let bans = counted.and_then(|it| it.settings.hard().bans.as_ref());
    let (burst, default_burst) = counted.and_then(burst).unzip();
    let on_failure = match rule.scope {
        Scope::Local => OnFailure::Open,
        Scope::Shared => OnFailure::Safe,
        Scope::Budget => OnFailure::Closed,
    };
    let max_wait = |span| humantime::format_duration(span).to_string();
    vec![
        field("limit", &rule.limit, ""),
        field("burst", or_none(burst), &or_none(default_burst)),
        field("soft_limit", or_none(soft_limit), NONE),
        field("ban", or_none(bans.map(ban)), NONE),
        field("action", word(rule.action), "reject"),
        field("max_wait", max_wait(rule.max_wait), &max_wait(MAX_WAIT)),
        field("scope", word(rule.scope), "local"),
        field("on_failure", word(rule.on_failure), &word(on_failure)),
        field("processes", rule.processes, "1"),
        field("cost", rule.cost, "1"),
        field("priority", rule.ranks.usual.priority, "0"),
        field("weight", rule.ranks.usual.weight, "1"),
        field("callers", callers(&rule.ranks.listed), ""),
        field("hash", rule.hashed.contains(&true), "false"),
        field("shadow_mode", rule.shadow, "false"),
        field("detailed_metric", rule.detailed_metric, "false"),
        field("name", or_none(rule.name.as_ref()), NONE),
        field("replaces", rule.replaces.join(" "), ""),
    ]
}

/// Returns what a rule with `on_failure: safe` does without a lease.
pub(super) fn without_lease(rule: &Rule) -> Option<String> {
    let is_safe = rule.scope == Scope::Shared && rule.on_failure == OnFailure::Safe;
    rule.counted().filter(|_| is_safe)?;
    let part = match rule.processes {
        1 => "all of it; write processes: N to divide it".to_owned(),
        processes => format!("1/{processes} of it"),
    };
    Some(format!(
        "without a lease: the last safe capacity, and before the first lease, each process admits {part}"
    ))
}

/// Returns the word of a document.
fn word(value: impl std::fmt::Debug) -> String {
    format!("{value:?}").to_lowercase()
}

/// Returns the burst and its default; None for windows.
fn burst(counted: &Counted) -> Option<(String, String)> {
    let (Algorithm::TokenBucket | Algorithm::LeakyQueue) = counted.algorithm else {
        return None;
    };
    let default = counted.rate.in_a_second();
    Some((counted.settings.limit().to_string(), default.to_string()))
}

fn callers(listed: &[(String, Rank)]) -> String {
    let listed = listed.iter();
    let listed = listed.map(|(name, rank)| format!("{name} ({}, {})", rank.priority, rank.weight));
    listed.collect::<Vec<_>>().join(" ")
}

fn ban(bans: &Bans) -> String {
    let [length, longest] =
        [bans.length, bans.longest].map(|it| humantime::format_duration(it).to_string());
    let length = match bans.length == bans.longest {
        true => length,
        false => format!("{length} to {longest}"),
    };
    let threshold = bans.threshold;
    format!("beyond {threshold}, until {length} after its interval")
}
