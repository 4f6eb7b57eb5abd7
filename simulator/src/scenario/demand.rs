//! What clients want over time: a number, or one of the kinds of curves, by name.

pub mod demand_player;
mod diurnal;
mod traced;

use std::time::Duration;

use doorward_documents::form::At;
use doorward_documents::placed_value::Value;

use crate::scenario::Scenario;
use crate::scenario::declared::{Fields, Written};
pub use crate::scenario::demand::diurnal::Diurnal;
pub use crate::scenario::demand::traced::Trace;
pub(super) use crate::scenario::demand::traced::trace_rows;
use crate::scenario::read::Reader;
use crate::scenario::shape::{STEP_MIN, Shape, amount, part, range, record, step, time};
use crate::scenario::write::CannotWrite;
use crate::scenario::yaml::Yaml;

kinds! {
    /// What a client wants over time. Curves that change all the time are followed in steps.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Demand, inside("{walk: {start: 15}}", "how it changes") {
        /// Always the same.
        Constant as "constant" (wants: f64 = amount(), "how much is wanted");
        /// One amount, and another from some time on.
        Step as "step" {
            /// Before.
            from: f64 = amount(), needed("how much is wanted");
            /// After.
            to: f64 = amount(), needed("how much is wanted");
            /// When.
            at: Duration = time(), needed("when it happens");
        };
        /// From one amount to another, evenly.
        Ramp as "ramp" {
            /// Before.
            from: f64 = amount(), needed("how much is wanted");
            /// After.
            to: f64 = amount(), needed("how much is wanted");
            /// When it begins.
            at: Duration = time(), needed("when it happens");
            /// How long it takes.
            length as "over": Duration = step(), needed("how long it takes");
            /// How often it steps.
            every: Duration = step(), or_from("a twentieth of `over`", |_, _| part_of(length, 20));
        };
        /// Up and down around a mean. Each client is ahead of the one before it by `shift` periods.
        Sine as "sine" {
            /// The mean.
            mean: f64 = amount(), needed("how much is wanted");
            /// How far it goes above and below; at most the mean.
            amplitude: f64 = amount(), needed("how much is wanted"),
                check(|at, amplitude, reader| is_at_most(at, *amplitude, mean, reader));
            /// From top to top.
            period: Duration = step(), needed("the time from top to top");
            /// Each client is ahead of the one before it by this part of a period, 0…1.
            shift: f64 = part(), or(0.0);
            /// How often it steps.
            every: Duration = step(), or_from("a hundredth of the period", |_, _| part_of(period, 100));
        };
        /// A day, which begins at midnight: `least` a third of a period after the peak (04:00), two thirds and more of
        /// the way up while people work, `most` at the peak. Each client is ahead of the one before it by `shift`
        /// periods.
        Diurnal as "diurnal" (day: Diurnal = record(), "how it changes");
        /// More for some time, all at once.
        Spike as "spike" {
            /// Before and after.
            base: f64 = amount(), needed("how much is wanted");
            /// Meanwhile.
            peak: f64 = amount(), needed("how much is wanted");
            /// When it begins.
            at: Duration = time(), needed("when it happens");
            /// How long it lasts.
            length as "for": Duration = step(), needed("how long it lasts");
        };
        /// At once, and then every so often, multiplied by a factor by chance.
        Walk as "walk" {
            /// At the start, before the first step, which is made at once.
            start: f64 = amount(), needed("how much is wanted");
            /// The least and the largest factor.
            factor: (f64, f64) = range(0.0, 1e6), or((0.9, 1.1));
            /// How often.
            every: Duration = step(), or(Duration::from_secs(10));
        };
        /// Two amounts in turn, for times by chance around these means (exponential).
        OnOff as "on_off" {
            // Not `on` and `off`: YAML takes them for truth values.
            /// While on.
            on as "peak": f64 = amount(), needed("how much is wanted");
            /// While off.
            off as "base": f64 = amount(), or(0.0);
            /// How long it is on, on average.
            on_for: Duration = step(), needed("how long it is on, on average");
            /// How long it is off, on average.
            off_for: Duration = step(), needed("how long it is off, on average");
        };
        /// A crowd that comes quickly and goes slowly.
        FlashCrowd as "flash_crowd" {
            /// Before, and in the end.
            base: f64 = amount(), needed("how much is wanted");
            /// At the top.
            peak: f64 = amount(), needed("how much is wanted");
            /// When it begins.
            at: Duration = time(), needed("when it happens");
            /// From the base to the top.
            rise: Duration = step(), needed("how long it is from the base to the peak");
            /// From the top, how long until half of what is above the base is gone.
            half_life: Duration = step(), needed("how long it is until half of it is gone");
            /// How often it steps.
            every: Duration = step(), or_from("a tenth of the shorter of the two before", |_, _| {
                part_of(rise.zip(half_life).map(|(rise, half)| rise.min(half)), 10)
            });
        };
        /// What was measured: a client for each in the trace.
        Trace as "trace" (trace: Trace = traced::trace(), "how it changes");
    }
}

fn part_of(time: Option<Duration>, parts: u32) -> Option<Duration> {
    time.map(|time| (time / parts).max(STEP_MIN))
}

fn is_at_most(at: &At<'_>, amplitude: f64, mean: Option<f64>, reader: &mut Reader<'_>) {
    if let Some(mean) = mean.filter(|mean| amplitude > *mean) {
        let message = format!("is more than the mean, {mean}; nobody wants less than nothing");
        reader.problems.wrong(at, message);
    }
}

/// A number, or how it changes.
pub(super) fn demand() -> Shape<Demand> {
    const EXAMPLE: &str = "{walk: {start: 15}}";
    Shape::new("amount, or one of the kinds below", |at, r| {
        let Value::Map(_) = at.node.value else {
            if at.node.value.as_number().is_none() {
                let expected = format!("a number, or how it changes, as in {EXAMPLE}");
                r.problems.refuse(at, &expected);
                return None;
            }
            return amount().read(at, r).map(Demand::Constant);
        };
        let map = at.map(EXAMPLE, &mut r.problems)?;
        if map.chosen(Demand::KINDS).is_some() {
            let known: Vec<[&str; 1]> = Demand::KINDS.iter().map(|kind| [*kind]).collect();
            let known: Vec<&[&str]> = known.iter().map(|it| &it[..]).collect();
            map.check_keys(&known, &mut r.problems);
        }
        Demand::read_fields(&map, r)
    })
}

impl Written for Demand {
    fn written(&self, of: &Scenario) -> Result<Yaml, CannotWrite> {
        if let Self::Constant(wants) = self {
            return wants.written(of);
        }
        let mut out = Yaml::map();
        self.write_fields(&mut out, of)?;
        Ok(out)
    }
}
