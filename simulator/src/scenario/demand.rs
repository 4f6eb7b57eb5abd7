//! What clients want over time.

mod diurnal;
pub mod player;

use std::time::Duration;

pub use crate::scenario::demand::diurnal::Diurnal;
use crate::trace::Source;

/// What a client wants over time. Curves that change all the time are followed in steps.
#[derive(Clone, Debug, PartialEq)]
pub enum Demand {
    /// Always the same.
    Constant(f64),
    /// One amount, and another from some time on.
    Step {
        /// Before.
        from: f64,
        /// After.
        to: f64,
        /// When.
        at: Duration,
    },
    /// From one amount to another, evenly.
    Ramp {
        /// Before.
        from: f64,
        /// After.
        to: f64,
        /// When it begins.
        at: Duration,
        /// How long it takes.
        length: Duration,
        /// How often it steps.
        every: Duration,
    },
    /// Up and down around a mean.
    Sine {
        /// The mean.
        mean: f64,
        /// How far it goes above and below; at most the mean.
        amplitude: f64,
        /// From top to top.
        period: Duration,
        /// Each client is ahead of the one before it by this part of a period, 0…1.
        shift: f64,
        /// How often it steps.
        every: Duration,
    },
    /// As people's days go.
    Diurnal(Diurnal),
    /// More for some time, all at once.
    Spike {
        /// Before and after.
        base: f64,
        /// Meanwhile.
        peak: f64,
        /// When it begins.
        at: Duration,
        /// How long it lasts.
        length: Duration,
    },
    /// Multiplied by chance every so often.
    Walk {
        /// At the start, before the first step, which is made at once.
        start: f64,
        /// The least and the largest factor.
        factor: (f64, f64),
        /// How often.
        every: Duration,
    },
    /// On and off, for times by chance around these means (exponential).
    OnOff {
        /// While on.
        on: f64,
        /// While off.
        off: f64,
        /// How long it is on, on average.
        on_for: Duration,
        /// How long it is off, on average.
        off_for: Duration,
    },
    /// A crowd that comes quickly and goes slowly.
    FlashCrowd {
        /// Before, and in the end.
        base: f64,
        /// At the top.
        peak: f64,
        /// When it begins.
        at: Duration,
        /// From the base to the top.
        rise: Duration,
        /// From the top, how long until half of what is above the base is gone.
        half_life: Duration,
        /// How often it steps.
        every: Duration,
    },
    /// As a trace has it, a client each.
    Trace(Trace),
}

/// A trace, and how it is played.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Where it is.
    pub source: Source,
    /// What its clients are called here, in the order in which they first appear.
    pub clients: Vec<String>,
    /// The time of its last row.
    pub length: Duration,
    /// Its clock is divided by this: 2 plays it twice as fast.
    pub speed: f64,
    /// Its amounts are multiplied by this.
    pub scale: f64,
    /// How often it is played, one after the other.
    pub repeat: u32,
}
