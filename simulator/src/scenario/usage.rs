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
use crate::scenario::forms::{Amount, Cost, Count, Headroom, Read, Span, Window, Within, refuse};
use crate::scenario::{Scenario, templates};

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

impl ResourceForm {
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
    pub rate: Option<Cost>,
    /// The limiter of a budget, and the amount that each call takes. `wants` counts per second.
    pub budget: Option<Count>,
    /// A concurrency limiter, and the permits of each piece of work. `wants` would be in flight without limits.
    pub concurrency: Option<Count>,
    /// The duration of each piece of work. With `concurrency`.
    #[serde(rename = "for")]
    pub takes: Option<Span>,
    /// The client asks for measured demand. Absent: for its load.
    pub adaptive: Option<Adaptive>,
}

/// Settings of measured demand.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Adaptive {
    /// The time over which demand is measured. Absent: 10 s.
    window: Option<Window>,
    /// The client asks for the measured amount times this. Absent: 1.2.
    headroom: Option<Headroom>,
    /// The client never asks for less. Absent: 1.
    least: Option<Amount>,
    /// The client never asks for more. Absent: 1e15.
    most: Option<Amount>,
}

impl Adaptive {
    /// Returns the settings of the library. Absent ones stay as the library has them.
    pub(crate) fn wants(self) -> AdaptiveWants {
        let usual = AdaptiveWants::default();
        AdaptiveWants {
            window: self.window.map_or(usual.window, |it| it.0),
            headroom: self.headroom.map_or(usual.headroom, |it| it.0),
            least: self.least.map_or(usual.least, |it| it.0),
            most: self.most.map_or(usual.most, |it| it.0),
        }
    }
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
        let is_rate = |it: Limiter| it.rate.is_some() || it.budget.is_some();
        match self
            .limiter
            .map(|it| (is_rate(it), it.concurrency, it.takes))
        {
            Some((false, Some(_), Some(Span(_, Duration::ZERO)))) => {
                return refuse("limiter.for", "is no time");
            }
            None | Some((true, None, None) | (false, Some(_), Some(_))) => {}
            _ => return refuse("limiter", "give rate, budget, or concurrency and for"),
        }
        if let Demand::Trace(trace) = &mut self.demand {
            trace.open(folder).within("wants")?;
        }
        self.demand.check(scenario.duration).within("wants")
    }
}
