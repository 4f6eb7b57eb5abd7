//! Decisions: all descriptors of a request together, all or nothing.
//!
//! A refused request changes no counter, and an allowed one is counted by all of its rules, also by a shadow rule that
//! is over its limit. A domain with `count: attempts` counts every request in full, refused or not, as
//! envoyproxy/ratelimit does. Each combination of values has its own counter, also under a bare key or a star.
//!
//! A request takes of one key after the other, and gives back what it took if one refuses. Of two requests that meet at a
//! key, one may be refused needlessly, and none passes needlessly.

mod descriptors;
mod in_force;
mod leased;
mod newcomers;
mod taken;
mod undo;

pub use descriptors::Settled;
pub(crate) use in_force::InForce;

use std::cell::Cell;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use doorward_limits::{
    Algorithm as _, Allowed, Answer, Decision as Taken, Key, Keyed, Keys, Moment, Reason, SoftHard,
    Standing, Units,
};
use smallvec::SmallVec;

use crate::lock::lock;
use crate::rules::decision::{Decision, Status, Why};
use crate::rules::document::{Domain, INLINE, Rules};
use crate::rules::guarded::Guarded;
use crate::rules::limiter::leased::Leased;
use crate::rules::limiter::newcomers::Newcomers;
use crate::rules::limiter::taken::Taken as TakenByCallers;
use crate::rules::rule::{Action, Counted, Rule};
use crate::rules::shared::{Leases, Terms};
use crate::rules::tally::{Outcome, Tally, Teller};
use crate::rules::tree::{self, Entry};
use crate::rules::value::add_to_key;

/// A descriptor of a request.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor<'a> {
    /// Its entries.
    pub entries: &'a [Entry<'a>],
    /// Units to take; 0 only looks. `None`: the units of the request, or else the rule's cost.
    pub hits: Option<u64>,
}

/// Rules with the counters of this process.
#[derive(Debug)]
pub struct Limiter {
    in_force: RwLock<InForce>,
    replacing: Mutex<()>,
    keys: Keys,
    keys_max: usize,
    teller: Option<Teller>,
}

type Counter = Keyed<SoftHard<Guarded>>;

/// Counters of a rule, each created at its first use.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    keys: OnceLock<Arc<Counter>>,
    taken: OnceLock<TakenByCallers>,
    newcomers: OnceLock<Newcomers>,
}

/// A descriptor, and the number of the rule that was found for it.
pub(crate) struct Asked<'a> {
    pub(crate) entries: &'a [Entry<'a>],
    pub(crate) number: Option<usize>,
    pub(crate) hits: Option<u64>,
}

impl Asked<'_> {
    /// Returns whether a rule that may refuse limits the descriptor, and a value is too long.
    fn has_long_value(&self, rules: &Rules) -> bool {
        let mut values = self.entries.iter().filter_map(|entry| entry.value);
        let rule = self.number.and_then(|number| rules.rules().get(number));
        values.any(tree::is_long) && rule.is_some_and(|rule| rule.is_binding())
    }
}

/// A descriptor that is counted.
struct Charge<'a> {
    place: usize,
    rule: &'a Rule,
    limit: &'a Counted,
    counters: &'a Counters,
    counter: &'a Counter,
    key: Key,
    cost: Units,
    /// Amount that was counted of the cost.
    counted: Cell<Units>,
    /// Units that the other processes of the limit may take meanwhile, before the first lease.
    others: Units,
    may_wait: bool,
    /// Amount of a refusal that is counted, if it is.
    refused_cost: Option<Units>,
}

impl Limiter {
    /// Creates fresh counters, for at most `keys_max` keys of each rule. The seed of the keys' hash should be random.
    pub fn new(rules: Rules, keys_max: usize, seed: [u64; 2]) -> Self {
        Self {
            in_force: RwLock::new(InForce::new(rules)),
            replacing: Mutex::default(),
            keys: Keys::new(seed),
            keys_max,
            teller: None,
        }
    }

    /// Tells each count of a rule to a receiver too, such as the metrics of a program.
    #[must_use]
    pub fn telling(mut self, teller: Teller) -> Self {
        self.teller = Some(teller);
        self
    }

    /// Returns the counts of all rules.
    pub fn tallies(&self) -> Vec<Arc<Tally>> {
        self.with_rules(|in_force| in_force.tallies.all())
    }

    /// Puts other rules in force. A rule with the same place in the tree keeps its counters: if its limit or algorithm
    /// differs, the available part keeps its ratio, so nothing bursts.
    pub fn replace(&self, rules: Rules, now: Moment) {
        let mut next = InForce::new(rules);
        let _one_at_a_time = lock(&self.replacing);
        let mut in_force = self
            .in_force
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let changed = next.keep_counts(&mut in_force);
        *in_force = next;
        drop(in_force);
        // Requests go on meanwhile.
        self.with_rules(|in_force| in_force.convert(&changed, now));
    }

    /// Returns whether a request passes, and counts it if so.
    pub fn allow(&self, domain: &str, descriptors: &[Descriptor<'_>], now: Moment) -> bool {
        self.decide(domain, descriptors, None, now).is_allowed
    }

    /// Decides a request, and counts it if it passes. `hits`: units of all descriptors that have none of their own.
    /// The time is in nanoseconds since 1970. An unknown domain, and a request without descriptors, have no limit.
    pub fn decide(
        &self,
        domain: &str,
        descriptors: &[Descriptor<'_>],
        hits: Option<u64>,
        now: Moment,
    ) -> Decision {
        self.decide_with(domain, descriptors, hits, None, now)
    }

    /// Decides a request by the rules that were found for it.
    pub(crate) fn decide_by(
        &self,
        in_force: &InForce,
        domain: Option<&Domain>,
        asked: &[Asked<'_>],
        terms: Terms<'_>,
        now: Moment,
    ) -> Decision {
        let mut decision = Decision::new(now);
        decision.dialect = domain.map(|domain| domain.dialect).unwrap_or_default();
        let is_unmatched = asked.iter().all(|it| it.number.is_none());
        if is_unmatched && domain.is_some_and(|domain| domain.rejects_unmatched) {
            decision.refuse(Why::Unmatched, asked.len());
        } else if asked.iter().any(|it| it.has_long_value(&in_force.rules)) {
            decision.refuse(Why::LongValue, asked.len());
        } else {
            let counts_attempts = domain.is_some_and(|domain| domain.counts_attempts);
            self.count(
                &mut decision.statuses,
                in_force,
                counts_attempts,
                asked,
                terms,
                now,
            );
            decision.conclude();
        }
        if is_unmatched {
            let outcome = match decision.is_allowed {
                true => Outcome::Allowed,
                false => Outcome::Refused,
            };
            self.tally(in_force.tallies.of(domain, None), outcome, 1, now);
        }
        for (it, status) in asked.iter().zip(&decision.statuses) {
            if status.rule.is_some() || status.why == Why::LongValue && it.number.is_some() {
                let tally = in_force.tallies.of(domain, it.number);
                self.tally(tally, status.outcome(), 1, now);
            }
        }
        decision
    }

    fn tally(&self, tally: Option<&Arc<Tally>>, outcome: Outcome, count: u64, now: Moment) {
        if let Some(tally) = tally {
            tally.add(outcome, count, now, self.teller);
        }
    }

    /// Counts a request, if all of its rules allow it, and adds the status of each descriptor.
    fn count(
        &self,
        statuses: &mut SmallVec<[Status; INLINE]>,
        in_force: &InForce,
        counts_attempts: bool,
        asked: &[Asked<'_>],
        terms: Terms<'_>,
        now: Moment,
    ) {
        let names = in_force.replaced_names(asked);
        let mut charges: SmallVec<[Charge<'_>; INLINE]> = SmallVec::new();
        let mut leased = Leased::new(terms.leases);
        for it in asked {
            let (rule, mut why, mut limit) = in_force.status(it.number, &names);
            let answer = leased.take(rule, why, it, statuses.len());
            let is_leased = matches!(answer, Some(Ok(())));
            match answer {
                None => {}
                Some(Ok(())) => (why, limit) = (Why::Within, in_force.counted(it.number)),
                Some(Err(over)) => {
                    if counts_attempts || !over.is_over {
                        leased.charge(rule, it);
                    }
                    statuses.push(over);
                    continue;
                }
            }
            let mut status = Status {
                is_leased,
                ..Status::free(rule.cloned(), why)
            };
            if let (Some(rule), Some((limit, counters))) = (rule, limit) {
                let cost = Units::whole(it.hits.unwrap_or(rule.cost));
                let key = self.key(it.entries);
                let counter = counters.keys.get_or_init(|| self.counter(limit));
                let map = (&**counter, key);
                if let Some(wait) = self.newcomer_wait((limit, counters), map, terms.leases, now) {
                    statuses.push(Status::over(rule, Taken::After(wait), cost));
                    continue;
                }
                let counts_refusals = counts_attempts || !rule.is_binding();
                let charge = Charge {
                    place: statuses.len(),
                    rule,
                    limit,
                    counters,
                    counter,
                    key,
                    cost,
                    counted: Cell::default(),
                    others: rule.others(it.hits, is_leased),
                    may_wait: terms.may_wait,
                    refused_cost: terms
                        .refused_cost(rule, is_leased, cost)
                        .filter(|_| counts_refusals),
                };
                charge.take(&mut status, now);
                charges.push(charge);
            }
            statuses.push(status);
        }
        let is_over = statuses.iter().any(|status| status.is_over);
        if let Some(leases) = terms.leases.filter(|_| !is_over) {
            self.note(&charges, asked, leases, now);
        }
        if !counts_attempts && is_over {
            leased.give_back();
            for charge in &charges {
                if let Some(status) = statuses.get_mut(charge.place) {
                    charge.give_back(status, now);
                }
            }
        }
        leased.bound(statuses);
    }

    /// Notes the amounts that a caller took.
    fn note(&self, charges: &[Charge<'_>], asked: &[Asked<'_>], leases: &dyn Leases, now: Moment) {
        for charge in charges {
            let entries = asked.get(charge.place).map_or(&[][..], |it| it.entries);
            let limited = (charge.limit, charge.counters);
            if let Some((taken, keys)) = self.taken_by(limited, entries, leases, now) {
                taken.note(keys, charge.counted.get(), now);
            }
        }
    }

    /// Returns the rules in force.
    pub fn rules(&self) -> Rules {
        self.with_rules(|in_force| in_force.rules.clone())
    }

    /// Calls a function with the rules in force, which must not call this again: a waiting writer would block it.
    pub(crate) fn with_rules<R>(&self, read: impl FnOnce(&InForce) -> R) -> R {
        read(&self.in_force.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn counter(&self, counted: &Counted) -> Arc<Counter> {
        Arc::new(Keyed::new(counted.settings.clone(), self.keys_max))
    }

    /// Returns the key of a descriptor among those of the same rule.
    fn key(&self, entries: &[Entry<'_>]) -> Key {
        let add = |key, entry: &Entry<'_>| add_to_key(key, entry.value);
        entries.iter().fold(self.keys.key(), add).finish()
    }
}

impl Charge<'_> {
    /// Takes the cost, if it is available, and sets the status.
    fn take(&self, status: &mut Status, clock: Moment) {
        let max_wait = match self.rule.action {
            Action::Wait if self.may_wait => self.rule.max_wait,
            _ => Duration::ZERO,
        };
        let update = |limit: &SoftHard<Guarded>, state: &mut _, now| {
            let mut decision = limit.take(state, self.cost, now);
            if let Taken::Allowed(Allowed { delay, .. }) = decision
                && !(self.may_wait || delay.is_zero())
            {
                // The place in the queue is free again.
                limit.refund(state, self.cost, now);
                decision = Taken::After(delay);
            }
            if let Taken::After(delay) = decision
                && delay <= max_wait
                && limit.hard().ban(state, now).is_none()
            {
                // The debt makes later requests wait behind this one.
                limit.charge(state, self.cost, now);
                let standing = limit.standing(state, now);
                decision = Taken::Allowed(Allowed {
                    remaining: standing.remaining,
                    reset: standing.reset,
                    delay,
                    warn: limit.warns(state, now),
                });
            }
            if let Taken::Allowed(allowed) = decision {
                let mut standing = Standing::new(allowed.remaining, allowed.reset);
                self.counted.set(self.cost);
                if self.others > Units::ZERO {
                    limit.charge(state, self.others, now);
                    standing = limit.standing(state, now);
                    standing.remaining = self.rule.part_of(standing.remaining);
                }
                return self.tell(status, decision, standing, false);
            }
            if let Some(cost) = self.refused_cost {
                let debt_max = self.limit.debt_max();
                let counted = limit.hard().charge_up_to(debt_max, state, cost, now);
                self.counted.set(counted);
                // The charge makes the wait longer.
                let charged = limit.peek(state, self.cost, now);
                decision = if charged.is_allowed() {
                    decision
                } else {
                    charged
                };
            }
            let is_banned = limit.hard().ban(state, now).is_some();
            let mut standing = limit.standing(state, now);
            if self.refused_cost.is_some() {
                standing.remaining = Units::ZERO;
            }
            self.tell(status, decision, standing, is_banned);
        };
        self.counter.update(self.key, clock, update);
    }

    /// Sets the status by the answer of the limit.
    fn tell(&self, status: &mut Status, decision: Taken, standing: Standing, is_banned: bool) {
        let is_binding = self.rule.is_binding();
        status.why = match decision {
            Taken::Allowed(allowed) if allowed.warn => Why::BeyondSoftLimit,
            Taken::Allowed(_) => Why::Within,
            _ if self.rule.shadow => Why::OverInShadow,
            _ if !is_binding => Why::Degraded,
            _ if is_banned => Why::Banned,
            Taken::Never(Reason::CostAboveLimit) => Why::CostAboveLimit,
            Taken::Never(Reason::RateIsZero) | Taken::After(_) => Why::Over,
        };
        status.is_over = is_binding && !decision.is_allowed();
        let cost = self.cost;
        status.answer = Some(Answer {
            decision,
            standing,
            cost,
        });
    }

    /// Undoes the take of a refused request, and sets the amount that is left then.
    fn give_back(&self, status: &mut Status, now: Moment) {
        let Some(answer) = &mut status.answer else {
            return;
        };
        let is_allowed = answer.decision.is_allowed();
        let remaining = self.counter.update(self.key, now, |limit, state, now| {
            let others = match is_allowed {
                true => self.others,
                false => Units::ZERO,
            };
            limit.refund(state, self.counted.get().saturating_add(others), now);
            limit.standing(state, now).remaining
        });
        // A limit without refusals is over.
        if status.is_over || is_allowed {
            answer.standing.remaining = remaining;
        }
        if let Taken::Allowed(allowed) = answer.decision {
            answer.decision = Taken::Allowed(Allowed {
                remaining,
                ..allowed
            });
        }
    }
}
