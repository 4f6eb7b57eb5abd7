//! The bucket that threads share gives the same answers as one that they do not.

use std::thread;
use std::time::Duration;

use doorward_limits::{
    AtomicBucket, Clock, Decision, Limiter, ManualClock, Moment, Rate, TokenBucket, Units,
};
use proptest::prelude::*;

use crate::threads::{parts, take_as_much_as_one, take_during};

fn bucket(burst: &str, rate: &str) -> TokenBucket {
    let rate: Rate = rate.parse().unwrap();
    TokenBucket::new(burst.parse::<Units>().unwrap(), rate).unwrap()
}

const BUCKETS: &[(&str, &str)] = &[
    ("10", "10/s"),
    ("1", "3/s"),
    ("3", "7/h"),
    ("10", "4999/day"),
    ("0.5", "0.125/s"),
    ("1000000", "1000000/s"),
    ("10", "0/s"),
    ("0", "5/s"),
    ("10", "33.333333333/s"),
    ("18446744073709551615", "1/s"),
    ("1", "1000000000/ns"),
    ("20000", "2000/20min"),
];

#[derive(Clone, Debug)]
enum Op {
    Take(Units),
    Peek(Units),
    Charge(Units),
    Refund(Units),
    SetLimit(usize),
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => parts().prop_map(Op::Take),
        2 => parts().prop_map(Op::Peek),
        1 => parts().prop_map(Op::Charge),
        1 => parts().prop_map(Op::Refund),
        1 => (0..BUCKETS.len()).prop_map(Op::SetLimit),
        4 => (0..3_000_000_000_u64).prop_map(Op::Pass),
        // Weeks, and years.
        1 => (0..100_000_000_000_000_000_u64).prop_map(Op::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn a_shared_bucket_gives_the_answers_of_one_that_is_not(
        first in 0..BUCKETS.len(), start in -1_000_000_000_000_i64..1_000_000_000_000,
        ops in prop::collection::vec(op(), 1..60),
    ) {
        let of = |index: usize| bucket(BUCKETS[index].0, BUCKETS[index].1);
        let shared = AtomicBucket::new(of(first));
        let mut exact = Limiter::new(of(first));
        let mut now = Moment::from_nanos(start);
        for op in ops {
            match op {
                Op::Take(cost) => {
                    prop_assert_eq!(shared.take(cost, now), exact.take(cost, now));
                }
                Op::Peek(cost) => {
                    prop_assert_eq!(shared.peek(cost, now), exact.peek(cost, now));
                    prop_assert_eq!(shared.standing(now), exact.standing(now));
                    prop_assert_eq!(shared.is_fresh(now), exact.is_fresh(now));
                }
                Op::Charge(cost) => {
                    shared.charge(cost, now);
                    exact.charge(cost, now);
                }
                Op::Refund(cost) => {
                    shared.refund(cost, now);
                    exact.refund(cost, now);
                }
                Op::SetLimit(next) => {
                    shared.set_limit(of(next), now);
                    exact.set_limit(of(next), now);
                }
                Op::Pass(nanos) => now = now.after(Duration::from_nanos(nanos)),
            }
        }
    }

    /// Threads use their clock readings in another order.
    #[test]
    fn a_clock_that_goes_back_gains_nothing(
        ops in prop::collection::vec((0..4_u64, -2_000_000_000..2_000_000_000_i64), 1..200),
    ) {
        let shared = AtomicBucket::new(bucket("10", "10/s"));
        let (mut now, mut first, mut last, mut passed) = (0_i64, i64::MAX, i64::MIN, 0);
        for (cost, step) in ops {
            // A larger step back is another matter (`clock_steps`).
            now = (now + step).max(last.saturating_sub(50_000_000_000));
            (first, last) = (first.min(now), last.max(now));
            if shared.take(Units::whole(cost), Moment::from_nanos(now)).is_allowed() {
                passed += cost;
            }
            let came = u128::from(last.abs_diff(first)) * 10 / 1_000_000_000;
            prop_assert!(u128::from(passed) <= 10 + came);
        }
    }
}

#[test]
fn ten_years_of_4999_a_day_lose_less_than_a_nanosecond() {
    let shared = AtomicBucket::new(bucket("2", "4999/day"));
    let start = Moment::from_nanos(1_700_000_000_000_000_000);
    assert!(shared.take(Units::whole(2), start).is_allowed());
    let mut now = start;
    const TAKES: u64 = 20_000;
    for _ in 0..TAKES {
        let Decision::After(wait) = shared.take(Units::ONE, now) else {
            panic!("it was empty");
        };
        now = now.after(wait);
        assert!(shared.take(Units::ONE, now).is_allowed());
    }
    let exact = u128::from(TAKES) * 86_400_000_000_000 / 4999;
    let real = u128::from(now.nanos_since(start));
    assert!(real.abs_diff(exact) <= 1, "{real} {exact}");
    // After ten years without a take it is full, not more.
    let later = now.after(Duration::from_secs(10 * 365 * 86_400));
    assert_eq!(shared.standing(later).remaining, Units::whole(2));
    assert!(shared.take(Units::whole(2), later).is_allowed());
    assert!(!shared.take(Units::ONE, later).is_allowed());
}

#[test]
fn threads_together_take_as_much_as_one() {
    for (burst, rate, step) in [
        ("10", "300/s", Duration::from_millis(7)),
        ("3", "4999/day", Duration::from_secs(29)),
        // A rate of many drops.
        ("10", "33.333333333/s", Duration::from_millis(40)),
    ] {
        let limit = bucket(burst, rate);
        let (shared, mut one) = (AtomicBucket::new(limit), Limiter::new(limit));
        take_as_much_as_one(
            step,
            |now| shared.take(Units::ONE, now).is_allowed(),
            |now| one.take(1, now).is_allowed(),
        );
    }
}

/// Threads take while one moves the time and sets limits of that rate and burst, or of a smaller rate. The larger one
/// bounds the amount that passes.
#[test]
fn threads_gain_nothing_while_limits_change() {
    const STEPS: u64 = 1_000;
    const STEP: Duration = Duration::from_micros(500);
    for (burst, rate, smaller) in [("10", 300, 150), ("8", 7, 3)] {
        let of = |rate: u64| bucket(burst, &format!("{rate}/s"));
        let (shared, clock) = (AtomicBucket::new(of(rate)), ManualClock::default());
        let work = || {
            for step in 0..STEPS {
                let next = if step % 2 == 0 { smaller } else { rate };
                shared.set_limit(of(next), clock.now());
                clock.advance(STEP);
                thread::yield_now();
            }
        };
        let passed = take_during(work, || shared.take(Units::ONE, clock.now()).is_allowed());
        let seconds = STEP.as_secs_f64() * STEPS as f64;
        let bound = burst.parse::<f64>().unwrap() + rate as f64 * seconds;
        assert!(passed as f64 <= bound, "{passed} passed of {bound}");
    }
}
