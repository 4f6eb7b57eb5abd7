//! Demand of clients over time: every kind of curve.

use std::time::Duration;

use crate::chance::Chance;
use crate::scenario::demand::{Demand, Diurnal};

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Draws a curve around an amount.
pub(super) fn draw(chance: &mut Chance, amount: f64) -> Demand {
    let every = seconds(1 + chance.below(20) as u64);
    let at = chance.duration(seconds(10), seconds(180));
    let long = chance.duration(seconds(5), seconds(100));
    let low = amount * chance.pick([0.0, 0.1, 0.5]);
    match chance.below(14) {
        0..=4 => Demand::Constant(amount),
        5 => Demand::Walk {
            start: amount,
            factor: chance.pick([(0.8, 1.25), (0.5, 2.0)]),
            every,
        },
        6 | 7 => Demand::OnOff {
            on: amount,
            off: low,
            on_for: every * chance.pick([1, 4]),
            off_for: every * chance.pick([1, 2]),
        },
        8 => Demand::Spike {
            base: amount,
            peak: amount * 10.0,
            at: every * 5,
            length: every * 3,
        },
        9 => Demand::Ramp {
            from: low,
            to: amount,
            at,
            length: long,
            every: long / 20,
        },
        10 => Demand::Diurnal(Diurnal {
            least: low,
            most: amount,
            peak: long / 2,
            period: long,
            shift: chance.uniform(),
            every: long / 50,
        }),
        11 => Demand::FlashCrowd {
            base: low,
            peak: amount * 3.0,
            at,
            rise: long / 5,
            half_life: long / 3,
            every: long / 50,
        },
        12 => Demand::Step {
            from: amount,
            to: low,
            at,
        },
        _ => Demand::Sine {
            mean: amount,
            amplitude: amount - low,
            period: long,
            shift: chance.uniform(),
            every: long / 30,
        },
    }
}
