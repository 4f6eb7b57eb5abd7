//! Resource templates: settings of operators for resources.
//!
//! A server creates a resource when a holder asks for it. The resource takes its capacity and
//! algorithm from the template that matches its id. Matching is Doorman's: first a template whose
//! `identifier_glob` *is* the id, then the first in order whose glob matches it. A catch-all `*`
//! must be the last one.
//!
//! [`Templates::parse`] finds all problems at once. No later code checks again.

pub mod budget_terms;
mod check;
pub mod glob;
mod set;
pub mod window;

pub use set::Templates;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorward_time::named;
use thiserror::Error;

use crate::amount::Amount;
use crate::claims::Subclients;
use crate::templates::budget_terms::BudgetTerms;

/// Longest refresh interval that a server sends, whatever the template says. Doorman's own clients obey any interval.
/// After a mistake in a template they would notice the correction only when a long interval is over.
pub(crate) const REFRESH_IN_MAX: Duration = Duration::from_secs(60);

/// Longest lease, learning mode or refresh interval: a week. A longer one is probably a typo, and a
/// crashed client would hold its capacity for as long.
pub const DURATION_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// Shortest lease or refresh interval. With a shorter one, a server would serve nothing but
/// refreshes.
pub(crate) const DURATION_MIN: Duration = Duration::from_millis(10);

/// Largest number of templates in one set.
pub(crate) const TEMPLATES_MAX: usize = 10_000;

named! {
    /// Algorithm that divides a resource's capacity. See `docs/algorithms.md`.
    #[derive(PartialOrd, Ord, Hash)]
    AlgorithmKind {
        /// Every holder gets all it wants, whatever the capacity is.
        NoAlgorithm = "NO_ALGORITHM",
        /// Every client gets all it wants up to the capacity, which is per client.
        Static = "STATIC",
        /// Every client gets an equal share first. The rest is divided in proportion to the remaining
        /// wants.
        ProportionalShare = "PROPORTIONAL_SHARE",
        /// Max-min fairness: no holder gets more than a level while one that wants more gets less.
        FairShare = "FAIR_SHARE",
        /// Each priority gets its guaranteed minimum first. Then the highest priority comes first, fair
        /// inside each priority.
        PriorityBands = "PRIORITY_BANDS",
        /// The capacity is an amount for each window of time, and what remains is divided max-min fairly.
        Budget = "BUDGET",
    }
}

impl AlgorithmKind {
    /// Whether the algorithm divides by priority.
    pub const fn has_bands(self) -> bool {
        matches!(self, Self::PriorityBands)
    }

    /// Whether the algorithm promises Σ gets ≤ capacity. NO_ALGORITHM and STATIC promise no total,
    /// so they reserve nothing and learn nothing.
    pub const fn promises_total(self) -> bool {
        !matches!(self, Self::NoAlgorithm | Self::Static)
    }
}

impl fmt::Display for AlgorithmKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Rule for when a shrunk grant frees capacity for other holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Shrink {
    /// The holder must acknowledge it, or its older lease must expire. Grants never overshoot.
    #[default]
    Acknowledged,
    /// At once, which is Doorman's rule. Use may overshoot for up to a refresh interval.
    Immediate,
}

/// Capacity that a client falls back to in safe mode.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SafeCapacity {
    /// No limit; −1 in templates and on the wire.
    Unlimited,
    /// This amount.
    Limited(Amount),
}

impl From<SafeCapacity> for f64 {
    fn from(safe: SafeCapacity) -> Self {
        match safe {
            SafeCapacity::Unlimited => -1.0,
            SafeCapacity::Limited(amount) => amount.get(),
        }
    }
}

/// Division of a resource, with all defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Algorithm {
    /// The rule.
    pub kind: AlgorithmKind,
    /// Lease length.
    pub lease_length: Duration,
    /// Time between two requests of a client. Shorter than the lease.
    pub refresh_interval: Duration,
    /// Time for which a new master only confirms reported leases. Zero: not at all.
    pub learning_mode_duration: Duration,
    /// Rule for when a shrunk grant frees capacity.
    pub shrink: Shrink,
    /// Factor for a child server's refresh interval, per level of its height.
    pub decay_factor: f64,
    /// Fractions of the capacity guaranteed to priorities (PRIORITY_BANDS), sum at most 1.
    pub min_shares: BTreeMap<i64, f64>,
    /// How a budget is given out (BUDGET).
    pub budget: Option<Box<BudgetTerms>>,
}

impl Algorithm {
    /// Whether a new master must learn something before it decides.
    pub fn learns(&self) -> bool {
        // NO_ALGORITHM and STATIC decide by the holder's own claim.
        self.kind.promises_total() && !self.learning_mode_duration.is_zero()
    }

    /// Returns the parameters by which a template says the rest of it: their names and values.
    pub fn parameters(&self) -> Vec<(String, String)> {
        if let Some(budget) = &self.budget {
            let given = budget.given();
            return given
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect();
        }
        let shrink = match self.shrink {
            Shrink::Acknowledged => "acknowledged",
            Shrink::Immediate => "immediate",
        };
        let always = [
            ("shrink".to_owned(), shrink.to_owned()),
            ("decay_factor".to_owned(), self.decay_factor.to_string()),
        ];
        let shares = self.min_shares.iter();
        let shares = shares.map(|(band, share)| (format!("min_share.{band}"), share.to_string()));
        always.into_iter().chain(shares).collect()
    }
}

/// The default of a server until it knows the algorithm. It keeps priorities apart, since the
/// algorithm may need them.
impl Default for Algorithm {
    fn default() -> Self {
        Self {
            kind: AlgorithmKind::PriorityBands,
            lease_length: Duration::from_secs(60),
            refresh_interval: Duration::from_secs(5),
            learning_mode_duration: Duration::from_secs(60),
            shrink: Shrink::default(),
            decay_factor: 0.5,
            min_shares: BTreeMap::new(),
            budget: None,
        }
    }
}

/// Settings of operators for the resources that match a glob.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// The operator's text.
    pub identifier_glob: String,
    /// Capacity to divide.
    pub capacity: Amount,
    /// Capacity of clients in safe mode. Absent: the capacity divided by the number of clients.
    pub safe_capacity: Option<SafeCapacity>,
    /// Bounds for the statements of a single holder.
    pub holder_bounds: HolderBounds,
    /// Amount below which the share of a client that wants more counts as a shortage. Absent: no share does.
    pub share_floor: Option<Amount>,
    /// Text for people.
    pub description: String,
    /// Rule that divides the capacity.
    pub algorithm: Arc<Algorithm>,
}

/// A template before any check. `None` means absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TemplateSpec {
    /// An exact resource id, or a glob.
    pub identifier_glob: Option<String>,
    /// Capacity to divide.
    pub capacity: Option<f64>,
    /// −1: unlimited.
    pub safe_capacity: Option<f64>,
    /// Largest amount that one client can have.
    pub wants_max: Option<f64>,
    /// Largest number of clients that one child server can stand for.
    pub subclients_max: Option<f64>,
    /// Amount below which a client's share counts as a shortage.
    pub share_floor: Option<f64>,
    /// Text for people.
    pub description: Option<String>,
    /// The rule.
    pub kind: Option<AlgorithmKind>,
    /// Lease length.
    pub lease_length: Option<Duration>,
    /// Time between two requests of a client.
    pub refresh_interval: Option<Duration>,
    /// Absent: the lease length.
    pub learning_mode_duration: Option<Duration>,
    /// Named parameters of the algorithm, in order.
    pub parameters: Vec<(String, Option<String>)>,
}

/// A field of a template, to locate a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// `identifier_glob`
    IdentifierGlob,
    /// `capacity`
    Capacity,
    /// `safe_capacity`
    SafeCapacity,
    /// `wants_max`
    WantsMax,
    /// `subclients_max`
    SubclientsMax,
    /// `share_floor`
    ShareFloor,
    /// `algorithm.kind`
    Kind,
    /// `algorithm.lease_length`
    LeaseLength,
    /// `algorithm.refresh_interval`
    RefreshInterval,
    /// `algorithm.learning_mode_duration`
    LearningModeDuration,
    /// `algorithm.parameters`, and the index in it
    Parameter(usize),
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::IdentifierGlob => "identifier_glob",
            Self::Capacity => "capacity",
            Self::SafeCapacity => "safe_capacity",
            Self::WantsMax => "wants_max",
            Self::SubclientsMax => "subclients_max",
            Self::ShareFloor => "share_floor",
            Self::Kind => "algorithm.kind",
            Self::LeaseLength => "algorithm.lease_length",
            Self::RefreshInterval => "algorithm.refresh_interval",
            Self::LearningModeDuration => "algorithm.learning_mode_duration",
            Self::Parameter(index) => return write!(f, "algorithm.parameters[{index}]"),
        })
    }
}

/// A problem of a template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("template {}: {field}: {message}", index + 1)]
pub struct TemplateProblem {
    /// Template, counted from 0.
    pub index: usize,
    /// Field.
    pub field: Field,
    /// The problem, and advice.
    pub message: String,
}

/// Bounds for the statements of a single holder.
///
/// Both are absent unless an operator sets them. They bound the *statements* of holders: a wrong number in one program,
/// or a lie, counts for no more than a client can be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct HolderBounds {
    /// Largest amount that one client can have, above 0. Wants beyond it do not count, and learning mode confirms no
    /// more to any client. Absent: the template does not set it.
    pub wants_max: Option<Amount>,
    /// Largest number of clients that one child server can stand for. Absent: the template does not set it. Then the
    /// limit is the number of leases that one resource may have.
    pub subclients_max: Option<Subclients>,
}

impl HolderBounds {
    /// No bounds.
    pub const NONE: Self = Self {
        wants_max: None,
        subclients_max: None,
    };
}

#[cfg(test)]
mod tests;
