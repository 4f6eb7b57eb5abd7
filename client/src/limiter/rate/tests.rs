//! The rate that a lease grants, as it changes.

use proptest::prelude::*;

use std::time::Duration;

use super::*;
use crate::capacity::Source;

fn at(seconds: f64) -> Time {
    Time::after_origin(Duration::from_secs_f64(seconds))
}

fn rate(rate: f64) -> Allowance {
    Allowance {
        capacity: Capacity::Limited(rate),
        source: Source::Lease,
        until: None,
        then: Capacity::NONE,
        safe: None,
    }
}

fn limiter(allowance: Allowance) -> LeasedRate {
    let limiter = LeasedRate::new(Burst::default(), Time::ZERO);
    limiter.handle_allowance(allowance, Time::ZERO);
    limiter
}

/// Returns the number of admitted requests of cost 1 in a span, each at the time of the previous answer.
fn admitted(limiter: &LeasedRate, from: f64, to: f64) -> u32 {
    let (mut now, mut count) = (at(from), 0);
    while now < at(to) {
        match limiter.try_acquire(1.0, now) {
            Ok(()) => count += 1,
            Err(refusal) => match refusal.retry_after {
                Some(time) => now = now + time,
                None => break,
            },
        }
    }
    count
}

#[test]
fn admits_at_the_rate() {
    assert_eq!(admitted(&limiter(rate(10.0)), 0.0, 10.001), 100);
}

#[test]
fn a_rate_below_one_a_second_works() {
    assert_eq!(admitted(&limiter(rate(0.1)), 0.0, 100.001), 10);
}

#[test]
fn the_time_to_come_back_is_always_right() {
    let limiter = limiter(rate(3.0));
    let mut now = Time::ZERO;
    for _ in 0..1000 {
        if let Err(Refusal {
            retry_after: Some(retry_after),
            ..
        }) = limiter.try_acquire(0.7, now)
        {
            now = now + retry_after;
            limiter.try_acquire(0.7, now).unwrap();
        }
    }
}

#[test]
fn nothing_is_saved_up_beyond_a_burst() {
    let limiter = limiter(rate(1000.0));
    let mut count = 0;
    while limiter.try_acquire(1.0, at(100.0)).is_ok() {
        count += 1;
    }
    // One, and 20 ms at 1000 per second.
    assert_eq!(count, 21);
}

#[test]
fn a_change_of_rate_gives_nothing() {
    let limiter = limiter(rate(10.0));
    let mut count = 0;
    for change in 0..100_u32 {
        let now = at(1.0 + f64::from(change) * 1e-6);
        limiter.handle_allowance(rate(if change % 2 == 0 { 1e6 } else { 10.0 }), now);
        count += u32::from(limiter.try_acquire(1.0, now).is_ok());
    }
    // One from the second at 10 per second, and some 50 µs at a million per second.
    assert!(count <= 53, "{count}");
}

#[test]
fn zero_blocks_and_no_limit_passes() {
    assert_eq!(
        limiter(rate(0.0)).try_acquire(1.0, at(9.0)),
        Err(Refusal::over(None))
    );
    let unlimited = Allowance {
        capacity: Capacity::Unlimited,
        ..rate(0.0)
    };
    let limiter = limiter(unlimited);
    for _ in 0..1000 {
        limiter.try_acquire(1e9, Time::ZERO).unwrap();
    }
}

#[test]
fn the_end_of_a_lease_is_obeyed_without_a_new_allowance() {
    let limiter = limiter(Allowance {
        until: Some(at(5.0)),
        ..rate(10.0)
    });
    assert!(limiter.try_acquire(1.0, at(4.999)).is_ok());
    assert_eq!(limiter.try_acquire(1.0, at(5.0)), Err(Refusal::over(None)));
}

#[test]
fn tokens_that_are_left_at_rate_zero_cannot_be_spent_and_do_not_come_back() {
    let full = || {
        let limiter = limiter(rate(10.0));
        limiter.handle_allowance(rate(10.0), at(1.0));
        limiter
    };
    full().try_acquire(1.0, at(1.0)).unwrap();
    let limiter = full();
    limiter.handle_allowance(rate(0.0), at(1.0));
    for cost in [1.0, 1e-9] {
        assert_eq!(limiter.try_acquire(cost, at(1.0)), Err(Refusal::over(None)));
        assert_eq!(limiter.try_acquire(cost, at(2.0)), Err(Refusal::over(None)));
    }
    limiter.try_acquire(0.0, at(2.0)).unwrap();
    limiter.handle_allowance(rate(10.0), at(3.0));
    comes_in(&limiter, 1.0, 3.0, 0.1);
    // The same if a lease ends without a new allowance, and the next one comes at once or later.
    for next in [5.0, 7.0] {
        let limiter = self::limiter(Allowance {
            until: Some(at(5.0)),
            ..rate(10.0)
        });
        limiter.handle_allowance(rate(10.0), at(next));
        comes_in(&limiter, 1.0, next, 0.1);
    }
}

/// Checks that the limiter admits `cost` after `seconds`, and no earlier.
#[track_caller]
fn comes_in(limiter: &LeasedRate, cost: f64, now: f64, seconds: f64) {
    match limiter.try_acquire(cost, at(now)) {
        Err(Refusal {
            retry_after: Some(retry_after),
            ..
        }) => {
            let waits = retry_after.as_secs_f64();
            assert!((waits - seconds).abs() < 1e-6, "{waits} s, not {seconds}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn after_a_lease_the_following_rate_counts() {
    let ends = Allowance {
        until: Some(at(5.0)),
        then: Capacity::Limited(1.0),
        ..rate(10.0)
    };
    let limiter = limiter(ends);
    // A burst at that rate was left.
    limiter.try_acquire(1.02, at(5.0)).unwrap();
    // After a second, one has come in, not ten.
    comes_in(&limiter, 5.0, 6.0, 4.0);
    limiter.try_acquire(5.0, at(10.0)).unwrap();
    // The part before the end counts by the old rate, the part after it by the new one.
    let limiter = self::limiter(ends);
    limiter.try_acquire(1.2, at(4.8)).unwrap();
    comes_in(&limiter, 6.0, 6.0, 3.0);
}

#[test]
fn a_wait_counts_the_supply_after_the_end_of_the_lease() {
    let allowance = Allowance {
        until: Some(at(1.0)),
        then: Capacity::Limited(1.0),
        ..rate(0.5)
    };
    let waits = limiter(allowance).try_acquire(1.5, Time::ZERO).unwrap_err();
    let Some(retry_after) = waits.retry_after else {
        panic!("{waits:?}")
    };
    assert!(
        (retry_after.as_secs_f64() - 2.0).abs() < 1e-6,
        "{retry_after:?}"
    );
}

/// Returns the wait for a request of that cost by a limiter that is empty at 0.
fn waits(allowance: Allowance, cost: f64) -> f64 {
    let limiter = limiter(rate(0.0));
    limiter.handle_allowance(allowance, Time::ZERO);
    match limiter.try_acquire(cost, Time::ZERO) {
        Err(Refusal {
            retry_after: Some(retry_after),
            ..
        }) => retry_after.as_secs_f64(),
        Err(_) => f64::INFINITY,
        Ok(()) => 0.0,
    }
}

#[test]
fn a_wait_counts_the_supply_before_and_after_the_end_of_the_lease() {
    let none = Capacity::NONE;
    for (rate_now, lasts, then, cost, expected) in [
        // All of it comes before the end, even at the last moment.
        (2.0, 4.0, none, 6.0, 3.0),
        (2.0, 4.0, none, 8.0, 4.0),
        // Some of it comes before the end, the rest after it.
        (2.0, 4.0, Capacity::Limited(0.5), 9.0, 6.0),
        // The lease supplies nothing before its end.
        (0.0, 4.0, Capacity::Limited(0.5), 1.0, 6.0),
        (0.0, 4.0, Capacity::Unlimited, 1.0, 4.0),
        // It never comes.
        (2.0, 4.0, none, 8.1, f64::INFINITY),
        (0.0, 4.0, none, 1.0, f64::INFINITY),
    ] {
        let allowance = Allowance {
            until: Some(at(lasts)),
            then,
            ..rate(rate_now)
        };
        let waits = waits(allowance, cost);
        assert!(
            waits == expected || (waits - expected).abs() < 1e-6,
            "{cost} of {rate_now}/s for {lasts} s, then {then:?}: {waits}, not {expected}"
        );
    }
    // A lease that ends now is over: the following capacity counts from here.
    let over = Allowance {
        until: Some(Time::ZERO),
        then: Capacity::Limited(2.0),
        ..rate(0.0)
    };
    assert!((waits(over, 4.0) - 2.0).abs() < 1e-6);
}

#[test]
fn a_lease_leaves_a_burst_of_its_own_rate_and_not_of_the_next() {
    let limiter = limiter(Allowance {
        until: Some(at(5.0)),
        then: Capacity::Limited(100.0),
        ..rate(1.0)
    });
    // 1.02 remain of five seconds at 1 per second, and 0.1 come in at 100 per second, of which 3 are a burst.
    limiter.try_acquire(1.0, at(5.001)).unwrap();
    comes_in(&limiter, 0.5, 5.001, (0.5 - 0.12) / 100.0);
}

#[test]
fn a_request_larger_than_the_burst_waits_for_the_rest() {
    let limiter = limiter(rate(10.0));
    assert!(limiter.try_acquire(30.0, at(2.9)).is_err());
    assert!(limiter.try_acquire(30.0, at(5.9)).is_ok());
}

proptest! {
    #[test]
    fn the_admitted_amount_is_within_the_supply_plus_a_burst(
        steps in prop::collection::vec(
            (
                0.0..0.5f64,
                prop::option::of(prop_oneof![3 => 0.0..200.0f64, 1 => Just(0.0)]),
                0.0..3.0f64,
            ),
            1..200,
        ),
    ) {
        let limiter = LeasedRate::new(Burst::default(), Time::ZERO);
        let (mut now, mut current) = (0.0, 0.0);
        // The balance of the amounts that came in and were admitted never exceeds a burst, over any window: the
        // largest difference over all windows is that of a running maximum.
        let (mut balance, mut worst, mut largest_burst) = (0.0_f64, 0.0_f64, 3.0_f64);
        for (pause, new_rate, cost) in steps {
            now += pause;
            balance = (balance - current * pause).max(0.0);
            if let Some(new_rate) = new_rate {
                limiter.handle_allowance(rate(new_rate), at(now));
                current = new_rate;
                largest_burst = largest_burst.max(1.0 + new_rate * 0.02);
            }
            while limiter.try_acquire(cost.max(0.01), at(now)).is_ok() {
                prop_assert!(current > 0.0, "spent at rate 0");
                balance += cost.max(0.01);
                worst = worst.max(balance);
            }
        }
        prop_assert!(worst <= largest_burst + 1e-6, "{worst} > {largest_burst}");
    }
}
