//! The rules in force, with their counters, and those that a request asks for.

use std::collections::HashMap;
use std::sync::Arc;

use doorward_limits::Moment;
use smallvec::SmallVec;

use super::Counters;
use crate::rules::decision::Why;
use crate::rules::document::{Domain, INLINE, Rules};
use crate::rules::rule::{Counted, Limit, OnFailure, Rule, Scope, identity};
use crate::rules::shared;
use crate::rules::tally::Tallies;
use crate::rules::tree::{self, Entry};

/// A limit, and the counters of its rule.
type Limited<'a> = (&'a Counted, &'a Counters);

/// A descriptor, and the rule that was found for it.
pub(crate) struct Asked<'a> {
    pub(crate) entries: &'a [Entry<'a>],
    pub(crate) found: Option<Found<'a>>,
    pub(crate) hits: Option<u64>,
}

/// A rule in force.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(super) number: usize,
    pub(super) rule: &'a Arc<Rule>,
    pub(super) counters: &'a Counters,
}

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
        let changed = changed.iter().filter_map(|number| self.found(*number));
        for (limit, counters) in changed.filter_map(Found::limited) {
            if let Some(keys) = counters.keys.get() {
                keys.set_limit(&limit.settings, now);
            }
            if let Some(taken) = counters.taken.get() {
                taken.set_limit(limit, now);
            }
        }
    }

    /// Returns the rule of a descriptor, if it has one.
    pub(crate) fn find(&self, domain: &Domain, entries: &[Entry<'_>]) -> Option<Found<'_>> {
        self.found(domain.root.find(entries)?)
    }

    fn found(&self, number: usize) -> Option<Found<'_>> {
        Some(Found {
            number,
            rule: self.rules.rules().get(number)?,
            counters: self.counters.get(number)?,
        })
    }
}

impl<'a> Found<'a> {
    /// Returns the limit of the rule, and the counters that count it.
    fn limited(self) -> Option<Limited<'a>> {
        Some((self.rule.counted()?, self.counters))
    }
}

impl<'a> Asked<'a> {
    /// Returns the limit of the rule, and the counters that count it.
    pub(super) fn limited(&self) -> Option<Limited<'a>> {
        self.found?.limited()
    }

    /// Returns whether a rule that may refuse limits the descriptor, and a value is too long.
    pub(super) fn has_long_value(&self) -> bool {
        let mut values = self.entries.iter().filter_map(|entry| entry.value);
        values.any(tree::is_long) && self.found.is_some_and(|it| it.rule.is_binding())
    }

    /// Returns the rule, the reason before it is counted, and the limit and the counters that count it.
    pub(super) fn status(
        &self,
        replaced_names: &[&str],
    ) -> (Option<&'a Arc<Rule>>, Why, Option<Limited<'a>>) {
        let Some(Found { rule, counters, .. }) = self.found else {
            return (None, Why::NoRule, None);
        };
        match (&rule.limit, rule.scope, rule.on_failure) {
            _ if rule.is_replaced_by(replaced_names) => (None, Why::Replaced, None),
            (Limit::Unlimited, ..) => (Some(rule), Why::Unlimited, None),
            (_, Scope::Shared, OnFailure::Open | OnFailure::Closed) => {
                (Some(rule), Why::NoLease, None)
            }
            (Limit::Counted(limit), ..) => (Some(rule), Why::Within, Some((limit, counters))),
        }
    }
}

/// Returns the names of the rules that those of a request replace.
pub(super) fn replaced_names<'a>(asked: &[Asked<'a>]) -> SmallVec<[&'a str; INLINE]> {
    let rules = asked.iter().filter_map(|it| it.found);
    let names = rules.flat_map(|found| found.rule.replaces.iter().map(String::as_str));
    names.collect()
}

/// Returns the texts of the descriptors whose rules are shared, each with its rule.
pub(crate) fn shared(asked: &[Asked<'_>]) -> Vec<(String, Arc<Rule>)> {
    let rules = asked.iter().filter_map(|it| Some((it, it.found?.rule)));
    let shared = rules.filter(|(_, rule)| rule.is_shared());
    let texts = shared.map(|(it, rule)| (shared::text(rule, it.entries), Arc::clone(rule)));
    texts.collect()
}
