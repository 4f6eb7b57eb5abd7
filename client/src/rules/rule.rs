//! A rule: the limit of one descriptor, and the answer to a caller that exceeds it.

use std::fmt;
use std::time::Duration;

use doorward_limits::{Algorithm as _, Rate, SoftHard, Units};
use serde::{Deserialize, Serialize};

use crate::rules::guarded::Guarded;
use crate::rules::rank::Ranks;

/// Default of `max_wait`.
pub const MAX_WAIT: Duration = Duration::from_millis(5);

/// Largest `max_wait`: a request that waits holds a connection and memory.
pub const MAX_WAIT_MAX: Duration = Duration::from_secs(60);

/// Largest number of processes that share a limit.
pub const PROCESSES_MAX: u32 = 10_000;

/// A rule of a document, after all checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Name of the domain.
    pub domain: String,
    /// Path of the rule: the domain, then `key` or `key_value` of each level, with dots between them.
    pub path: String,
    /// Keys and the values of the document that lead to the rule. No value: a bare key.
    pub levels: Vec<(String, Option<String>)>,
    /// Whether the values of requests are hashed, for each level.
    pub hashed: Vec<bool>,
    /// The limit.
    pub limit: Limit,
    /// Name by which other rules replace this one.
    pub name: Option<String>,
    /// Names of the rules that this one replaces in a request.
    pub replaces: Vec<String>,
    /// Whether the rule counts and never refuses.
    pub shadow: bool,
    /// Whether the document asks for metrics with the values of requests, which no program gives.
    pub detailed_metric: bool,
    /// Answer to a request above the limit.
    pub action: Action,
    /// Longest wait of `action: wait`, and of a request in a leaky queue.
    pub max_wait: Duration,
    /// Place where the rule's use is counted.
    pub scope: Scope,
    /// Answer while the limit cannot be decided.
    pub on_failure: OnFailure,
    /// Processes that share the limit: until its first lease, each admits such a part of it. At least 1.
    pub processes: u32,
    /// Units that a request takes if it does not say. At least 1.
    pub cost: u64,
    /// Ranks of callers in a lease of the rule.
    pub ranks: Ranks,
}

/// The limit of a rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Limit {
    /// Everything passes, and nothing is counted.
    Unlimited,
    /// A limit that is counted.
    Counted(Box<Counted>),
}

/// A limit that is counted.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    /// Amount and window. Windows of `unit` are aligned to 1970 in UTC: a week begins on Thursday, a month has 30 days
    /// and a year 365.
    pub rate: Rate,
    /// Name of the algorithm.
    pub algorithm: Algorithm,
    /// Use beyond which answers warn.
    pub soft_limit: Option<Units>,
    /// The way it is counted.
    pub settings: SoftHard<Guarded>,
}

/// Name of an algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Algorithm {
    /// An amount in each window of the clock.
    #[default]
    FixedWindow,
    /// A rate with a burst. GCRA and the leaky bucket as a meter give the same answers.
    #[serde(alias = "gcra", alias = "leaky_bucket")]
    TokenBucket,
    /// An even stream: requests wait for their turn, up to `max_wait`.
    LeakyQueue,
    /// An amount in every window, exactly.
    SlidingLog,
    /// An amount in every window, estimated from two numbers.
    SlidingCounter,
}

/// Answer to a request above the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// Refuse with a status.
    #[default]
    Reject,
    /// Wait for at most `max_wait`, then refuse.
    Wait,
    /// Close without an answer.
    Drop,
    /// Let it pass with a mark, so that the service does less for it.
    Degrade,
    /// Send the caller elsewhere.
    Redirect,
}

/// Place where use is counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// In this process.
    #[default]
    Local,
    /// In all processes of the service together.
    Shared,
    /// In a budget of all processes together, which is no rate.
    Budget,
}

impl Scope {
    /// Returns whether servers divide the limit.
    pub fn is_shared(self) -> bool {
        self != Self::Local
    }
}

/// Answer while the limit cannot be decided, as without a lease of a shared limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// Everything passes. Default of local rules.
    Open,
    /// Everything is refused, with 503. Default of budgets.
    Closed,
    /// The safe capacity of the last lease counts; before the first lease, each process admits its part of the limit.
    /// Default of shared rules.
    Safe,
}

impl Counted {
    /// Returns the largest debt: the amount of a window, or of a burst.
    pub fn debt_max(&self) -> Units {
        self.rate.amount().max(self.settings.limit())
    }
}

impl Rule {
    /// Returns whether the rule may refuse a request: not in shadow mode, and not with `action: degrade`.
    pub fn is_binding(&self) -> bool {
        !self.shadow && self.action != Action::Degrade
    }

    /// Returns the units that the other processes of a shared limit may take without a lease, while this one takes the
    /// units of a request.
    pub(crate) fn others(&self, hits: Option<u64>, is_leased: bool) -> Units {
        if is_leased {
            return Units::ZERO;
        }
        let others = u64::from(self.processes.saturating_sub(1));
        Units::whole(hits.unwrap_or(self.cost).saturating_mul(others))
    }

    /// Returns this process's part of what a limit has left.
    pub(crate) fn part_of(&self, units: Units) -> Units {
        Units::from_parts(units.parts() / u128::from(self.processes.max(1)))
    }

    /// Returns whether one of the names is that of the rule. An unlimited rule is never replaced.
    pub(crate) fn is_replaced_by(&self, names: &[&str]) -> bool {
        let name = self.name.as_deref().filter(|_| self.counted().is_some());
        name.is_some_and(|name| names.contains(&name))
    }

    /// Returns the value of a level in the document, empty for a bare key. `None`: the values of requests are not hashed.
    pub fn hashed_pattern(&self, level: usize) -> Option<&str> {
        let is_hashed = self.hashed.get(level).is_some_and(|is_hashed| *is_hashed);
        let (_, value) = self.levels.get(level).filter(|_| is_hashed)?;
        Some(value.as_deref().unwrap_or_default())
    }

    /// Returns the counted limit; `None` if it is unlimited.
    pub fn counted(&self) -> Option<&Counted> {
        match &self.limit {
            Limit::Unlimited => None,
            Limit::Counted(counted) => Some(counted),
        }
    }
}

/// The limit as people read it: `10/min`, `100/s token_bucket`, `unlimited`.
impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Counted(counted) = self else {
            return f.write_str("unlimited");
        };
        write!(f, "{}", counted.rate)?;
        match counted.algorithm {
            Algorithm::FixedWindow => Ok(()),
            other => {
                f.write_str(" ")?;
                other.serialize(f)
            }
        }
    }
}

/// Name of a rule across documents.
pub(crate) type Identity<'a> = (&'a str, &'a [(String, Option<String>)]);

pub(crate) fn identity(rule: &Rule) -> Identity<'_> {
    (&rule.path, &rule.levels)
}
