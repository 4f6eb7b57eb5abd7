//! Warnings about valid rules.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::rules::document::Rules;
use crate::rules::rank::Ranks;
use crate::rules::reader::limit::turn;
use crate::rules::rule::{Action, Algorithm, MAX_WAIT, OnFailure, Rule, Scope};

/// Parts of names of secrets, in lower case and without dashes.
const SECRETS: &str = "accesskey|apikey|authorization|bearer|cookie|credential|jwt|passw|secret|session|signature|token";

impl Rules {
    /// Returns warnings, each as a line: fields without effect, and values that should not be shown.
    pub fn warnings(&self) -> Vec<String> {
        let without_effect = self.rules().iter().flat_map(without_effect);
        let secrets: BTreeSet<String> = self.rules().iter().flat_map(shown_secrets).collect();
        let names = self.rules().iter().filter_map(|it| {
            let name = it.name.as_deref()?;
            Some((&*it.domain, name))
        });
        let names: BTreeSet<_> = names.collect();
        let replaced = self.rules().iter().flat_map(|rule| {
            let unknown = |name: &&String| !names.contains(&(&*rule.domain, &***name));
            let unknown = rule.replaces.iter().filter(unknown);
            unknown.map(|name| {
                format!(
                    "{}: replaces has no effect: no rule is named {name}",
                    rule.path
                )
            })
        });
        let without_effect = without_effect.chain(replaced);
        without_effect.chain(secrets).collect()
    }
}

/// Returns a warning for each field of a rule without effect.
fn without_effect(rule: &Arc<Rule>) -> impl Iterator<Item = String> {
    let is_local = rule.scope == Scope::Local;
    let counted = rule.counted();
    let queues = counted.is_some_and(|counted| counted.algorithm == Algorithm::LeakyQueue);
    let turn = counted.filter(|_| queues).and_then(|it| turn(it.rate));
    let waits = queues || rule.action == Action::Wait || !is_local;
    let fields = [
        (rule.detailed_metric, "detailed_metric has no effect"),
        (
            is_local && rule.on_failure != OnFailure::Open,
            "on_failure has no effect without scope: shared",
        ),
        (
            is_local && rule.ranks != Ranks::default(),
            "priority, weight and callers have no effect without scope: shared",
        ),
        (
            counted.is_none() && (rule.shadow || rule.action != Action::Reject || rule.cost != 1),
            "shadow_mode, action and cost have no effect on an unlimited rule",
        ),
        (
            !waits && rule.max_wait != MAX_WAIT,
            "max_wait has no effect: no request waits",
        ),
        (
            turn.is_some_and(|turn| turn / 1e9 > rule.max_wait.as_secs_f64()),
            "max_wait is shorter than the time between two requests of the queue, so no request waits",
        ),
    ];
    let fields = fields.into_iter().filter(|(is_idle, _)| *is_idle);
    fields.map(|(_, warning)| format!("{}: {warning}", rule.path))
}

/// Returns a warning for each key of a rule that is named like a secret, and whose values are shown.
fn shown_secrets(rule: &Arc<Rule>) -> impl Iterator<Item = String> {
    let levels = rule.levels.iter().zip(&rule.hashed);
    let shown = levels.filter(|((key, _), is_hashed)| !**is_hashed && is_secret(key));
    shown.map(|((key, _), _)| {
        let domain = &rule.domain;
        format!(
            "{domain}: {key} is named like a secret, and the status, pages and metrics may show its values; write hash: true beside the key"
        )
    })
}

/// Returns whether a key has the name of a secret.
fn is_secret(name: &str) -> bool {
    let mut name = name.to_ascii_lowercase();
    name.retain(|letter| !matches!(letter, '-' | '_' | '.'));
    SECRETS.split('|').any(|part| name.contains(part))
}
