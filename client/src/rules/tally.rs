//! Counts of decisions, by rule and outcome.
//!
//! The counts of a rule are in a place of its own, so a decision costs the same for any number of rules and callers. The
//! first [`RULES_MAX`] rules of all documents have counts of their own, and the others share those of [`OTHER`]. Rules
//! of one path share counts. Requests that no rule of their domain limits are counted as [`UNMATCHED`].

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use doorward_limits::Moment;
use indexmap::IndexMap;

use crate::rules::document::{Domain, Rules};

/// Largest number of rules with counts of their own.
pub const RULES_MAX: usize = 1_000;

/// Domain and rule of the counts that the rules beyond share.
pub const OTHER: &str = "other";

/// Rule of the requests that no rule of their domain limits.
pub const UNMATCHED: &str = "unmatched";

/// Time without refusals after which the next one is told as a beginning.
pub const QUIET: Duration = Duration::from_secs(600);

/// Answer of a rule to a request. Another rule may refuse a request that this one allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It passes.
    Allowed,
    /// It passes after a wait.
    Waited,
    /// It is refused.
    Refused,
    /// It passes although it is over the limit, which does not refuse: `shadow_mode`, or `action: degrade`.
    Shadow,
}

impl Outcome {
    /// All outcomes, with their names in metrics.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Allowed, "allowed"),
        (Self::Waited, "waited"),
        (Self::Refused, "refused"),
        (Self::Shadow, "shadow"),
    ];
}

/// Receiver of the counts of a rule: an outcome, its number, and whether refusals begin after a quiet time.
pub type Tell = Box<dyn Fn(Outcome, u64, bool) + Send + Sync>;

/// Makes the receiver of a domain and a rule, at its first count.
pub type Teller = fn(&str, &str) -> Tell;

/// Counts of a rule since the start of the process.
pub struct Tally {
    /// Name of the domain.
    pub domain: String,
    /// Path of the rule.
    pub rule: String,
    counts: [AtomicU64; Outcome::ALL.len()],
    /// Time of the last refusal, in nanoseconds since 1970. The smallest number: there was none.
    refused_at: AtomicI64,
    tell: OnceLock<Tell>,
}

impl Tally {
    fn new(domain: &str, rule: &str) -> Arc<Self> {
        Arc::new(Self {
            domain: domain.to_owned(),
            rule: rule.to_owned(),
            counts: Default::default(),
            refused_at: AtomicI64::new(i64::MIN),
            tell: OnceLock::new(),
        })
    }

    /// Returns the number of decisions with an outcome.
    pub fn count(&self, outcome: Outcome) -> u64 {
        let count = self.counts.get(outcome as usize);
        count.map_or(0, |count| count.load(Ordering::Relaxed))
    }

    /// Returns the time of the last refusal, since 1970.
    pub fn refused_at(&self) -> Option<Duration> {
        let nanos = self.refused_at.load(Ordering::Relaxed);
        u64::try_from(nanos).ok().map(Duration::from_nanos)
    }

    pub(crate) fn add(&self, outcome: Outcome, count: u64, now: Moment, teller: Option<Teller>) {
        let Some(counter) = self.counts.get(outcome as usize).filter(|_| count > 0) else {
            return;
        };
        counter.fetch_add(count, Ordering::Relaxed);
        let begins = outcome == Outcome::Refused && {
            let before = self.refused_at.swap(now.nanos(), Ordering::Relaxed);
            let quiet = now.nanos().saturating_sub(before);
            u64::try_from(quiet).is_ok_and(|quiet| Duration::from_nanos(quiet) >= QUIET)
        };
        if let Some(teller) = teller {
            let tell = self.tell.get_or_init(|| teller(&self.domain, &self.rule));
            tell(outcome, count, begins);
        }
    }
}

debug_by_name!(Tally);

/// The counts of all rules.
#[derive(Debug)]
pub(crate) struct Tallies {
    /// One for each domain, then one for each rule, by their numbers.
    places: Vec<Arc<Tally>>,
    domains: usize,
    /// All counts once, without those of [`OTHER`].
    listed: Vec<Arc<Tally>>,
    other: Arc<Tally>,
}

impl Tallies {
    /// Returns the counts of rules. The former counts of a rule go on.
    pub(crate) fn new(rules: &Rules, former: Option<&Self>) -> Self {
        let other = former.map(|former| Arc::clone(&former.other));
        let other = other.unwrap_or_else(|| Tally::new(OTHER, OTHER));
        let known = former.iter().flat_map(|former| &former.listed);
        let known: IndexMap<_, _> = known.map(|it| ((&*it.domain, &*it.rule), it)).collect();
        let mut listed = IndexMap::new();
        let unmatched = rules.domains_in_order().map(|name| (name, UNMATCHED));
        let of_rules = rules.rules().iter();
        let names = unmatched.chain(of_rules.map(|rule| (&*rule.domain, &*rule.path)));
        let places = names.map(|name| {
            if listed.len() >= RULES_MAX && !listed.contains_key(&name) {
                return Arc::clone(&other);
            }
            let fresh = || match known.get(&name) {
                Some(former) => Arc::clone(former),
                None => Tally::new(name.0, name.1),
            };
            Arc::clone(listed.entry(name).or_insert_with(fresh))
        });
        Self {
            places: places.collect(),
            domains: rules.domains_in_order().count(),
            listed: listed.into_values().collect(),
            other,
        }
    }

    /// Returns the counts of a rule of a domain, or those of its requests without a rule.
    pub(crate) fn of(&self, domain: Option<&Domain>, rule: Option<usize>) -> Option<&Arc<Tally>> {
        let place = rule.map_or(domain?.number, |number| self.domains + number);
        self.places.get(place)
    }

    /// Returns all counts, at the end those of [`OTHER`], if there are any.
    pub(crate) fn all(&self) -> Vec<Arc<Tally>> {
        let is_used = |tally: &&Arc<Tally>| Outcome::ALL.iter().any(|it| tally.count(it.0) > 0);
        let other = Some(&self.other).filter(is_used);
        self.listed.iter().chain(other).cloned().collect()
    }
}
