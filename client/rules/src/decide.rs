//! Decisions: all descriptors of a request together, all or nothing.
//!
//! A refused request changes no counter. An allowed one is counted by all of its rules, also by a shadow rule that is
//! over its limit. Each combination of values has its own counter, also under a bare key or a star.

use std::time::Duration;

use doorward_limits::rate::Period;
use doorward_limits::{Decision as Taken, FixedWindow, Key, Keyed, Keys, Moment, Units};

use crate::document::Rules;
use crate::key;
use crate::rule::{Limit, Rule};
use crate::tree::Entry;

/// A descriptor of a request.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor<'a> {
    /// Its entries.
    pub entries: &'a [Entry<'a>],
    /// Units to take; 0 only looks. `None`: the units of the request, or else the rule's cost.
    pub hits: Option<u64>,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<'a> {
    /// The answer to the whole request.
    pub outcome: Outcome,
    /// The answer of each descriptor, in order.
    pub statuses: Vec<Status<'a>>,
}

/// The answer to a whole request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The request passes.
    Allowed,
    /// A caller's own quota is used up: 429.
    OverLimit,
    /// No rule is for the request, and the domain refuses such requests: 503.
    Unmatched,
}

/// The answer of a descriptor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Status<'a> {
    /// The rule that limits it. `None`: no rule, or one that another replaces.
    pub rule: Option<&'a Rule>,
    /// Whether this descriptor refuses the request. Never true for a shadow rule.
    pub is_over: bool,
    /// Whole units that are left. `u64::MAX` for an unlimited rule, and 0 without a rule.
    pub remaining: u64,
    /// Time from the start of the present second to the end of the window. Zero without a window.
    pub reset: Duration,
}

/// Rules with the counters of this process.
#[derive(Debug)]
pub struct Limiter {
    rules: Rules,
    keys: Keys,
    /// One for each rule; `None` for unlimited ones.
    counters: Vec<Option<Keyed<FixedWindow>>>,
}

/// A descriptor that is counted.
struct Counted<'a> {
    counter: &'a Keyed<FixedWindow>,
    key: Key,
    cost: Units,
    is_charged: bool,
}

impl Outcome {
    /// Returns the HTTP status of a refusal; `None` if the request passes.
    pub const fn http_status(self) -> Option<u16> {
        match self {
            Self::Allowed => None,
            Self::OverLimit => Some(429),
            Self::Unmatched => Some(503),
        }
    }
}

impl Limiter {
    /// Creates fresh counters, for at most `keys_max` keys of each rule. The seed of the keys' hash should be random.
    pub fn new(rules: Rules, keys_max: usize, seed: [u64; 2]) -> Self {
        let counter = |rule: &Rule| match rule.limit {
            Limit::Unlimited => None,
            Limit::Window(rate) => Some(Keyed::new(FixedWindow::new(rate), keys_max)),
        };
        Self {
            counters: rules.rules().iter().map(counter).collect(),
            keys: Keys::new(seed),
            rules,
        }
    }

    /// Returns whether a request passes, and counts it if so.
    pub fn allow(&self, domain: &str, descriptors: &[Descriptor<'_>], now: Moment) -> bool {
        self.decide(domain, descriptors, None, now).outcome == Outcome::Allowed
    }

    /// Decides a request, and counts it if it passes. `hits`: units of all descriptors that have none of their own.
    /// The time is in nanoseconds since 1970.
    pub fn decide(
        &self,
        domain: &str,
        descriptors: &[Descriptor<'_>],
        hits: Option<u64>,
        now: Moment,
    ) -> Decision<'_> {
        let entries: Vec<_> = descriptors.iter().map(|it| it.entries).collect();
        let numbers = self.rules.find_numbers(domain, &entries);
        let is_unmatched = numbers.iter().all(Option::is_none);
        let mut outcome = Outcome::Allowed;
        if is_unmatched && self.rules.rejects_unmatched(domain) {
            outcome = Outcome::Unmatched;
        }
        let mut statuses = Vec::with_capacity(descriptors.len());
        let mut all_counted = Vec::with_capacity(descriptors.len());
        for (descriptor, found) in descriptors.iter().zip(numbers) {
            let found = found.filter(|(_, is_replaced)| !is_replaced);
            let found =
                found.and_then(|(number, _)| Some((number, self.rules.rules().get(number)?)));
            let Some((number, rule)) = found else {
                statuses.push(Status::free(None));
                all_counted.push(None);
                continue;
            };
            let Some(counter) = self.counters.get(number).and_then(Option::as_ref) else {
                statuses.push(Status::free(Some(rule)));
                all_counted.push(None);
                continue;
            };
            let key = self.key(domain, descriptor.entries);
            let cost = Units::whole(descriptor.hits.or(hits).unwrap_or(rule.cost));
            let taken = counter.take(key, cost, now);
            let is_over = !taken.is_allowed();
            if is_over && rule.shadow {
                counter.charge(key, cost, now);
            } else if is_over {
                outcome = Outcome::OverLimit;
            }
            statuses.push(Status::counted(rule, taken, now));
            let is_charged = !is_over || rule.shadow;
            all_counted.push(Some(Counted {
                counter,
                key,
                cost,
                is_charged,
            }));
        }
        if outcome != Outcome::Allowed {
            give_back(&mut statuses, &all_counted, now);
        }
        Decision { outcome, statuses }
    }

    fn key(&self, domain: &str, entries: &[Entry<'_>]) -> Key {
        let start = self.keys.key().text(domain);
        let parts = entries.iter().fold(start, |parts, entry| {
            key::value(parts.text(entry.key), entry.value)
        });
        parts.finish()
    }
}

/// Undoes a refused request, and shows what is left then.
fn give_back(statuses: &mut [Status<'_>], all_counted: &[Option<Counted<'_>>], now: Moment) {
    for it in all_counted.iter().flatten().filter(|it| it.is_charged) {
        it.counter.refund(it.key, it.cost, now);
    }
    for (status, it) in statuses.iter_mut().zip(all_counted) {
        let Some(it) = it else {
            continue;
        };
        // A shadow rule that is over has nothing left.
        let is_over_in_shadow = status.rule.is_some_and(|rule| rule.shadow)
            && !it.counter.peek(it.key, it.cost, now).is_allowed();
        if !is_over_in_shadow {
            status.remaining = it.counter.standing(it.key, now).remaining.floor();
        }
    }
}

impl<'a> Status<'a> {
    /// Returns the status of an unlimited rule, or of no rule.
    const fn free(rule: Option<&'a Rule>) -> Self {
        Self {
            remaining: if rule.is_some() { u64::MAX } else { 0 },
            rule,
            is_over: false,
            reset: Duration::ZERO,
        }
    }

    fn counted(rule: &'a Rule, taken: Taken, now: Moment) -> Self {
        let remaining = match taken {
            Taken::Allowed(allowed) => allowed.remaining.floor(),
            Taken::After(_) | Taken::Never(_) => 0,
        };
        Self {
            rule: Some(rule),
            is_over: !taken.is_allowed() && !rule.shadow,
            remaining,
            reset: reset(rule.limit, taken, now),
        }
    }
}

/// Returns the time from the start of the present second to the end of the window.
fn reset(limit: Limit, taken: Taken, now: Moment) -> Duration {
    const SECOND: i64 = 1_000_000_000;
    let Limit::Window(rate) = limit else {
        return Duration::ZERO;
    };
    let Period::Nanos(length) = rate.period() else {
        return match taken {
            Taken::Allowed(allowed) => allowed.reset,
            Taken::After(wait) => wait,
            Taken::Never(_) => Duration::ZERO,
        };
    };
    let second = now.nanos().div_euclid(SECOND).saturating_mul(SECOND);
    let length = i64::try_from(length.get()).unwrap_or(i64::MAX);
    let left = length - second.rem_euclid(length);
    Duration::from_nanos(left.unsigned_abs())
}
