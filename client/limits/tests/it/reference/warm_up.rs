//! Warm-up by the formulae of Guava's `SmoothWarmingUp`, in floating point.

use std::time::Duration;

use doorward_limits::{Decision, Limiter, Moment, Rate, Units, WarmUp};
use proptest::prelude::*;

/// In seconds and units.
struct Guava {
    interval: f64,
    cold_interval: f64,
    warm_up: f64,
    stored: f64,
    free: f64,
}

const COLD_FACTOR: u64 = 3;
/// Longest wait, in seconds.
const WAIT_MAX: f64 = 2.0;
/// Tolerance of times, in seconds, and of amounts.
const CLOSE: f64 = 1e-6;

impl Guava {
    /// Returns a cold one.
    fn new(rate: f64, warm_up: f64) -> Self {
        let mut guava = Self {
            interval: rate.recip(),
            cold_interval: rate.recip() * COLD_FACTOR as f64,
            warm_up,
            stored: 0.0,
            free: 0.0,
        };
        guava.stored = guava.most();
        guava
    }

    fn threshold(&self) -> f64 {
        0.5 * self.warm_up / self.interval
    }

    fn most(&self) -> f64 {
        self.threshold() + 2.0 * self.warm_up / (self.interval + self.cold_interval)
    }

    fn resync(&mut self, now: f64) {
        if now > self.free {
            let more = (now - self.free) / (self.warm_up / self.most());
            (self.stored, self.free) = ((self.stored + more).min(self.most()), now);
        }
    }

    fn charge(&mut self, cost: f64, now: f64) {
        self.resync(now);
        let taken = cost.min(self.stored);
        let above = (self.stored - self.threshold()).max(0.0);
        let (high, slope) = (taken.min(above), self.cold_interval - self.interval);
        let slope = slope / (self.most() - self.threshold());
        // A trapezium, and the rest at the pace of a warm one.
        let more = high * slope * (above + above - high) / 2.0;
        self.free += cost * self.interval + more;
        self.stored -= taken;
    }
}

#[derive(Clone, Debug)]
enum Op {
    Take(u64),
    Charge(u64),
    Refund(u64),
    SetRate(u64),
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        8 => (0..9_u64).prop_map(Op::Take),
        1 => (1..9_u64).prop_map(Op::Charge),
        1 => (1..9_u64).prop_map(Op::Refund),
        1 => (1..30_u64).prop_map(Op::SetRate),
        5 => (0..2_000_000_000_u64).prop_map(Op::Pass),
        1 => Just(Op::Pass(60_000_000_000)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn warm_up(
        first in 1..30_u64, seconds in 1..6_u64, ops in prop::collection::vec(op(), 1..60),
    ) {
        let warm_up = Duration::from_secs(seconds);
        let of = |rate: u64| {
            let (rate, wait) = (Rate::per_second(rate.into()), Duration::from_secs_f64(WAIT_MAX));
            WarmUp::new(rate, warm_up, COLD_FACTOR.into(), wait).unwrap()
        };
        let mut limiter = Limiter::new(of(first));
        let mut guava = Guava::new(first as f64, seconds as f64);
        let mut now = Moment::ORIGIN;
        for op in ops {
            let at = now.nanos() as f64 / 1e9;
            match op {
                Op::Take(cost) => {
                    let told = limiter.peek(cost, now);
                    let decision = limiter.take(cost, now);
                    prop_assert_eq!(told, decision);
                    let delay = (guava.free - at).max(0.0);
                    let (is, is_allowed) = match decision {
                        Decision::Allowed(allowed) => (allowed.delay.as_secs_f64(), true),
                        Decision::After(wait) => (wait.as_secs_f64() + WAIT_MAX, false),
                        Decision::Never(reason) => panic!("{reason}"),
                    };
                    prop_assert!((is - delay).abs() < CLOSE, "{} instead of {}", is, delay);
                    if is_allowed && cost > 0 {
                        guava.charge(cost as f64, at);
                    }
                }
                Op::Charge(cost) => {
                    limiter.charge(cost, now);
                    guava.charge(cost as f64, at);
                }
                Op::Refund(cost) => {
                    limiter.refund(cost, now);
                    guava.resync(at);
                    guava.free = (guava.free - cost as f64 * guava.interval).max(at);
                }
                Op::SetRate(rate) => {
                    limiter.set_limit(of(rate), now);
                    guava.resync(at);
                    let next = Guava::new(rate as f64, seconds as f64);
                    let stored = guava.stored / guava.most() * next.most();
                    guava = Guava { stored, free: guava.free, ..next };
                }
                Op::Pass(nanos) => now = now.after_nanos(nanos),
            }
            guava.resync(now.nanos() as f64 / 1e9);
            let stored = limiter.algorithm().stored(limiter.state(), now);
            prop_assert!((stored.as_f64() - guava.stored).abs() < CLOSE);
            let (reset, at) = (limiter.standing(now).reset, now.nanos() as f64 / 1e9);
            prop_assert!((reset.as_secs_f64() - (guava.free - at)).abs() < CLOSE);
            let remaining = limiter.standing(now).remaining;
            prop_assert!(remaining == Units::MAX || remaining == Units::ZERO);
        }
    }
}
