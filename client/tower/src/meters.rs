//! Counters of decisions, by rule and outcome, through the `metrics` facade.
//!
//! `doorward_rule_requests_total{domain, rule, outcome}`: the outcomes are `allowed`, `waited`, `refused` and `shadow`
//! (over a limit that does not refuse). The name of a rule with `detailed_metric` has the values of the request; beyond
//! 1,000 such names it is the path of the rule. Install the recorder before the first request.

use std::collections::HashMap;
use std::sync::{PoisonError, RwLock};

use doorward_rules::{Decision, Rule, Status, Why};
use foldhash::fast::RandomState;
use metrics::{Counter, Label};

/// Largest number of counted names with values.
const DETAILED_MAX: usize = 1_000;

/// Names of the outcomes.
const OUTCOMES: [&str; 4] = ["allowed", "waited", "refused", "shadow"];

type Counters = [Counter; OUTCOMES.len()];

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
        let mut known = self.by_path.read().unwrap_or_else(PoisonError::into_inner);
        for status in &decision.statuses {
            let Some(rule) = &status.rule else {
                continue;
            };
            let detailed = rule.detailed_metric.then(|| name(rule));
            let name = match &detailed {
                Some(name) if known.contains_key(name) || known.len() < DETAILED_MAX => name,
                _ => &rule.path,
            };
            if let Some(counters) = known.get(name) {
                count_one(counters, status);
            } else {
                drop(known);
                self.add(name, status);
                known = self.by_path.read().unwrap_or_else(PoisonError::into_inner);
            }
        }
    }

    /// Adds the counters of a name, and counts its first status.
    #[cold]
    fn add(&self, name: &str, status: &Status) {
        let counters = OUTCOMES.map(|outcome| {
            let labels = vec![
                Label::new("domain", self.domain.clone()),
                Label::new("rule", name.to_owned()),
                Label::new("outcome", outcome),
            ];
            metrics::counter!("doorward_rule_requests_total", labels)
        });
        let mut known = self.by_path.write().unwrap_or_else(PoisonError::into_inner);
        count_one(known.entry(name.to_owned()).or_insert(counters), status);
    }
}

fn count_one([allowed, waited, refused, shadow]: &Counters, status: &Status) {
    let counter = match status.why {
        _ if status.is_over => refused,
        Why::OverInShadow | Why::Degraded => shadow,
        _ if status.delay().is_some_and(|delay| !delay.is_zero()) => waited,
        _ => allowed,
    };
    counter.increment(1);
}
