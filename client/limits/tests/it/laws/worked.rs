//! Well-known worked examples, by name.

use std::time::Duration;

use doorward_limits::{
    Ban, Decision, FixedWindow, Limiter, Moment, SlidingCounter, SlidingLog, TokenBucket,
};

const HOUR: u64 = 3_600;

fn at(seconds: f64) -> Moment {
    Moment::ORIGIN.after(Duration::from_secs_f64(seconds))
}

fn clock(hours: u64, minutes: u64, seconds: u64) -> Moment {
    let seconds = hours * HOUR + minutes * 60 + seconds;
    Moment::ORIGIN.after(Duration::from_secs(seconds))
}

#[test]
fn a_bucket_of_10_refilled_at_10_a_second_takes_6_and_then_5() {
    let bucket = TokenBucket::new(10, "10/s".parse().unwrap()).unwrap();
    let mut bucket = Limiter::new(bucket);
    assert!(bucket.take(6, at(0.3)).is_allowed());
    assert_eq!(bucket.standing(at(0.3)).remaining, 4.into());
    assert_eq!(bucket.standing(at(0.5)).remaining, 6.into());
    assert!(bucket.take(5, at(0.5)).is_allowed());
    assert_eq!(bucket.standing(at(0.5)).remaining, 1.into());
    assert_eq!(bucket.standing(at(1.5)).remaining, 10.into());
}

#[test]
fn seven_and_eight_around_the_hour_are_15_for_a_fixed_window_and_not_for_a_sliding_one() {
    let passes = |mut take: Box<dyn FnMut(Moment) -> Decision>| {
        let before = (0..7).map(|it| clock(1, 50 + it, 0));
        let after = (0..8).map(|it| clock(2, it, 0));
        before
            .chain(after)
            .filter(|now| take(*now).is_allowed())
            .count()
    };
    let rate = "10/h".parse().unwrap();
    let mut fixed = Limiter::new(FixedWindow::new(rate));
    assert_eq!(passes(Box::new(move |now| fixed.take(1, now))), 15);
    let mut log = Limiter::new(SlidingLog::new(rate).unwrap());
    assert_eq!(passes(Box::new(move |now| log.take(1, now))), 10);
    let mut counter = Limiter::new(SlidingCounter::new(rate).unwrap());
    // 7·(1 − 7/60) = 6.2 before the last one: rounded down, four pass.
    assert_eq!(passes(Box::new(move |now| counter.take(1, now))), 11);
}

#[test]
fn a_log_of_2_a_minute_refuses_the_third_and_does_not_remember_it() {
    let mut log = Limiter::new(SlidingLog::new("2/min".parse().unwrap()).unwrap());
    assert!(log.take(1, clock(1, 0, 1)).is_allowed());
    assert!(log.take(1, clock(1, 0, 30)).is_allowed());
    let refused = log.take(1, clock(1, 0, 50));
    assert_eq!(refused, Decision::After(Duration::from_secs(11)));
    assert!(log.take(1, clock(1, 1, 40)).is_allowed());
    assert_eq!(log.standing(clock(1, 1, 40)).remaining, 1.into());
}

#[test]
fn a_counter_of_7_a_minute_with_5_before_and_3_now_is_at_6_and_a_half_and_lets_one_pass() {
    let mut counter = Limiter::new(SlidingCounter::new("7/min".parse().unwrap()).unwrap());
    assert!(counter.take(5, at(10.0)).is_allowed());
    assert!(counter.take(2, at(60.0)).is_allowed());
    assert!(counter.take(1, at(74.0)).is_allowed());
    // 3 + 5 · 0.7
    assert!(counter.take(1, at(78.0)).is_allowed());
    assert!(!counter.take(1, at(78.0)).is_allowed());
}

#[test]
fn more_than_2_000_in_1_200_s_bans_for_3_600_s_more() {
    let rate = "2000/1200s".parse().unwrap();
    let mut ban = Limiter::new(Ban::new(rate, Duration::from_secs(3_600)).unwrap());
    assert!(ban.take(1, at(0.0)).is_allowed());
    assert!(ban.take(1_999, at(600.0)).is_allowed());
    let refused = ban.take(1, at(700.0));
    assert_eq!(refused, Decision::After(Duration::from_secs(4_100)));
    assert!(!ban.peek(0, at(4_799.0)).is_allowed());
    assert!(ban.take(1, at(4_800.0)).is_allowed());
}

#[test]
fn four_a_second_that_send_12_at_once_are_at_minus_8_and_wait_for_two_seconds() {
    let mut bucket = Limiter::new(TokenBucket::new(4, "4/s".parse().unwrap()).unwrap());
    bucket.charge(12, at(0.0));
    let refused = bucket.peek(0, at(0.0));
    assert_eq!(refused, Decision::After(Duration::from_secs(2)));
    let refused = bucket.take(1, at(0.0));
    assert_eq!(refused, Decision::After(Duration::from_millis(2_250)));
    assert!(bucket.take(1, at(2.25)).is_allowed());
}
