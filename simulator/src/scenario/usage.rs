//! Resources that a client uses, and limiters that keep its use within the lease.

use std::time::Duration;

use doorward_client::limiter::demand::AdaptiveWants;
use doorward_client::state::Mode;
use doorward_engine::id::ResourceId;
use doorward_engine::template::Templates;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::scenario::demand::{Demand, DemandForm};
use crate::scenario::fault::Span as TimeSpan;
use crate::scenario::forms::{Amount, Cost, Count, Form, Headroom, Maybe, Span, Window, schema};
use crate::scenario::names::Known;
use crate::scenario::source::{Read, ReadError, Within};

/// A resource that each client of a group uses.
#[derive(Clone, Debug)]
pub struct Usage {
    /// The id. A template must match it.
    pub resource: ResourceId,
    /// Higher ones come first, with `PRIORITY_BANDS`.
    pub priority: i64,
    /// The use without a lease.
    pub mode: Mode,
    /// The demand of each of them over time. With a limiter: the load at the limiter.
    pub demand: Demand,
    /// A limiter. None: they use all that they want and may use at once.
    pub limiter: Option<Limiter>,
}

/// A resource as a file has it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Usage")]
pub(super) struct UsageFile {
    /// The id of the resource. A template must match it. Absent: that of the only template, if that is an id.
    #[serde(default, with = "Maybe::<ResourceForm>")]
    pub(super) resource: Option<ResourceId>,
    /// With `PRIORITY_BANDS`, higher priorities come first.
    #[serde(default)]
    pub(super) priority: i64,
    /// The use without a lease: the safe capacity, nothing (pessimistic), or all demand (optimistic).
    #[serde(default = "safe", with = "ModeForm")]
    pub(super) mode: Mode,
    /// The amount that each of them wants over time. With a limiter: the load at the limiter.
    #[serde(with = "DemandForm")]
    pub(super) wants: Demand,
    /// A limiter of the client library. Absent: they use all that they want and may use at once.
    #[serde(default)]
    pub(super) limiter: Option<Limiter>,
}

const fn safe() -> Mode {
    Mode::Safe
}

/// The mode of a client.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Mode", rename_all = "snake_case")]
#[schemars(inline)]
enum ModeForm {
    Safe,
    Pessimistic,
    Optimistic,
}

/// The id of a resource.
pub(super) struct ResourceForm;

schema!([] ResourceForm: |generator| String::json_schema(generator));

impl Form for ResourceForm {
    type Value = ResourceId;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ResourceId, D::Error> {
        ResourceId::new(&String::deserialize(from)?).map_err(D::Error::custom)
    }

    fn serialize<S: Serializer>(id: &ResourceId, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(id.as_str())
    }
}

/// A limiter of the client library, and what comes to it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "LimiterFile", into = "LimiterFile")]
pub struct Limiter {
    /// The kind of limiter and of work.
    pub work: Work,
    /// The client asks for what it measures at its limiter. None: for its load.
    pub adaptive: Option<AdaptiveWants>,
}

/// The kind of limiter, with the cost of each piece of work.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Work {
    /// The library's rate limiter, to which requests of that cost come: `wants` is asked for per second.
    Rate {
        /// Above 0.
        cost: f64,
    },
    /// Its concurrency limiter, to which work comes that takes so many permits for a time: `wants` would be in
    /// flight if nothing held it up.
    Concurrency {
        /// At least 1.
        permits: u32,
        /// The duration of each piece of work.
        takes: TimeSpan,
    },
}

/// A limiter: `rate` or `concurrency`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Limiter")]
struct LimiterFile {
    /// A rate limiter, and the cost of each request. `wants` counts per second.
    #[serde(default, with = "Maybe::<Cost>")]
    rate: Option<f64>,
    /// A concurrency limiter, and the permits of each piece of work. `wants` would be in flight without limits.
    #[serde(default, with = "Maybe::<Count>")]
    concurrency: Option<u32>,
    /// The duration of each piece of work. With `concurrency`.
    #[serde(default, rename = "for", with = "Maybe::<Span>")]
    takes: Option<TimeSpan>,
    /// The client asks for measured demand. Absent: for its load.
    #[serde(default)]
    adaptive: Option<AdaptiveFile>,
}

/// Measured demand.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "Adaptive")]
struct AdaptiveFile {
    /// The time over which demand is measured.
    #[serde(with = "Window")]
    window: Duration,
    /// The client asks for the measured amount times this.
    #[serde(with = "Headroom")]
    headroom: f64,
    /// The client never asks for less.
    #[serde(with = "Amount")]
    least: f64,
    /// The client never asks for more.
    #[serde(with = "Amount")]
    most: f64,
}

impl Default for AdaptiveFile {
    fn default() -> Self {
        AdaptiveWants::default().into()
    }
}

impl From<AdaptiveWants> for AdaptiveFile {
    fn from(wants: AdaptiveWants) -> Self {
        Self {
            window: wants.window,
            headroom: wants.headroom,
            least: wants.least,
            most: wants.most,
        }
    }
}

impl From<AdaptiveFile> for AdaptiveWants {
    fn from(file: AdaptiveFile) -> Self {
        Self {
            window: file.window,
            headroom: file.headroom,
            least: file.least,
            most: file.most,
        }
    }
}

impl TryFrom<LimiterFile> for Limiter {
    type Error = &'static str;

    fn try_from(file: LimiterFile) -> Result<Self, &'static str> {
        let work = match (file.rate, file.concurrency, file.takes) {
            (Some(cost), None, None) => Work::Rate { cost },
            (None, Some(_), Some((_, Duration::ZERO))) => return Err("work takes no time"),
            (None, Some(permits), Some(takes)) => Work::Concurrency { permits, takes },
            _ => return Err("give rate, or concurrency and for"),
        };
        let adaptive = file.adaptive.map(AdaptiveWants::from);
        Ok(Self { work, adaptive })
    }
}

impl From<Limiter> for LimiterFile {
    fn from(Limiter { work, adaptive }: Limiter) -> Self {
        let (rate, concurrency, takes) = match work {
            Work::Rate { cost } => (Some(cost), None, None),
            Work::Concurrency { permits, takes } => (None, Some(permits), Some(takes)),
        };
        Self {
            rate,
            concurrency,
            takes,
            adaptive: adaptive.map(AdaptiveFile::from),
        }
    }
}

impl Work {
    /// Returns the longest time of a piece of work after its admission.
    pub fn longest(&self) -> Duration {
        match self {
            Self::Rate { .. } => Duration::ZERO,
            Self::Concurrency { takes, .. } => takes.1,
        }
    }
}

impl UsageFile {
    /// The usage, with a resource for which there is a template.
    pub(super) fn resolve(mut self, known: &Known) -> Read<Usage> {
        let resource = matched(self.resource, &known.templates).within("resource")?;
        if let Demand::Trace(trace) = &mut self.wants {
            trace.open(&known.files).within("wants")?;
        }
        self.wants.complete(known.end).within("wants")?;
        Ok(Usage {
            resource,
            priority: self.priority,
            mode: self.mode,
            demand: self.wants,
            limiter: self.limiter,
        })
    }

    /// The usage as a file has it.
    pub(super) fn of(usage: &Usage) -> Self {
        Self {
            resource: Some(usage.resource.clone()),
            priority: usage.priority,
            mode: usage.mode,
            wants: usage.demand.clone(),
            limiter: usage.limiter,
        }
    }
}

/// The resource of a usage, for which there must be a template. Absent: the only one there is.
fn matched(id: Option<ResourceId>, templates: &Templates) -> Read<ResourceId> {
    let mut globs = templates.iter().map(|it| it.identifier_glob.as_str());
    let id = match (id, globs.next(), globs.next()) {
        (None, Some(only), None) if !only.contains(['*', '?', '[', '\\']) => {
            ResourceId::new(only).ok()
        }
        (id, ..) => id,
    };
    let id = id.ok_or_else(|| ReadError::new("", "is missing; give an id of a template"))?;
    match templates.find(&id) {
        Some(_) => Ok(id),
        None => {
            let message = format!("no template matches {:?}", id.as_str());
            Err(ReadError::new("", message))
        }
    }
}
