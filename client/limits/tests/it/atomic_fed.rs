//! The fed bucket that threads share gives the same answers as one that they do not, and obeys the end of the supply at
//! the next take.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use doorward_limits::{
    AtomicFedBucket, Clock, Decision, FedBucket, Feed, ManualClock, Moment, Reason, Supply,
    TokenBucket, Units,
};
use proptest::prelude::*;

use crate::threads::{parts, take_as_much_as_one, take_during};

const SECOND: i64 = 1_000_000_000;

fn at(nanos: i64) -> Moment {
    Moment::from_nanos(nanos)
}

fn limited(burst: &str, rate: &str) -> Supply {
    let burst: Units = burst.parse().unwrap();
    Supply::Limited(TokenBucket::new(burst, rate.parse().unwrap()).unwrap())
}

fn always(supply: Supply) -> Feed {
    Feed { supply, then: None }
}

fn empty(behind: Duration) -> AtomicFedBucket {
    AtomicFedBucket::new(Moment::ORIGIN, behind)
}

fn supply() -> impl Strategy<Value = Supply> {
    prop_oneof![
        3 => (1..200_u64, 1..500_u64).prop_map(|(burst, rate)| {
            limited(&burst.to_string(), &format!("{rate}/s"))
        }),
        2 => (1..9_u64, 1..5_000_u64).prop_map(|(burst, rate)| {
            limited(&burst.to_string(), &format!("{rate}/day"))
        }),
        1 => Just(limited("1.5", "100/3s")),
        1 => Just(limited("10", "33.333333333/s")),
        1 => Just(limited("1000000", "5000000/s")),
        1 => Just(limited("10", "0/s")),
        1 => Just(limited("0.25", "7/s")),
        1 => Just(Supply::Unlimited),
    ]
}

#[derive(Clone, Debug)]
enum Op {
    /// Another supply, and after some nanoseconds yet another one.
    Feed(Supply, Option<(u64, Supply)>),
    Take(Units),
    Peek(Units),
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let span = || {
        prop_oneof![
            3 => 0..50_000_000_u64,
            2 => 0..5_000_000_000_u64,
            1 => 0..100_000_000_000_000_000_u64,
        ]
    };
    prop_oneof![
        2 => (supply(), prop::option::weighted(0.8, (span(), supply())))
            .prop_map(|(supply, then)| Op::Feed(supply, then)),
        8 => parts().prop_map(Op::Take),
        1 => parts().prop_map(Op::Peek),
        5 => span().prop_map(Op::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn a_shared_bucket_gives_the_answers_of_one_that_is_not(
        behind in prop_oneof![Just(0), Just(2_000_000_u64)],
        ops in prop::collection::vec(op(), 1..80),
    ) {
        let word = empty(Duration::from_nanos(behind));
        let mut exact = FedBucket::new(Moment::ORIGIN);
        let mut now = Moment::ORIGIN;
        for op in ops {
            match op {
                Op::Feed(supply, then) => {
                    let then = then.map(|(nanos, supply)| (now.after_nanos(nanos), supply));
                    word.feed(Feed { supply, then }, now);
                    exact.feed(Feed { supply, then }, now);
                }
                Op::Take(cost) => {
                    let expected = exact.take(cost, now);
                    match word.take_at_once(cost, now) {
                        Some(Ok(())) => prop_assert!(expected.is_allowed()),
                        Some(Err(wait)) => {
                            prop_assert_eq!(Decision::After(wait.into()), expected);
                        }
                        None => prop_assert_eq!(word.take(cost, now), expected),
                    }
                }
                Op::Peek(cost) => {
                    prop_assert_eq!(word.peek(cost, now), exact.peek(cost, now));
                }
                Op::Pass(nanos) => now = now.after_nanos(nanos),
            }
        }
    }

    /// Threads, some with a fast clock, use their clock readings in another order.
    #[test]
    fn a_clock_that_goes_back_gains_nothing(
        ops in prop::collection::vec(
            (0..4_u64, -50_000_000..60_000_000_i64, prop::option::weighted(0.05, 1..400_u64)), 1..200,
        ),
    ) {
        let word = empty(Duration::ZERO);
        word.feed(always(limited("10", "100/s")), at(0));
        let (mut now, mut last, mut passed, mut came) = (0_i64, 0_i64, 0, 0_u128);
        let mut rate = 100;
        for (cost, step, next) in ops {
            now = (now + step).max(0);
            came += u128::from(now.saturating_sub(last).max(0).unsigned_abs()) * u128::from(rate);
            last = last.max(now);
            if let Some(next) = next {
                rate = next;
                word.feed(always(limited("10", &format!("{rate}/s"))), at(now));
            }
            // Units from before the clock went back may count by the next rate, with the same result.
            let most = came / 1_000_000_000 + 1;
            if word.take(Units::whole(cost), at(now)).is_allowed() {
                passed += u128::from(cost);
            }
            let slack = 60_000_000 * 400 / 1_000_000_000;
            prop_assert!(passed <= 10 + most + slack, "{passed} of {most}");
        }
    }
}

#[test]
fn a_take_after_a_freeze_obeys_the_supply_of_that_time() {
    let lease = Feed {
        supply: limited("10", "10/s"),
        then: Some((at(5 * SECOND), Supply::NOTHING)),
    };
    let word = empty(Duration::from_millis(2));
    word.feed(lease, at(0));
    assert_eq!(word.take_at_once(Units::ONE, at(SECOND)), Some(Ok(())));
    // An hour later, without a new feed.
    assert_eq!(word.take_at_once(Units::ONE, at(3_600 * SECOND)), None);
    let never = Decision::Never(Reason::RateIsZero);
    assert_eq!(word.take(Units::ONE, at(3_600 * SECOND)), never);
    // Exact to the nanosecond; shortly before the end, a clock that may be behind is not used.
    let word = empty(Duration::from_millis(2));
    word.feed(lease, at(0));
    let end = 5 * SECOND;
    assert!(word.take_at_once(Units::ONE, at(end - 2_000_001)).is_some());
    assert_eq!(word.take_at_once(Units::ONE, at(end - 2_000_000)), None);
    assert!(word.take(Units::ONE, at(end - 1)).is_allowed());
    assert_eq!(word.take(Units::ONE, at(end)), never);
}

#[test]
fn no_wait_across_the_end_is_computed_without_the_lock() {
    let word = empty(Duration::ZERO);
    let then = Some((at(4 * SECOND), limited("10", "2/s")));
    let supply = limited("10", "1/3s");
    word.feed(Feed { supply, then }, at(0));
    let wait = word.take_at_once(Units::ONE, at(0)).unwrap().unwrap_err();
    assert_eq!(Duration::from(wait), Duration::from_secs(3));
    assert_eq!(word.take_at_once(Units::whole(2), at(0)), None);
    // 4/3 by then, and the other 2/3 at twice a second.
    let wait = word.take(Units::whole(2), at(0)).retry_after().unwrap();
    assert_eq!(wait.as_millis(), 4_333);
}

#[test]
fn threads_together_take_as_much_as_one() {
    for (burst, rate, step) in [
        ("1", "100/s", 10_000_000),
        ("10", "300/s", 7_000_000),
        ("3", "4999/day", 29_000_000_000),
        // A rate of many drops.
        ("10", "33.333333333/s", 40_000_000),
    ] {
        let (word, mut one) = (empty(Duration::ZERO), FedBucket::new(Moment::ORIGIN));
        word.feed(always(limited(burst, rate)), Moment::ORIGIN);
        one.feed(always(limited(burst, rate)), Moment::ORIGIN);
        take_as_much_as_one(
            Duration::from_nanos(step),
            |now| word.take(Units::ONE, now).is_allowed(),
            |now| one.take(Units::ONE, now).is_allowed(),
        );
    }
}

/// Threads take while leases shrink and grow and time passes. The amount that passes is within the supply.
#[test]
fn threads_gain_nothing_while_leases_change() {
    const STEPS: usize = 2_000;
    const STEP: Duration = Duration::from_micros(500);
    const RATES: [u64; 4] = [400, 100, 300, 50];
    const THEN: u64 = 20;
    let clock = ManualClock::new(at(5));
    let word = AtomicFedBucket::new(clock.now(), Duration::ZERO);
    let mut came = 0.0;
    let work = || {
        for rate in RATES.iter().cycle().take(STEPS) {
            let supply = |rate| limited("4", &format!("{rate}/s"));
            // It ends before the next one.
            let then = Some((clock.now().after(STEP * 3 / 4), supply(&THEN)));
            let feed = Feed {
                supply: supply(rate),
                then,
            };
            word.feed(feed, clock.now());
            for _ in 0..4 {
                clock.advance(STEP / 4);
                thread::yield_now();
            }
            came += (*rate * 3 + THEN) as f64 * (STEP / 4).as_secs_f64();
        }
    };
    let passed = take_during(work, || word.take(Units::ONE, clock.now()).is_allowed());
    assert!(passed as f64 <= came + 4.0, "{passed} passed of {came}");
    assert!(passed > 0);
}

/// After a feed has returned, the previous one admits nothing.
#[test]
fn nothing_is_taken_by_a_lease_that_was_taken_back() {
    let (word, none) = (empty(Duration::ZERO), AtomicBool::new(false));
    let work = || {
        for _ in 0..3_000 {
            word.feed(always(Supply::Unlimited), at(SECOND));
            thread::yield_now();
            word.feed(always(Supply::NOTHING), at(SECOND));
            none.store(true, Ordering::SeqCst);
            for _ in 0..50 {
                std::hint::spin_loop();
            }
            none.store(false, Ordering::SeqCst);
        }
    };
    let after = take_during(work, || {
        let was_none = none.load(Ordering::SeqCst);
        let is_allowed = word.take(Units::ONE, at(SECOND)).is_allowed();
        was_none && none.load(Ordering::SeqCst) && is_allowed
    });
    assert_eq!(after, 0);
}
