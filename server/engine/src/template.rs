//! Resource templates: what operators say about resources.
//!
//! A resource has no existence of its own: it is created when a holder asks for it, and takes its
//! capacity and algorithm from the template that matches its id. Matching is Doorman's: first a
//! template whose `identifier_glob` *is* the id, then the first in order whose glob matches it. A
//! catch-all `*` must be the last one.
//!
//! [`Templates::parse`] finds every problem at once; after it nothing checks again.

mod check;
mod holder_bounds;
mod lengths;
mod set;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

pub use holder_bounds::HolderBounds;
pub use set::Templates;
use thiserror::Error;

use crate::amount::Amount;

/// The longest lease, learning mode or refresh interval: a week. A lease that outlives a week is
/// a typo, and capacity lost to a crashed client for as long.
pub const DURATION_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// The shortest lease or refresh interval. Below it a server would serve nothing but refreshes.
pub(crate) const DURATION_MIN: Duration = Duration::from_millis(10);

/// The most templates in one set.
pub(crate) const TEMPLATES_MAX: usize = 10_000;

/// How a resource's capacity is divided. See `docs/algorithms.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlgorithmKind {
    /// Everyone gets what it wants; the capacity is not looked at.
    NoAlgorithm,
    /// Everyone gets what it wants up to the capacity, which is per client.
    Static,
    /// An equal share for everyone, then what is left in proportion to what is still wanted.
    ProportionalShare,
    /// Max-min fairness: no holder gets more than a level while one that wants more gets less.
    FairShare,
    /// Guaranteed minimums, then priority by priority from the highest, fair inside each.
    PriorityBands,
}

impl AlgorithmKind {
    /// Every kind.
    pub const ALL: [Self; 5] = [
        Self::NoAlgorithm,
        Self::Static,
        Self::ProportionalShare,
        Self::FairShare,
        Self::PriorityBands,
    ];

    /// The name templates use.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoAlgorithm => "NO_ALGORITHM",
            Self::Static => "STATIC",
            Self::ProportionalShare => "PROPORTIONAL_SHARE",
            Self::FairShare => "FAIR_SHARE",
            Self::PriorityBands => "PRIORITY_BANDS",
        }
    }

    /// Whether it looks at priorities.
    pub const fn has_bands(self) -> bool {
        matches!(self, Self::PriorityBands)
    }

    /// Whether Σ gets ≤ capacity is promised. NO_ALGORITHM and STATIC promise no total, so there
    /// is nothing to reserve and nothing to learn.
    pub const fn promises_total(self) -> bool {
        !matches!(self, Self::NoAlgorithm | Self::Static)
    }
}

impl fmt::Display for AlgorithmKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// When a shrunk grant frees capacity for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Shrink {
    /// Once the holder has acknowledged it, or its older lease has expired. Never overshoots.
    #[default]
    Acknowledged,
    /// At once (Doorman's rule): may overshoot for up to a refresh interval.
    Immediate,
}

/// What a client in safe mode falls back to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SafeCapacity {
    /// No limit; −1 in templates and on the wire.
    Unlimited,
    /// That much.
    Limited(Amount),
}

/// How a resource is divided, with all defaults filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct Algorithm {
    /// The rule.
    pub kind: AlgorithmKind,
    /// How long a lease lasts.
    pub lease_length: Duration,
    /// How long a client waits between two requests. Shorter than the lease.
    pub refresh_interval: Duration,
    /// How long a fresh master only confirms what holders say they have. Zero: it does not.
    pub learning_mode_duration: Duration,
    /// When a shrunk grant frees capacity for others.
    pub shrink: Shrink,
    /// What a child server's refresh interval is multiplied with per level of its height.
    pub decay_factor: f64,
    /// Fractions of the capacity guaranteed to priorities (PRIORITY_BANDS), sum at most 1.
    pub min_shares: BTreeMap<i64, f64>,
}

impl Algorithm {
    /// Whether a fresh master has anything to learn before it decides, and is to.
    pub fn learns(&self) -> bool {
        // NO_ALGORITHM and STATIC decide by the holder's own claim.
        self.kind.promises_total() && !self.learning_mode_duration.is_zero()
    }
}

/// The default of a server until it knows how a resource is divided: priorities are
/// kept apart, since they may turn out to matter.
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
        }
    }
}

/// What operators say about the resources that match a glob.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// As the operator wrote it.
    pub identifier_glob: String,
    /// What there is to share.
    pub capacity: Amount,
    /// For clients in safe mode. Absent: the capacity divided by the number of clients.
    pub safe_capacity: Option<SafeCapacity>,
    /// What counts of what a single holder says.
    pub holder_bounds: HolderBounds,
    /// For people.
    pub description: String,
    /// How it is shared.
    pub algorithm: Algorithm,
}

/// A template as somebody wrote it, before anything is checked. `None` means absent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TemplateSpec {
    /// An exact resource id, or a glob.
    pub identifier_glob: Option<String>,
    /// What there is to share.
    pub capacity: Option<f64>,
    /// −1: unlimited.
    pub safe_capacity: Option<f64>,
    /// The most that one client can have.
    pub wants_max: Option<f64>,
    /// The most clients that one child server can stand for.
    pub subclients_max: Option<f64>,
    /// For people.
    pub description: Option<String>,
    /// The rule.
    pub kind: Option<AlgorithmKind>,
    /// How long a lease lasts.
    pub lease_length: Option<Duration>,
    /// How long a client waits between two requests.
    pub refresh_interval: Option<Duration>,
    /// Absent: the lease length.
    pub learning_mode_duration: Option<Duration>,
    /// Named parameters of the algorithm, in order.
    pub parameters: Vec<(String, Option<String>)>,
}

/// A field of a template, to say where a problem is.
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
    /// `algorithm.kind`
    Kind,
    /// `algorithm.lease_length`
    LeaseLength,
    /// `algorithm.refresh_interval`
    RefreshInterval,
    /// `algorithm.learning_mode_duration`
    LearningModeDuration,
    /// `algorithm.parameters`, and which of them
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
            Self::Kind => "algorithm.kind",
            Self::LeaseLength => "algorithm.lease_length",
            Self::RefreshInterval => "algorithm.refresh_interval",
            Self::LearningModeDuration => "algorithm.learning_mode_duration",
            Self::Parameter(index) => return write!(f, "algorithm.parameters[{index}]"),
        })
    }
}

/// One thing that is wrong with a template.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("template {}: {field}: {message}", index + 1)]
pub struct TemplateProblem {
    /// Which template, counted from 0.
    pub index: usize,
    /// Which field.
    pub field: Field,
    /// What is wrong and what to do.
    pub message: String,
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
