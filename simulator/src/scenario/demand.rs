//! Demand of clients over time: a number, or one of the kinds of curves, by name.

pub mod demand_player;
mod diurnal;
pub(in crate::scenario) mod traced;

use std::time::Duration;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

pub use crate::scenario::demand::diurnal::Diurnal;
pub use crate::scenario::demand::traced::Trace;
use crate::scenario::demand::traced::TraceForm;
use crate::scenario::forms::{
    Amount, Part, Read, STEP_MIN, Step, Time, Within, is_within, refuse, seconds,
};

/// The demand of a client over time. Curves that change all the time are followed in steps.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Demand {
    /// Always the same.
    Constant(Amount),
    /// One amount, and another one from some time on.
    Step {
        /// The amount before.
        from: Amount,
        /// The amount after.
        to: Amount,
        /// The time of the change.
        at: Time,
    },
    /// From one amount to another, evenly.
    Ramp(Ramp),
    /// Up and down around a mean.
    Sine(Sine),
    /// A day, which begins at midnight: `least` a third of a period after the peak (04:00), at least two thirds of the
    /// way up during working hours, `most` at the peak.
    Diurnal(Diurnal),
    /// More for some time, all at once.
    Spike(Spike),
    /// An amount that is multiplied by a random factor, at the start and then regularly.
    Walk {
        /// The amount before the first step.
        start: Amount,
        /// The least and the largest factor.
        #[serde(default = "walk_factor")]
        factor: (f64, f64),
        /// The time between two steps.
        #[serde(default = "seconds::<10>")]
        every: Step,
    },
    /// Two amounts in turn, for random times around these means (exponential).
    OnOff(OnOff),
    /// A crowd that comes quickly and goes slowly.
    FlashCrowd(FlashCrowd),
    /// Measured demand: a client for each one in the trace.
    Trace(#[serde(with = "TraceForm")] Trace),
}

/// From one amount to another, evenly.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct Ramp {
    /// The amount before.
    pub from: Amount,
    /// The amount after.
    pub to: Amount,
    /// The time of the first step.
    pub at: Time,
    /// The duration of the ramp.
    pub over: Step,
    /// The time between two steps. Absent: a twentieth of `over`.
    pub every: Option<Step>,
}

/// Up and down around a mean.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct Sine {
    /// The mean.
    pub mean: Amount,
    /// The distance above and below the mean; at most the mean.
    pub amplitude: Amount,
    /// The time from top to top.
    pub period: Step,
    /// Each client is ahead of the one before it by this part of a period.
    #[serde(default)]
    pub shift: Part,
    /// The time between two steps. Absent: a hundredth of the period.
    pub every: Option<Step>,
}

/// More for some time, all at once.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct Spike {
    /// The amount before and after.
    pub base: Amount,
    /// The amount meanwhile.
    pub peak: Amount,
    /// The time of the first change.
    pub at: Time,
    /// The duration of the spike.
    #[serde(rename = "for")]
    pub length: Step,
}

/// Two amounts in turn, for random times around these means (exponential).
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct OnOff {
    /// The amount while it is on. (YAML takes `on` and `off` for truth values.)
    pub peak: Amount,
    /// The amount while it is off.
    #[serde(default)]
    pub base: Amount,
    /// The mean time for which it is on.
    pub on_for: Step,
    /// The mean time for which it is off.
    pub off_for: Step,
}

/// A crowd that comes quickly and goes slowly.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct FlashCrowd {
    /// The amount before, and in the end.
    pub base: Amount,
    /// The amount at the top.
    pub peak: Amount,
    /// The time of the first change.
    pub at: Time,
    /// The time from the base to the top.
    pub rise: Step,
    /// The time from the top until half of the crowd is gone.
    pub half_life: Step,
    /// The time between two steps. Absent: a tenth of the shorter one of `rise` and `half_life`.
    pub every: Option<Step>,
}

const fn walk_factor() -> (f64, f64) {
    (0.9, 1.1)
}

/// Returns the time between two steps. Absent: one of so many parts of another time.
fn steps_of(every: Option<Step>, of: Step, parts: u32) -> Duration {
    every.map_or_else(|| (of.0 / parts).max(STEP_MIN), |every| every.0)
}

impl Demand {
    /// Checks what depends on several fields.
    pub(super) fn check(&self, end: Step) -> Read<()> {
        match self {
            Self::Step { at, .. } => is_within(*at, end).within("step.at"),
            Self::Spike(it) => is_within(it.at, end).within("spike.at"),
            Self::Ramp(it) => is_within(it.at, end).within("ramp.at"),
            Self::FlashCrowd(it) => is_within(it.at, end).within("flash_crowd.at"),
            Self::Diurnal(day) => day.check().within("diurnal"),
            Self::Sine(it) if it.amplitude > it.mean => {
                let (mean, amplitude) = (it.mean.0, it.amplitude.0);
                let message = format!("is {amplitude}; give at most the mean, {mean}");
                refuse("sine.amplitude", message)
            }
            Self::Walk { factor, .. }
                if !(0.0 <= factor.0 && factor.0 <= factor.1 && factor.1 <= 1e6) =>
            {
                let message = "give the least and the largest factor, as in [0.9, 1.1]";
                refuse("walk.factor", message)
            }
            _ => Ok(()),
        }
    }
}

/// A number, or a kind of demand.
pub(super) struct DemandForm;

impl DemandForm {
    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Demand, D::Error> {
        let demand = match Value::deserialize(from)? {
            kind @ Value::Object(_) => Demand::deserialize(kind),
            wants => Amount::deserialize(wants).map(Demand::Constant),
        };
        demand.map_err(D::Error::custom)
    }
}
