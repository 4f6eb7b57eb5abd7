//! Resource templates: what operators say about resources.
//!
//! A resource has no existence of its own: it comes to be when somebody asks for it, and takes its
//! capacity and algorithm from the template that matches its id. Matching is Doorman's: first a
//! template whose `identifier_glob` *is* the id, then the first in order whose glob matches it. A
//! catch-all `*` must be the last one.
//!
//! [`Templates::parse`] finds every problem at once; after it nothing checks again.

mod holder_bounds;
mod lengths;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

pub use holder_bounds::HolderBounds;
use thiserror::Error;

use crate::amount::Amount;
use crate::glob::Glob;
use crate::id::{ID_BYTES_MAX, ResourceId};

/// The longest lease, learning mode or refresh interval: a week. A lease that outlives a week is
/// a typo, and capacity lost to a crashed client for as long.
pub const DURATION_MAX: Duration = Duration::from_secs(7 * 24 * 3600);

/// The shortest lease or refresh interval. Below it a server would serve nothing but refreshes.
pub const DURATION_MIN: Duration = Duration::from_millis(10);

/// The most templates in one set.
pub const TEMPLATES_MAX: usize = 10_000;

/// How a resource's capacity is divided. See `docs/algorithms.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlgorithmKind {
    /// Everyone gets what it wants; the capacity is not looked at.
    NoAlgorithm,
    /// Everyone gets what it wants up to the capacity, which is per client.
    Static,
    /// An equal share for everyone, then what is left in proportion to what is still wanted.
    ProportionalShare,
    /// Max-min fairness: a level that nobody is above while somebody who wants more is below.
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

/// What a server goes by as long as nobody has told it how a resource is divided: priorities are
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

/// A set of templates that is in order.
#[derive(Clone, Debug, Default)]
pub struct Templates {
    in_order: Vec<(Glob, Arc<Template>)>,
    /// Index into `in_order` by the text of the glob.
    exact: BTreeMap<String, usize>,
}

impl Templates {
    /// Checks templates and their order.
    ///
    /// # Errors
    ///
    /// Every problem there is, in the order of the templates and their fields.
    pub fn parse(specs: &[TemplateSpec]) -> Result<Self, Vec<TemplateProblem>> {
        let mut problems = Vec::new();
        let mut templates = Self::default();
        for (index, spec) in specs.iter().enumerate().take(TEMPLATES_MAX) {
            let mut check = Check {
                index,
                problems: &mut problems,
            };
            let glob = check.glob(spec);
            if let Some(text) = &spec.identifier_glob {
                if let Some(earlier) = templates.exact.get(text) {
                    check.problem(
                        Field::IdentifierGlob,
                        format!("{text:?} is template {} already; remove one", earlier + 1),
                    );
                } else {
                    templates.exact.insert(text.clone(), index);
                }
                if text == "*" && index + 1 < specs.len() {
                    check.problem(
                        Field::IdentifierGlob,
                        "the catch-all \"*\" must be the last template; no later glob would be \
                         reached",
                    );
                }
            }
            if let (Some(template), Some(glob)) = (check.template(spec), glob) {
                templates.in_order.push((glob, Arc::new(template)));
            }
        }
        if specs.len() > TEMPLATES_MAX {
            problems.push(TemplateProblem {
                index: TEMPLATES_MAX,
                field: Field::IdentifierGlob,
                message: format!(
                    "there are {} templates; at most {TEMPLATES_MAX}",
                    specs.len()
                ),
            });
        }
        if problems.is_empty() {
            Ok(templates)
        } else {
            Err(problems)
        }
    }

    /// The template for a resource: the one whose glob is the id, else the first whose glob
    /// matches it.
    pub fn find(&self, resource: &ResourceId) -> Option<&Arc<Template>> {
        self.find_with_position(resource)
            .map(|(_, template)| template)
    }

    /// The same, and the number of the template, counted from 0.
    pub fn find_with_position(&self, resource: &ResourceId) -> Option<(usize, &Arc<Template>)> {
        let id = resource.as_str();
        let exact = self.exact.get(id).copied();
        let position = exact
            .filter(|index| *index < self.in_order.len())
            .or_else(|| {
                let mut globs = self.in_order.iter();
                globs.position(|(glob, _)| glob.matches(id))
            })?;
        let (_, template) = self.in_order.get(position)?;
        Some((position, template))
    }

    /// The templates in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<Template>> {
        self.in_order.iter().map(|(_, template)| template)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.in_order.len()
    }

    /// Whether there are none: every resource is unknown.
    pub fn is_empty(&self) -> bool {
        self.in_order.is_empty()
    }
}

/// Checks one template.
struct Check<'a> {
    index: usize,
    problems: &'a mut Vec<TemplateProblem>,
}

impl Check<'_> {
    fn problem(&mut self, field: Field, message: impl Into<String>) {
        self.problems.push(TemplateProblem {
            index: self.index,
            field,
            message: message.into(),
        });
    }

    fn glob(&mut self, spec: &TemplateSpec) -> Option<Glob> {
        let field = Field::IdentifierGlob;
        match spec.identifier_glob.as_deref() {
            None => self.problem(field, "is missing; give a resource id or a glob"),
            Some("") => self.problem(field, "is empty; give a resource id or a glob"),
            Some(text) if text.len() > ID_BYTES_MAX => {
                self.problem(
                    field,
                    format!(
                        "is {} bytes long; the longest is {ID_BYTES_MAX}",
                        text.len()
                    ),
                );
            }
            Some(text) => match Glob::parse(text) {
                Ok(glob) => return Some(glob),
                Err(error) => self.problem(field, error.to_string()),
            },
        }
        None
    }

    /// The template, if every field it needs is in order. Reports everything that is not.
    fn template(&mut self, spec: &TemplateSpec) -> Option<Template> {
        let capacity = self.capacity(spec);
        let safe_capacity = self.safe_capacity(spec);
        let holder_bounds = self.holder_bounds(spec);
        if spec.kind.is_none() {
            self.problem(Field::Kind, format!("is missing; give one of {}", kinds()));
        }
        let lease_length = self.duration(Field::LeaseLength, spec.lease_length, DURATION_MIN);
        let refresh_interval =
            self.duration(Field::RefreshInterval, spec.refresh_interval, DURATION_MIN);
        if let (Some(lease), Some(refresh)) = (lease_length, refresh_interval)
            && refresh >= lease
        {
            self.problem(
                Field::RefreshInterval,
                format!(
                    "is {refresh:?}, not shorter than the lease length of {lease:?}: every lease \
                     would expire before it is refreshed",
                ),
            );
        }
        let learning = match spec.learning_mode_duration {
            None => lease_length,
            given => self.duration(Field::LearningModeDuration, given, Duration::ZERO),
        };
        let parameters = self.parameters(spec);
        Some(Template {
            identifier_glob: spec.identifier_glob.clone()?,
            capacity: capacity?,
            safe_capacity,
            holder_bounds,
            description: spec.description.clone().unwrap_or_default(),
            algorithm: Algorithm {
                kind: spec.kind?,
                lease_length: lease_length?,
                refresh_interval: refresh_interval?,
                learning_mode_duration: learning?,
                shrink: parameters.shrink,
                decay_factor: parameters.decay_factor,
                min_shares: parameters.min_shares,
            },
        })
    }

    fn capacity(&mut self, spec: &TemplateSpec) -> Option<Amount> {
        let Some(capacity) = spec.capacity else {
            self.problem(Field::Capacity, "is missing; give what there is to share");
            return None;
        };
        Amount::new(capacity)
            .map_err(|error| self.problem(Field::Capacity, error.to_string()))
            .ok()
    }

    fn safe_capacity(&mut self, spec: &TemplateSpec) -> Option<SafeCapacity> {
        let given = spec.safe_capacity?;
        #[expect(
            clippy::float_cmp,
            reason = "-1 is exactly -1, a mark and not a quantity"
        )]
        if given == -1.0 {
            return Some(SafeCapacity::Unlimited);
        }
        match Amount::new(given) {
            Ok(amount) => Some(SafeCapacity::Limited(amount)),
            Err(error) => {
                self.problem(Field::SafeCapacity, format!("{error} (-1 means no limit)"));
                None
            }
        }
    }

    fn duration(
        &mut self,
        field: Field,
        given: Option<Duration>,
        min: Duration,
    ) -> Option<Duration> {
        let Some(duration) = given else {
            self.problem(
                field,
                "is missing; give seconds, or a duration such as 15s or 2m",
            );
            return None;
        };
        if duration < min {
            self.problem(field, format!("is {duration:?}; the shortest is {min:?}"));
            return None;
        }
        if duration > DURATION_MAX {
            self.problem(
                field,
                format!("is {duration:?}; the longest is {DURATION_MAX:?}"),
            );
            return None;
        }
        Some(duration)
    }

    fn parameters(&mut self, spec: &TemplateSpec) -> Parameters {
        let mut parameters = Parameters::default();
        let mut earlier = BTreeSet::new();
        for (index, (name, value)) in spec.parameters.iter().enumerate() {
            let field = Field::Parameter(index);
            if !earlier.insert(name) {
                self.problem(field, format!("{name} is given twice; remove one"));
                continue;
            }
            let value = value.as_deref().unwrap_or_default();
            if let Err(message) = parameters.set(name, value, spec.kind) {
                self.problem(field, message);
            }
        }
        let guaranteed: f64 = parameters.min_shares.values().sum();
        if guaranteed > 1.0 + 1e-12 {
            let is_share = |(name, _): &(String, _)| name.starts_with(MIN_SHARE);
            let last = spec.parameters.iter().rposition(is_share);
            self.problem(
                Field::Parameter(last.unwrap_or_default()),
                format!("the min_share parameters add up to {guaranteed}; at most 1"),
            );
        }
        parameters
    }
}

/// What the name of a guarantee starts with; its priority follows.
const MIN_SHARE: &str = "min_share.";

/// The named parameters of an algorithm.
struct Parameters {
    shrink: Shrink,
    decay_factor: f64,
    min_shares: BTreeMap<i64, f64>,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            shrink: Shrink::default(),
            decay_factor: 0.5,
            min_shares: BTreeMap::new(),
        }
    }
}

impl Parameters {
    fn set(&mut self, name: &str, value: &str, kind: Option<AlgorithmKind>) -> Result<(), String> {
        match name {
            "shrink" => {
                self.shrink = match value {
                    "acknowledged" => Shrink::Acknowledged,
                    "immediate" => Shrink::Immediate,
                    other => {
                        return Err(format!(
                            "shrink is {other:?}; give acknowledged or immediate"
                        ));
                    }
                };
            }
            "decay_factor" => {
                self.decay_factor = value
                    .parse()
                    .ok()
                    .filter(|factor| (0.01..=100.0).contains(factor))
                    .ok_or_else(|| {
                        format!("decay_factor is {value:?}; give a number from 0.01 to 100")
                    })?;
            }
            _ => {
                let Some(priority) = name.strip_prefix(MIN_SHARE) else {
                    return Err(format!(
                        "{name:?} is unknown; known are shrink, decay_factor and \
                         min_share.<priority>"
                    ));
                };
                if kind.is_some_and(|kind| kind != AlgorithmKind::PriorityBands) {
                    return Err(format!("only PRIORITY_BANDS takes {name}; remove it"));
                }
                let priority: i64 = priority.parse().map_err(|_| {
                    format!("{priority:?} is not a priority; give a whole number of 64 bits")
                })?;
                let share: f64 = value
                    .parse()
                    .ok()
                    .filter(|share| (0.0..=1.0).contains(share))
                    .ok_or_else(|| format!("{name} is {value:?}; give a number from 0 to 1"))?;
                if self.min_shares.insert(priority, share).is_some() {
                    return Err(format!("{name} is given twice; remove one"));
                }
            }
        }
        Ok(())
    }
}

/// The kinds, for messages.
fn kinds() -> String {
    AlgorithmKind::ALL.map(AlgorithmKind::as_str).join(", ")
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
