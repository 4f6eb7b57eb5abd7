//! The bucket in one word gives the same answers as the bucket of exact numbers, also to many threads.

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

/// Buckets that fit a word, and some that do not, or not always.
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
        // Weeks, and years: the word must start to count from another base.
        1 => (0..100_000_000_000_000_000_u64).prop_map(Op::Pass),
    ]
}

/// Compares both after a change of limit: a ratio that is not whole leaves part of a drop, which the word does not
/// keep. It is less than a nanosecond, and less than a part of a unit.
#[track_caller]
fn assert_close(word: Decision, exact: Decision, since_change: bool) {
    if !since_change || word == exact {
        assert_eq!(word, exact);
        return;
    }
    let close = |a: Duration, b: Duration| a.abs_diff(b) <= Duration::from_nanos(2);
    match (word, exact) {
        (Decision::Allowed(word), Decision::Allowed(exact)) => {
            assert!(close(word.reset, exact.reset), "{word:?} {exact:?}");
            let (one, other) = (word.remaining.parts(), exact.remaining.parts());
            assert!(one.abs_diff(other) <= 1, "{word:?} {exact:?}");
        }
        (Decision::After(word), Decision::After(exact)) => assert!(close(word, exact)),
        // Refused because part of a drop is missing.
        (Decision::After(word), Decision::Allowed(_)) => assert!(word <= Duration::from_nanos(2)),
        _ => panic!("{word:?}, but exactly {exact:?}"),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn one_word_gives_the_answers_of_exact_numbers(
        first in 0..BUCKETS.len(), start in -1_000_000_000_000_i64..1_000_000_000_000,
        ops in prop::collection::vec(op(), 1..60),
    ) {
        let of = |index: usize| bucket(BUCKETS[index].0, BUCKETS[index].1);
        let word = AtomicBucket::new(of(first));
        let mut exact = Limiter::new(of(first));
        let mut now = Moment::from_nanos(start);
        let mut changed = false;
        for op in ops {
            match op {
                Op::Take(cost) => {
                    let before = exact.clone();
                    let (one, other) = (word.take(cost, now), exact.take(cost, now));
                    assert_close(one, other, changed);
                    if one.is_allowed() != other.is_allowed() {
                        exact = before;
                    }
                }
                Op::Peek(cost) => {
                    assert_close(word.peek(cost, now), exact.peek(cost, now), changed);
                    if !changed {
                        prop_assert_eq!(word.standing(now), exact.standing(now));
                        prop_assert_eq!(word.is_fresh(now), exact.is_fresh(now));
                    }
                }
                Op::Charge(cost) => {
                    word.charge(cost, now);
                    exact.charge(cost, now);
                }
                Op::Refund(cost) => {
                    word.refund(cost, now);
                    exact.refund(cost, now);
                }
                Op::SetLimit(next) => {
                    // A second change would scale the rest of the first one.
                    if !changed {
                        word.set_limit(of(next), now);
                        exact.set_limit(of(next), now);
                        changed = true;
                    }
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
        let word = AtomicBucket::new(bucket("10", "10/s"));
        let (mut now, mut first, mut last, mut passed) = (0_i64, i64::MAX, i64::MIN, 0);
        for (cost, step) in ops {
            // A larger step back is another matter (`clock_steps`).
            now = (now + step).max(last.saturating_sub(50_000_000_000));
            (first, last) = (first.min(now), last.max(now));
            if word.take(Units::whole(cost), Moment::from_nanos(now)).is_allowed() {
                passed += cost;
            }
            let came = u128::from(last.abs_diff(first)) * 10 / 1_000_000_000;
            prop_assert!(u128::from(passed) <= 10 + came);
        }
    }
}

#[test]
fn ten_years_of_4999_a_day_lose_less_than_a_nanosecond() {
    let word = AtomicBucket::new(bucket("2", "4999/day"));
    let start = Moment::from_nanos(1_700_000_000_000_000_000);
    assert!(word.take(Units::whole(2), start).is_allowed());
    let mut now = start;
    const TAKES: u64 = 20_000;
    for _ in 0..TAKES {
        let Decision::After(wait) = word.take(Units::ONE, now) else {
            panic!("it was empty");
        };
        now = now.after(wait);
        assert!(word.take(Units::ONE, now).is_allowed());
    }
    let exact = u128::from(TAKES) * 86_400_000_000_000 / 4999;
    let real = u128::from(now.nanos_since(start));
    assert!(real.abs_diff(exact) <= 1, "{real} {exact}");
    // After ten years without a take it is full, not more.
    let later = now.after(Duration::from_secs(10 * 365 * 86_400));
    assert_eq!(word.standing(later).remaining, Units::whole(2));
    assert!(word.take(Units::whole(2), later).is_allowed());
    assert!(!word.take(Units::ONE, later).is_allowed());
}

#[test]
fn threads_together_take_as_much_as_one() {
    for (burst, rate, step) in [
        ("10", "300/s", Duration::from_millis(7)),
        ("3", "4999/day", Duration::from_secs(29)),
        // A rate that does not fit a word: behind the lock.
        ("10", "33.333333333/s", Duration::from_millis(40)),
    ] {
        let limit = bucket(burst, rate);
        let (word, mut one) = (AtomicBucket::new(limit), Limiter::new(limit));
        take_as_much_as_one(
            step,
            |now| word.take(Units::ONE, now).is_allowed(),
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
        let (word, clock) = (AtomicBucket::new(of(rate)), ManualClock::default());
        let work = || {
            for step in 0..STEPS {
                let next = if step % 2 == 0 { smaller } else { rate };
                word.set_limit(of(next), clock.now());
                clock.advance(STEP);
                thread::yield_now();
            }
        };
        let passed = take_during(work, || word.take(Units::ONE, clock.now()).is_allowed());
        let seconds = STEP.as_secs_f64() * STEPS as f64;
        let bound = burst.parse::<f64>().unwrap() + rate as f64 * seconds;
        assert!(passed as f64 <= bound, "{passed} passed of {bound}");
    }
}
