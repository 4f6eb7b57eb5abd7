//! Resources that a client uses, and limiters that keep its use within the lease.

use std::path::Path;
use std::time::Duration;

use doorward::limiter::demand::AdaptiveWants;
use doorward::state::Mode;
use doorward_engine::id::ResourceId;
use doorward_engine::templates::AlgorithmKind;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::scenario::demand::{Demand, DemandForm};
use crate::scenario::forms::{
    Amount, Cost, Count, Form, Headroom, Maybe, Read, Span, Window, Within, refuse,
};
use crate::scenario::{Scenario, Span as TimeSpan, templates};

/// A resource that each client of a group uses.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Usage {
    /// The id of the resource. A template must match it. Absent: that of the only template for a single resource.
    #[serde(default = "unsaid_resource", with = "ResourceForm")]
    pub resource: ResourceId,
    /// With `PRIORITY_BANDS`, higher priorities come first.
    #[serde(default)]
    pub priority: i64,
    /// The use without a lease: the safe capacity, nothing (pessimistic), or all demand (optimistic).
    #[serde(default, with = "ModeForm")]
    pub mode: Mode,
    /// The amount that each of them wants over time. With a limiter: the load at the limiter.
    #[serde(rename = "wants", with = "DemandForm")]
    pub demand: Demand,
    /// A limiter of the client library. Absent: they use all that they want and may use at once.
    #[serde(default)]
    pub limiter: Option<Limiter>,
}

/// The resource of a usage that says none, until it is known.
const UNSAID_RESOURCE: &str = "(the only one)";

fn unsaid_resource() -> ResourceId {
    #[expect(clippy::unwrap_used, reason = "the literal is an id")]
    ResourceId::new(UNSAID_RESOURCE).unwrap()
}

/// The mode of a client.
#[derive(Deserialize)]
#[serde(remote = "Mode", rename_all = "snake_case")]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema), schemars(inline))]
enum ModeForm {
    Safe,
    Pessimistic,
    Optimistic,
}

/// The id of a resource.
pub(super) struct ResourceForm;

impl Form for ResourceForm {
    type Value = ResourceId;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<ResourceId, D::Error> {
        ResourceId::new(&String::deserialize(from)?).map_err(D::Error::custom)
    }
}

/// A limiter of the client library, and what comes to it: `rate`, `budget`, or `concurrency` and `for`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Limiter {
    /// A rate limiter, and the cost of each request. `wants` counts per second.
    #[serde(default, with = "Maybe::<Cost>")]
    pub rate: Option<f64>,
    /// The limiter of a budget, and the amount that each call takes. `wants` counts per second.
    #[serde(default, with = "Maybe::<Count>")]
    pub budget: Option<u32>,
    /// A concurrency limiter, and the permits of each piece of work. `wants` would be in flight without limits.
    #[serde(default, with = "Maybe::<Count>")]
    pub concurrency: Option<u32>,
    /// The duration of each piece of work. With `concurrency`.
    #[serde(default, rename = "for", with = "Maybe::<Span>")]
    pub takes: Option<TimeSpan>,
    /// The client asks for measured demand. Absent: for its load.
    #[serde(default)]
    pub adaptive: Option<Adaptive>,
}

/// Settings of measured demand. Absent ones are as the library has them.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct Adaptive(#[serde(with = "AdaptiveForm")] pub AdaptiveWants);

/// Measured demand.
#[derive(Deserialize)]
#[serde(
    remote = "AdaptiveWants",
    default = "AdaptiveWants::default",
    deny_unknown_fields
)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(rename = "Adaptive"))]
struct AdaptiveForm {
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

impl Usage {
    /// Fills in the resource and the demand. There must be a template.
    pub(super) fn complete(&mut self, scenario: &Scenario, folder: &Path) -> Read<()> {
        if self.resource.as_str() == UNSAID_RESOURCE {
            self.resource = match templates::ids(&scenario.templates).as_slice() {
                [id] => id.clone(),
                _ => return refuse("resource", "is missing; give an id of a template"),
            };
        }
        let Some(template) = scenario.templates.find(&self.resource) else {
            let message = format!("no template matches {:?}", self.resource.as_str());
            return refuse("resource", message);
        };
        let budget = self.limiter.and_then(|it| it.budget);
        if budget.is_some() != (template.algorithm.kind == AlgorithmKind::Budget) {
            return refuse(
                "limiter",
                "a BUDGET needs {budget: COST}, and only a BUDGET",
            );
        }
        match self
            .limiter
            .map(|it| (it.rate.or(budget.map(f64::from)), it.concurrency, it.takes))
        {
            Some((None, Some(_), Some((_, Duration::ZERO)))) => {
                return refuse("limiter.for", "is no time");
            }
            None | Some((Some(_), None, None) | (None, Some(_), Some(_))) => {}
            _ => return refuse("limiter", "give rate, budget, or concurrency and for"),
        }
        if let Demand::Trace(trace) = &mut self.demand {
            trace.open(folder).within("wants")?;
        }
        self.demand.complete(scenario.duration).within("wants")
    }
}
