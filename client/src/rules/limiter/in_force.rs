//! The rules in force, with their counters.

use std::collections::HashMap;
use std::sync::Arc;

use doorward_limits::Moment;
use smallvec::SmallVec;

use super::{Asked, Counters};
use crate::rules::decision::Why;
use crate::rules::document::{INLINE, Rules, replaced_names};
use crate::rules::rule::{Counted, Limit, OnFailure, Rule, identity};
use crate::rules::tally::Tallies;

/// A limit, and the counters of its rule.
type Limited<'a> = (&'a Counted, &'a Counters);

/// Rules in force, with their counters.
#[derive(Debug)]
pub(crate) struct InForce {
    pub(crate) rules: Rules,
    /// One for each rule.
    counters: Vec<Counters>,
    pub(crate) tallies: Tallies,
}

impl InForce {
    pub(super) fn new(rules: Rules) -> Self {
        let counters = rules.rules().iter().map(|_| Counters::default()).collect();
        let tallies = Tallies::new(&rules, None);
        Self {
            rules,
            counters,
            tallies,
        }
    }

    /// Takes the counters of former rules over. A rule with the same place in the tree keeps its counters. Returns the
    /// numbers of rules whose limit or algorithm differs: [`Self::convert`] has to follow.
    pub(super) fn keep_counts(&mut self, former: &mut Self) -> Vec<usize> {
        self.tallies = Tallies::new(&self.rules, Some(&former.tallies));
        let numbers = self.rules.rules().iter().enumerate();
        let numbers: HashMap<_, _> = numbers
            .map(|(number, rule)| (identity(rule), (number, rule)))
            .collect();
        let mut changed = Vec::new();
        let all = std::mem::take(&mut former.counters);
        for (rule, counters) in former.rules.rules().iter().zip(all) {
            let Some((number, next_rule)) = numbers.get(&identity(rule)) else {
                continue;
            };
            let (Some(counted), Some(next_counted)) = (rule.counted(), next_rule.counted()) else {
                continue;
            };
            if counted.settings != next_counted.settings {
                changed.push(*number);
            }
            if let Some(next) = self.counters.get_mut(*number) {
                (next.keys, next.taken) = (counters.keys, counters.taken);
            }
        }
        changed
    }

    /// Converts the counters of rules whose limit or algorithm differs. The available part keeps its ratio.
    pub(super) fn convert(&self, changed: &[usize], now: Moment) {
        for (limit, counters) in changed.iter().filter_map(|it| self.counted(Some(*it))) {
            if let Some(keys) = counters.keys.get() {
                keys.set_limit(&limit.settings, now);
            }
            if let Some(taken) = counters.taken.get() {
                taken.set_limit(limit, now);
            }
        }
    }

    /// Returns the names of the rules that those of a request replace.
    pub(super) fn replaced_names(&self, asked: &[Asked<'_>]) -> SmallVec<[&str; INLINE]> {
        let rules = asked
            .iter()
            .filter_map(|it| self.rules.rules().get(it.number?));
        replaced_names(rules)
    }

    /// Returns the limit of a rule, and the counter that counts it.
    pub(super) fn counted(&self, number: Option<usize>) -> Option<Limited<'_>> {
        let counted = self.rules.rules().get(number?)?.counted()?;
        Some((counted, self.counters.get(number?)?))
    }

    /// Returns the rule of a descriptor, the reason before it is counted, and the limit and the counter that count it.
    pub(super) fn status(
        &self,
        number: Option<usize>,
        replaced_names: &[&str],
    ) -> (Option<&Arc<Rule>>, Why, Option<Limited<'_>>) {
        let rule = |number| {
            let rule = self.rules.rules().get(number)?;
            Some((rule, self.counters.get(number)?))
        };
        let Some((rule, counter)) = number.and_then(rule) else {
            return (None, Why::NoRule, None);
        };
        match (&rule.limit, rule.scope, rule.on_failure) {
            _ if rule.is_replaced_by(replaced_names) => (None, Why::Replaced, None),
            (Limit::Unlimited, ..) => (Some(rule), Why::Unlimited, None),
            (_, scope, OnFailure::Open | OnFailure::Closed) if scope.is_shared() => {
                (Some(rule), Why::NoLease, None)
            }
            (Limit::Counted(limit), ..) => (Some(rule), Why::Within, Some((limit, counter))),
        }
    }
}
