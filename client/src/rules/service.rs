//! The rules of one domain for the requests of a service: its keys are parts of a request.
//!
//! The document says which combinations of keys are limited. [`Service::decide`] asks for each of them that a rule is
//! for. A part that the request lacks is a value of its own, so no caller gets rid of a limit by omitting a header.

use std::collections::BTreeSet;
use std::time::Duration;

use doorward_limits::Moment;
use smallvec::SmallVec;

use crate::rules::decision::Decision;
use crate::rules::document::{Domain, INLINE, Rules};
use crate::rules::limiter::{Asked, InForce, Limiter};
use crate::rules::shared::{Leases, Terms};
use crate::rules::tree::Entry;
use crate::rules::value::Value;
use crate::rules::who::{Part, Request};

/// The rules of one domain, and the part of a request that each of their keys stands for.
pub struct Service {
    limiter: Limiter,
    domain: String,
    parts: Vec<(String, Part)>,
}

debug_by_name!(Service);

impl Service {
    /// Limits requests by the rules of a domain. `parts`: the part of a request for each key of the rules.
    pub fn new(limiter: Limiter, domain: &str, parts: Vec<(String, Part)>) -> Self {
        Self {
            limiter,
            domain: domain.to_owned(),
            parts,
        }
    }

    /// Returns the rules and their counters.
    pub const fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// Returns the keys of the rules in force that have no part, in alphabetical order. Their value is missing in every
    /// request; a service should refuse such rules, or warn of them.
    pub fn unknown_keys(&self) -> Vec<String> {
        self.limiter
            .with_rules(|in_force| self.unknown_keys_of(&in_force.rules))
    }

    pub(crate) fn unknown_keys_of(&self, rules: &Rules) -> Vec<String> {
        let keys = rules.key_paths(&self.domain).flatten();
        let unknown = keys.filter(|key| self.part(key).is_none());
        let unknown: BTreeSet<&String> = unknown.collect();
        unknown.into_iter().cloned().collect()
    }

    /// Returns the name of the domain.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Returns whether a rule in force is by the caller's address, and the request has none. All such requests share one
    /// limit.
    pub fn lacks_address(&self, request: &Request<'_>) -> bool {
        self.limiter.with_rules(|in_force| {
            let mut keys = in_force.rules.key_paths(&self.domain).flatten();
            keys.any(|key| {
                let part = self.part(key).and_then(|place| self.parts.get(place));
                matches!(part, Some((_, Part::Address(it))) if it.client(request).is_none())
            })
        })
    }

    /// Returns whether a request passes, and counts it if so. The time is in nanoseconds since 1970.
    pub fn allow(&self, request: &Request<'_>, now: Moment) -> bool {
        self.decide(request, now).is_allowed
    }

    /// Decides a request, and counts it if it passes. The time is in nanoseconds since 1970. Shared rules have no
    /// lease.
    pub fn decide(&self, request: &Request<'_>, now: Moment) -> Decision {
        self.decide_with(request, None, true, now)
    }

    /// Returns the texts of the descriptors whose rules are shared, each with the `max_wait` of the rule: a service may
    /// wait that long for the lease before it decides.
    pub fn shared(&self, request: &Request<'_>) -> Vec<(String, Duration)> {
        let shared = self.with_asked(request, |in_force, _domain, asked| in_force.shared(asked));
        let shared = shared.into_iter();
        shared
            .map(|(text, rule, _)| (text, rule.max_wait))
            .collect()
    }

    /// Does the same with the leases of shared rules. A rule refuses a request that may not wait where it would make it
    /// wait.
    pub fn decide_with(
        &self,
        request: &Request<'_>,
        leases: Option<&dyn Leases>,
        may_wait: bool,
        now: Moment,
    ) -> Decision {
        let terms = Terms { leases, may_wait };
        self.with_asked(request, |in_force, domain, asked| {
            self.limiter.decide_by(in_force, domain, asked, terms, now)
        })
    }

    /// Gives back what a request took that passed, and that something else than the rules refuses. Attempts stay
    /// counted in a domain that counts them.
    pub fn undo(
        &self,
        request: &Request<'_>,
        decision: &Decision,
        leases: Option<&dyn Leases>,
        now: Moment,
    ) {
        self.with_asked(request, |in_force, domain, asked| {
            if !domain.is_some_and(|domain| domain.counts_attempts) {
                self.limiter.undo(in_force, asked, decision, leases, now);
            }
        });
    }

    /// Calls a function with the descriptors of a request that a rule is for.
    fn with_asked<R>(
        &self,
        request: &Request<'_>,
        read: impl FnOnce(&InForce, Option<&Domain>, &[Asked<'_>]) -> R,
    ) -> R {
        let values: SmallVec<[Option<Value<'_>>; INLINE]> = self
            .parts
            .iter()
            .map(|(_, part)| part.value(request))
            .collect();
        self.limiter.with_rules(|in_force| {
            let domain = in_force.rules.domain(&self.domain);
            let value = |key| {
                self.part(key)
                    .and_then(|place| values.get(place)?.as_deref())
            };
            let key_paths = || domain.into_iter().flat_map(|domain| &domain.key_paths);
            let entries = key_paths().flatten().map(|key| Entry {
                key,
                value: value(key),
            });
            let entries: SmallVec<[Entry<'_>; 2 * INLINE]> = entries.collect();
            let mut rest = entries.as_slice();
            let asked = key_paths().filter_map(|keys| {
                let (entries, others) = rest.split_at_checked(keys.len())?;
                rest = others;
                let number = Some(domain?.root.find(entries)?);
                Some(Asked {
                    entries,
                    number,
                    hits: None,
                })
            });
            let asked: SmallVec<[_; INLINE]> = asked.collect();
            read(in_force, domain, &asked)
        })
    }

    fn part(&self, key: &str) -> Option<usize> {
        self.parts.iter().position(|(name, _)| name == key)
    }
}
