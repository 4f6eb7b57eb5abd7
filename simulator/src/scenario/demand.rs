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
    Amount, Form, Part, Read, STEP_MIN, Step, Time, UNSAID, Within, is_within, refuse, seconds,
    unsaid,
};

/// The demand of a client over time. Curves that change all the time are followed in steps.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub enum Demand {
    /// Always the same.
    Constant(#[serde(with = "Amount")] f64),
    /// One amount, and another one from some time on.
    Step {
        /// The amount before.
        #[serde(with = "Amount")]
        from: f64,
        /// The amount after.
        #[serde(with = "Amount")]
        to: f64,
        /// The time of the change.
        #[serde(with = "Time")]
        at: Duration,
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
        #[serde(with = "Amount")]
        start: f64,
        /// The least and the largest factor.
        #[serde(default = "walk_factor")]
        factor: (f64, f64),
        /// The time between two steps.
        #[serde(default = "seconds::<10>", with = "Step")]
        every: Duration,
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
    #[serde(with = "Amount")]
    pub from: f64,
    /// The amount after.
    #[serde(with = "Amount")]
    pub to: f64,
    /// The time of the first step.
    #[serde(with = "Time")]
    pub at: Duration,
    /// The duration of the ramp.
    #[serde(rename = "over", with = "Step")]
    pub length: Duration,
    /// The time between two steps. Absent: a twentieth of `over`.
    #[serde(default = "unsaid", with = "Step")]
    pub every: Duration,
}

/// Up and down around a mean.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct Sine {
    /// The mean.
    #[serde(with = "Amount")]
    pub mean: f64,
    /// The distance above and below the mean; at most the mean.
    #[serde(with = "Amount")]
    pub amplitude: f64,
    /// The time from top to top.
    #[serde(with = "Step")]
    pub period: Duration,
    /// Each client is ahead of the one before it by this part of a period.
    #[serde(default, with = "Part")]
    pub shift: f64,
    /// The time between two steps. Absent: a hundredth of the period.
    #[serde(default = "unsaid", with = "Step")]
    pub every: Duration,
}

/// More for some time, all at once.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct Spike {
    /// The amount before and after.
    #[serde(with = "Amount")]
    pub base: f64,
    /// The amount meanwhile.
    #[serde(with = "Amount")]
    pub peak: f64,
    /// The time of the first change.
    #[serde(with = "Time")]
    pub at: Duration,
    /// The duration of the spike.
    #[serde(rename = "for", with = "Step")]
    pub length: Duration,
}

/// Two amounts in turn, for random times around these means (exponential).
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct OnOff {
    /// The amount while it is on. (YAML takes `on` and `off` for truth values.)
    #[serde(rename = "peak", with = "Amount")]
    pub on: f64,
    /// The amount while it is off.
    #[serde(default, rename = "base", with = "Amount")]
    pub off: f64,
    /// The mean time for which it is on.
    #[serde(with = "Step")]
    pub on_for: Duration,
    /// The mean time for which it is off.
    #[serde(with = "Step")]
    pub off_for: Duration,
}

/// A crowd that comes quickly and goes slowly.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub struct FlashCrowd {
    /// The amount before, and in the end.
    #[serde(with = "Amount")]
    pub base: f64,
    /// The amount at the top.
    #[serde(with = "Amount")]
    pub peak: f64,
    /// The time of the first change.
    #[serde(with = "Time")]
    pub at: Duration,
    /// The time from the base to the top.
    #[serde(with = "Step")]
    pub rise: Duration,
    /// The time from the top until half of the crowd is gone.
    #[serde(with = "Step")]
    pub half_life: Duration,
    /// The time between two steps. Absent: a tenth of the shorter one of `rise` and `half_life`.
    #[serde(default = "unsaid", with = "Step")]
    pub every: Duration,
}

const fn walk_factor() -> (f64, f64) {
    (0.9, 1.1)
}

impl Demand {
    /// Fills in the defaults that depend on other fields, and checks what depends on them.
    pub(super) fn complete(&mut self, end: Duration) -> Read<()> {
        let fill = |every: &mut Duration, of: Duration, parts: u32| {
            if *every == UNSAID {
                *every = (of / parts).max(STEP_MIN);
            }
        };
        match self {
            Self::Step { at, .. } => is_within(*at, end).within("step.at")?,
            Self::Spike(it) => is_within(it.at, end).within("spike.at")?,
            Self::Ramp(it) => {
                is_within(it.at, end).within("ramp.at")?;
                fill(&mut it.every, it.length, 20);
            }
            Self::FlashCrowd(it) => {
                is_within(it.at, end).within("flash_crowd.at")?;
                fill(&mut it.every, it.rise.min(it.half_life), 10);
            }
            Self::Sine(it) => {
                let (mean, amplitude) = (it.mean, it.amplitude);
                if amplitude > mean {
                    let message = format!("is {amplitude}; give at most the mean, {mean}");
                    return refuse("sine.amplitude", message);
                }
                fill(&mut it.every, it.period, 100);
            }
            Self::Diurnal(day) => {
                day.complete().within("diurnal")?;
                fill(&mut day.every, day.period, 100);
            }
            Self::Walk { factor, .. } => {
                let (least, most) = *factor;
                if !(0.0 <= least && least <= most && most <= 1e6) {
                    let message = "give the least and the largest factor, as in [0.9, 1.1]";
                    return refuse("walk.factor", message);
                }
            }
            Self::Constant(_) | Self::OnOff(_) | Self::Trace(_) => {}
        }
        Ok(())
    }
}

/// A number, or a kind of demand.
pub(super) struct DemandForm;

impl Form for DemandForm {
    type Value = Demand;

    fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Demand, D::Error> {
        let demand = match Value::deserialize(from)? {
            kind @ Value::Object(_) => Demand::deserialize(kind),
            wants => Amount::deserialize(wants).map(Demand::Constant),
        };
        demand.map_err(D::Error::custom)
    }
}
