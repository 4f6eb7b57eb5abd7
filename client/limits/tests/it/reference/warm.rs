//! Warm-up compared with Guava's formulae in floating point.
//!
//! After each operation both agree, to a microsecond and a millionth of a permit. Then the reference takes over rounded
//! values, so that differences do not add up to another decision.

use std::time::Duration;

use doorward_limits::{Decision, Limiter, Moment, Rate, Units, WarmUp};

use crate::reference::drive::{Chance, operations};

/// State in nanoseconds and permits, by the names of the formulae.
struct Guava {
    stable: f64,
    max: f64,
    threshold: f64,
    slope: f64,
    cool_down: f64,
    stored: f64,
    free: f64,
}

impl Guava {
    fn new(rate: f64, warm_up: f64, factor: f64) -> Self {
        let stable = 1e9 / rate;
        let cold = stable * factor;
        let threshold = 0.5 * warm_up / stable;
        let max = threshold + 2.0 * warm_up / (stable + cold);
        Self {
            stable,
            max,
            threshold,
            slope: (cold - stable) / (max - threshold),
            cool_down: warm_up / max,
            stored: max,
            free: 0.0,
        }
    }

    fn resync(&mut self, now: f64) {
        if now > self.free {
            self.stored = self
                .max
                .min(self.stored + (now - self.free) / self.cool_down);
            self.free = now;
        }
    }

    fn use_up(&mut self, cost: f64) {
        let taken = cost.min(self.stored);
        let above = (self.stored - self.threshold).max(0.0);
        let slow = taken.min(above);
        let time = |permits: f64| self.stable + permits * self.slope;
        let area = slow * (time(above) + time(above - slow)) / 2.0;
        self.free += area + (taken - slow + cost - taken) * self.stable;
        self.stored -= taken;
    }
}

#[test]
fn warm_up() {
    let mut chance = Chance(9);
    let (mut limiter, mut guava) = begin(&mut chance);
    let (mut now, mut wait) = (0_u64, Duration::ZERO);
    for operation in 0..operations() {
        if operation % 200 == 0 {
            (limiter, guava) = begin(&mut chance);
            now = 0;
        }
        now += match chance.below(6) {
            0 => 0,
            1 | 2 => u64::try_from(wait.as_nanos()).unwrap(),
            3 => chance.below(20_000_000_000),
            _ => chance.below(500_000_000),
        };
        let at = Moment::ORIGIN.after(Duration::from_nanos(now));
        let cost = chance.of(&[0_u64, 1, 1, 1, 2, 3, 10, 100]);
        guava.resync(now as f64);
        match chance.below(12) {
            0 if cost > 0 => {
                limiter.charge(cost, at);
                guava.use_up(cost as f64);
            }
            1 if cost > 0 => {
                limiter.refund(cost, at);
                guava.free = (guava.free - cost as f64 * guava.stable).max(now as f64);
            }
            _ => {
                let late = guava.free - now as f64;
                match limiter.take(cost, at) {
                    Decision::Allowed(allowed) => {
                        assert!((allowed.delay.as_nanos() as f64 - late).abs() < 1e3);
                        assert!(late <= WAIT as f64 + 1e3);
                        if cost > 0 {
                            guava.use_up(cost as f64);
                        }
                    }
                    Decision::After(told) => {
                        wait = told;
                        assert!((told.as_nanos() as f64 - (late - WAIT as f64)).abs() < 1e3);
                        assert!(late >= WAIT as f64 - 1e3);
                    }
                    Decision::Never(reason) => panic!("{reason}"),
                }
            }
        }
        let reset = limiter.standing(at).reset.as_nanos() as f64;
        assert!(
            (reset - (guava.free - now as f64)).abs() < 1e3,
            "{reset} of {}",
            guava.free
        );
        let stored = limiter.algorithm().stored(limiter.state(), at).as_f64();
        assert!(
            (stored - guava.stored).abs() < 1e-6,
            "{stored} of {}",
            guava.stored
        );
        (guava.free, guava.stored) = (now as f64 + reset, stored);
    }
}

const WAIT: u64 = 100_000_000;

fn begin(chance: &mut Chance) -> (Limiter<WarmUp>, Guava) {
    let rate = chance.of(&[1_u64, 2, 3, 7, 10, 1_000]);
    let warm_up = Duration::from_millis(chance.of(&[1, 333, 1_000, 4_000, 60_000]));
    let factor = chance.of(&["1.5", "2", "3", "10"]);
    let guava = Guava::new(
        rate as f64,
        warm_up.as_nanos() as f64,
        factor.parse().unwrap(),
    );
    let (rate, factor) = (
        Rate::per_second(rate.into()),
        factor.parse::<Units>().unwrap(),
    );
    let limiter = WarmUp::new(rate, warm_up, factor, Duration::from_nanos(WAIT)).unwrap();
    (Limiter::new(limiter), guava)
}
