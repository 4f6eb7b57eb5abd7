//! Counters of decisions, by rule and outcome, through the `metrics` facade.
//!
//! `doorward_rule_requests_total{domain, rule, outcome}` has the labels of [`Tally`](crate::rules::Tally), as at
//! servers and agents. Install the recorder before the first request.

use metrics::Label;

use crate::rules::Outcome;
use crate::rules::tally::Tell;

/// Returns the receiver of the counts of a rule.
pub(crate) fn counters(domain: &str, rule: &str) -> Tell {
    let counters = Outcome::ALL.map(|(outcome, name)| {
        let labels = vec![
            Label::new("domain", domain.to_owned()),
            Label::new("rule", rule.to_owned()),
            Label::new("outcome", name),
        ];
        let counter = metrics::counter!("doorward_rule_requests_total", labels);
        (outcome, counter)
    });
    Box::new(move |outcome, count, _| {
        for (_, counter) in counters.iter().filter(|(of, _)| *of == outcome) {
            counter.increment(count);
        }
    })
}
