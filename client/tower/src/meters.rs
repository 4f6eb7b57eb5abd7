//! Counters of decisions, by rule and outcome, through the `metrics` facade.
//!
//! `doorward_rule_requests_total{domain, rule, outcome}`: the outcomes are `allowed`, `waited`, `refused` and `shadow`
//! (over a limit that does not refuse). The name of a rule with `detailed_metric` has the values of the request; beyond
//! 1,000 such names it is the path of the rule. Install the recorder before the first request.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use doorward_rules::{Decision, Rule, Status, Why};
use foldhash::fast::RandomState;
use metrics::{Counter, Label};

/// Largest number of counted names with values.
const DETAILED_MAX: usize = 1_000;

/// Names of the outcomes.
const OUTCOMES: [&str; 4] = ["allowed", "waited", "refused", "shadow"];

type Counters = Arc<[Counter; OUTCOMES.len()]>;

/// Counters of the rules of a domain.
pub(crate) struct Meters {
    domain: String,
    by_path: RwLock<HashMap<String, Counters, RandomState>>,
}

impl Meters {
    pub(crate) fn new(domain: &str) -> Self {
        Self {
            domain: domain.to_owned(),
            by_path: RwLock::default(),
        }
    }

    /// Counts a decision once for each of its rules. `name` returns the name of a rule with a detailed metric.
    pub(crate) fn count(&self, decision: &Decision, name: impl Fn(&Rule) -> String) {
        for status in &decision.statuses {
            let Some(rule) = &status.rule else {
                continue;
            };
            let counters = if rule.detailed_metric {
                self.detailed(rule, &name(rule))
            } else {
                self.counters(&rule.path)
            };
            if let Some(counter) = counters.get(outcome(status)) {
                counter.increment(1);
            }
        }
    }

    fn detailed(&self, rule: &Rule, name: &str) -> Counters {
        let known = self.by_path.read().unwrap_or_else(PoisonError::into_inner);
        let is_counted = known.contains_key(name) || known.len() < DETAILED_MAX;
        drop(known);
        self.counters(if is_counted { name } else { &rule.path })
    }

    fn counters(&self, name: &str) -> Counters {
        let known = self.by_path.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(counters) = known.get(name) {
            return counters.clone();
        }
        drop(known);
        let counters = OUTCOMES.map(|outcome| {
            let labels = vec![
                Label::new("domain", self.domain.clone()),
                Label::new("rule", name.to_owned()),
                Label::new("outcome", outcome),
            ];
            metrics::counter!("doorward_rule_requests_total", labels)
        });
        let mut known = self.by_path.write().unwrap_or_else(PoisonError::into_inner);
        let entry = known.entry(name.to_owned());
        entry.or_insert_with(|| Arc::new(counters)).clone()
    }
}

/// Returns the place of a status among the outcomes.
fn outcome(status: &Status) -> usize {
    match status.why {
        _ if status.is_over => 2,
        Why::OverInShadow | Why::Degraded => 3,
        _ if status.delay().is_some_and(|delay| !delay.is_zero()) => 1,
        _ => 0,
    }
}
