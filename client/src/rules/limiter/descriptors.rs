//! Requests of a service with descriptors of its own, and with leases.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorward_limits::{Moment, Units};
use smallvec::SmallVec;

use crate::rules::decision::Decision;
use crate::rules::document::{Domain, INLINE};
use crate::rules::limiter::{Asked, Descriptor, InForce, Limiter};
use crate::rules::rule::{OnFailure, Rule};
use crate::rules::shared::{self, Leases, Terms};
use crate::rules::tally::Outcome;
use crate::rules::tree::Entry;

/// Largest number of requests of one report: a larger one would fill the counters.
const REPORTED_MAX: u64 = u32::MAX as u64;

impl Limiter {
    /// Does the same as [`Limiter::decide`], with the leases of shared rules.
    pub fn decide_with(
        &self,
        domain: &str,
        descriptors: &[Descriptor<'_>],
        hits: Option<u64>,
        leases: Option<&dyn Leases>,
        now: Moment,
    ) -> Decision {
        let may_wait = true;
        let terms = Terms { leases, may_wait };
        self.with_asked(domain, descriptors, hits, |in_force, domain, asked| {
            self.decide_by(in_force, domain, asked, terms, now)
        })
    }

    /// Returns the texts of the descriptors whose rules are shared, each with its rule and cost: a service may wait for
    /// the lease for `max_wait` before it decides.
    pub fn shared(
        &self,
        domain: &str,
        descriptors: &[Descriptor<'_>],
        hits: Option<u64>,
    ) -> Vec<(String, Arc<Rule>, u64)> {
        self.with_asked(domain, descriptors, hits, |in_force, _domain, asked| {
            in_force.shared(asked)
        })
    }

    /// Counts what requests took in fact, whether or not it is available, or gives back what they did not use. The
    /// units are those of [`Limiter::decide_with`]. Limits may be in debt afterwards, by a window or a burst at most,
    /// which later requests pay. A caller gets back what it took in the same window. A shared limit counts what the lease
    /// took.
    pub fn settle(
        &self,
        domain: &str,
        descriptors: &[Descriptor<'_>],
        hits: Option<u64>,
        settled: Settled,
        leases: &dyn Leases,
        now: Moment,
    ) {
        self.with_asked(domain, descriptors, hits, |in_force, _domain, asked| {
            let names = in_force.replaced_names(asked);
            for it in asked {
                let (rule, ..) = in_force.status(it.number, &names);
                let (Some(rule), Some((limit, counters))) = (rule, in_force.counted(it.number))
                else {
                    continue;
                };
                let cost = it.hits.unwrap_or(rule.cost);
                let (whole, debt_max) = (Units::whole(cost), limit.debt_max());
                let text = rule
                    .scope
                    .is_shared()
                    .then(|| shared::text(rule, it.entries));
                let counter = counters.keys.get_or_init(|| self.counter(limit));
                let key = self.key(it.entries);
                let (limited, map) = ((limit, counters), (&**counter, key));
                if self
                    .newcomer_wait(limited, map, Some(leases), now)
                    .is_some()
                {
                    continue;
                }
                let taken = self.taken_by(limited, it.entries, leases, now);
                match settled {
                    Settled::Charge => {
                        // The counter is that of all callers.
                        let whole = text.map_or(whole, |text| {
                            Units::whole(leases.charge(rule, &text, cost, debt_max.floor()))
                        });
                        let charged = counter.update(key, now, |limit, state, now| {
                            limit.hard().charge_up_to(debt_max, state, whole, now)
                        });
                        if let Some((taken, [amounts, _])) = taken {
                            taken.0.charge(amounts, charged, now);
                        }
                    }
                    Settled::Refund => {
                        let mut back = match (taken, leases.caller()) {
                            (Some((taken, [amounts, _])), _) => {
                                taken.give_back(amounts, whole, now)
                            }
                            (None, None) => whole,
                            (None, Some(_)) => Units::ZERO,
                        };
                        if let Some(text) = text {
                            let given = leases.give_back(rule, &text, back.floor(), Duration::ZERO);
                            // Without a lease, only `safe` has counted.
                            if rule.on_failure != OnFailure::Safe {
                                back = Units::whole(given);
                            }
                        }
                        counter.refund(key, back, now);
                    }
                }
            }
        });
    }

    /// Returns the rule for a set of keys with their values, in whatever order a document nests these keys, and the text
    /// of the descriptor. None: no rule has exactly these keys.
    pub fn find_unordered(
        &self,
        domain: &str,
        values: &BTreeMap<String, String>,
    ) -> Option<(String, Arc<Rule>)> {
        self.with_rules(|in_force| {
            let domain = in_force.rules.domain(domain)?;
            let (number, entries) = domain.find_unordered(values)?;
            let rule = in_force.rules.rules().get(number)?;
            Some((shared::text(rule, &entries), rule.clone()))
        })
    }

    /// Counts requests that another program let pass, and that it refused, by the rule for a set of keys with their
    /// values.
    pub fn count_unordered(
        &self,
        domain: &str,
        values: &BTreeMap<String, String>,
        [allowed, refused]: [u64; 2],
        now: Moment,
    ) {
        self.with_rules(|in_force| {
            let domain = in_force.rules.domain(domain);
            let found = domain.and_then(|domain| domain.find_unordered(values));
            let tally = in_force.tallies.of(domain, found.map(|(number, _)| number));
            for (outcome, count) in [(Outcome::Allowed, allowed), (Outcome::Refused, refused)] {
                self.tally(tally, outcome, count.min(REPORTED_MAX), now);
            }
        });
    }

    /// Returns the descriptors of a set of keys with their values: one for each rule whose keys are all in the set.
    pub fn descriptors<'a>(
        &self,
        domain: &str,
        values: &'a BTreeMap<String, String>,
    ) -> Vec<Vec<Entry<'a>>> {
        self.with_rules(|in_force| {
            let domain = in_force.rules.domain(domain).into_iter();
            let found = domain.flat_map(|domain| domain.unordered(values));
            found.map(|(_, entries)| entries).collect()
        })
    }

    /// Returns whether a document has a domain.
    pub fn has_domain(&self, domain: &str) -> bool {
        self.with_rules(|in_force| in_force.rules.domain(domain).is_some())
    }

    /// Returns whether a domain rejects requests without a rule.
    pub fn rejects_unmatched(&self, domain: &str) -> bool {
        self.with_rules(|in_force| in_force.rules.rejects_unmatched(domain))
    }

    /// Calls a function with the rules that are found for descriptors.
    pub(crate) fn with_asked<R>(
        &self,
        domain: &str,
        descriptors: &[Descriptor<'_>],
        hits: Option<u64>,
        read: impl FnOnce(&InForce, Option<&Domain>, &[Asked<'_>]) -> R,
    ) -> R {
        self.with_rules(|in_force| {
            let domain = in_force.rules.domain(domain);
            let asked = descriptors.iter().map(|descriptor| Asked {
                entries: descriptor.entries,
                number: domain.and_then(|domain| domain.root.find(descriptor.entries)),
                hits: descriptor.hits.or(hits),
            });
            let asked: SmallVec<[_; INLINE]> = asked.collect();
            read(in_force, domain, &asked)
        })
    }
}

impl Domain {
    /// Returns the number of each rule whose keys are all in the set, in whatever order, and its entries.
    fn unordered<'a>(
        &self,
        values: &'a BTreeMap<String, String>,
    ) -> impl Iterator<Item = (usize, Vec<Entry<'a>>)> {
        self.key_paths.iter().filter_map(|keys| {
            let entries = keys.iter().map(|key| {
                let (key, value) = values.get_key_value(key)?;
                let value = Some(value.as_bytes());
                Some(Entry { key, value })
            });
            let entries: Vec<Entry<'a>> = entries.collect::<Option<_>>()?;
            Some((self.root.find(&entries)?, entries))
        })
    }

    /// Returns the rule that has exactly these keys.
    fn find_unordered<'a>(
        &self,
        values: &'a BTreeMap<String, String>,
    ) -> Option<(usize, Vec<Entry<'a>>)> {
        let mut found = self.unordered(values);
        found.find(|(_, entries)| entries.len() == values.len())
    }
}

/// Direction of [`Limiter::settle`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// Requests took more.
    Charge,
    /// Requests took less.
    Refund,
}

impl InForce {
    /// Returns the texts of the descriptors whose rules are shared, each with its rule and cost.
    pub(crate) fn shared(&self, asked: &[Asked<'_>]) -> Vec<(String, Arc<Rule>, u64)> {
        let shared = asked.iter().filter_map(|it| {
            let rule = self.rules.rules().get(it.number?)?;
            let is_shared = rule.scope.is_shared() && rule.counted().is_some();
            let cost = it.hits.unwrap_or(rule.cost);
            is_shared.then(|| (shared::text(rule, it.entries), Arc::clone(rule), cost))
        });
        shared.collect()
    }
}
