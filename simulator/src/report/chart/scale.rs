//! Axes: from where to where they go, and where they have ticks. An axis of amounts begins at zero,
//! so that heights can be compared by eye.

use crate::report::figures::Unit;
use crate::report::numbers::{amount, percent};

/// A place on an axis, and what stands there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) at: f64,
    pub(super) label: String,
}

/// The upright axis.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Heights {
    /// Where it ends, above all there is; more than zero.
    pub(super) top: f64,
    pub(super) ticks: Vec<Tick>,
}

impl Heights {
    /// Up to at least a value, with about so many ticks.
    pub(super) fn new(most: f64, unit: Unit, ticks: usize) -> Self {
        let most = match unit {
            _ if most.is_finite() && most > f64::MIN_POSITIVE => most,
            // With nothing to show there is still an axis.
            Unit::Part => 0.01,
            _ => 1.0,
        };
        let mut step = nice(most / as_f64(ticks.max(1)));
        if unit == Unit::Count {
            step = step.ceil().max(1.0);
        }
        let steps = (most / step * (1.0 - 1e-9)).ceil().max(1.0);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a step is at least about a part of so many"
        )]
        let count = steps as usize;
        let ticks = (0..=count).map(|number| {
            let at = as_f64(number) * step;
            let label = match unit {
                Unit::Part => percent_tick(at, step),
                _ => amount(at),
            };
            Tick { at, label }
        });
        Self {
            top: steps * step,
            ticks: ticks.collect(),
        }
    }
}

/// The percents of an axis are all as exact as they must be to be told apart.
fn percent_tick(at: f64, step: f64) -> String {
    if step < 0.000_1 || at.abs() < 1e-12 {
        return percent(at);
    }
    let decimals = usize::from(step < 0.099) + usize::from(step < 0.009_9);
    let text = format!("{:.*}", decimals, at * 100.0);
    match text.contains('.') {
        true => format!("{} %", text.trim_end_matches('0').trim_end_matches('.')),
        false => format!("{text} %"),
    }
}

/// The smallest of 1, 2, 2.5, 5 and 10 times a power of ten that is not less.
fn nice(least: f64) -> f64 {
    let power = 10_f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0];
    let found = factor
        .into_iter()
        .find(|f| f * power >= least * (1.0 - 1e-9));
    found.unwrap_or(10.0) * power
}

/// Steps of time in which people count, in seconds.
const STEPS: [f64; 25] = [
    0.1,
    0.2,
    0.5,
    1.0,
    2.0,
    5.0,
    10.0,
    15.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
    900.0,
    1_800.0,
    3_600.0,
    7_200.0,
    10_800.0,
    21_600.0,
    43_200.0,
    86_400.0,
    172_800.0,
    604_800.0,
    2_592_000.0,
    31_536_000.0,
];

/// Ticks of time up to an end, at most so many after the first.
pub(super) fn times(end: f64, most: usize) -> Vec<Tick> {
    if !end.is_finite() || end <= 0.0 {
        return vec![Tick {
            at: 0.0,
            label: "0:00".to_owned(),
        }];
    }
    let most = as_f64(most.max(1));
    let fits = |step: &f64| end / step <= most;
    let step = STEPS.into_iter().find(fits).unwrap_or(end);
    let mut ticks = Vec::new();
    let mut number = 0;
    loop {
        let at = as_f64(number) * step;
        if at > end * (1.0 + 1e-9) {
            return ticks;
        }
        ticks.push(Tick {
            at,
            label: time_label(at, step, end),
        });
        number += 1;
    }
}

/// How the times of an axis are to be read.
pub(super) fn time_unit(end: f64, most: usize) -> &'static str {
    match times(end, most).last() {
        Some(_) if end >= DAYS => "days",
        Some(_) if end >= HOURS => "h:mm",
        _ => "m:ss",
    }
}

/// From here on the axis counts hours.
const HOURS: f64 = 3_600.0;
/// From here on the axis counts days.
const DAYS: f64 = 3.0 * 86_400.0;

fn time_label(at: f64, step: f64, end: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative; a cast saturates"
    )]
    let tenths = (at * 10.0).round() as u64;
    let seconds = tenths / 10;
    let (minutes, hours) = (seconds / 60, seconds / 3_600);
    if end >= DAYS {
        return match seconds % 86_400 {
            0 => format!("{} d", seconds / 86_400),
            rest => format!("{} d {} h", seconds / 86_400, rest / 3_600),
        };
    }
    if end >= HOURS {
        return match step < 60.0 {
            true => format!("{hours}:{:02}:{:02}", minutes % 60, seconds % 60),
            false => format!("{hours}:{:02}", minutes % 60),
        };
    }
    match step < 1.0 {
        true => format!("{minutes}:{:02}.{}", seconds % 60, tenths % 10),
        false => format!("{minutes}:{:02}", seconds % 60),
    }
}

fn as_f64(number: usize) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a number of ticks")]
    let number = number as f64;
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: &[Tick]) -> Vec<&str> {
        ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn heights_are_round_and_above_everything() {
        for (most, unit, expected) in [
            (97.0, Unit::Amount, "0 20 40 60 80 100"),
            (1_400.0, Unit::Amount, "0 500 1,000 1,500"),
            (100.0, Unit::Amount, "0 20 40 60 80 100"),
            (0.0, Unit::Amount, "0 0.2 0.4 0.6 0.8 1"),
            (f64::INFINITY, Unit::Amount, "0 0.2 0.4 0.6 0.8 1"),
            (2.0, Unit::Count, "0 1 2"),
            (12.0, Unit::Count, "0 3 6 9 12"),
            (0.0123, Unit::Part, "0 % 0.25 % 0.5 % 0.75 % 1 % 1.25 %"),
            (0.6, Unit::Part, "0 % 20 % 40 % 60 %"),
        ] {
            let heights = Heights::new(most, unit, 5);
            assert_eq!(labels(&heights.ticks).join(" "), expected, "{most}");
            assert!(heights.top >= most || most.is_infinite());
        }
    }

    #[test]
    fn times_are_in_steps_that_people_count_in() {
        for (end, expected) in [
            (0.0, "0:00"),
            (0.5, "0:00.0 0:00.1 0:00.2 0:00.3 0:00.4 0:00.5"),
            (60.0, "0:00 0:10 0:20 0:30 0:40 0:50 1:00"),
            (900.0, "0:00 2:00 4:00 6:00 8:00 10:00 12:00 14:00"),
            (3_600.0, "0:00 0:10 0:20 0:30 0:40 0:50 1:00"),
            (
                86_400.0,
                "0:00 3:00 6:00 9:00 12:00 15:00 18:00 21:00 24:00",
            ),
            (604_800.0, "0 d 1 d 2 d 3 d 4 d 5 d 6 d 7 d"),
        ] {
            assert_eq!(labels(&times(end, 8)).join(" "), expected, "{end}");
        }
    }
}
