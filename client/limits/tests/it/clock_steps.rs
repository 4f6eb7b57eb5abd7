//! A clock that is set back: a small step counts as no time, after a large one time goes on.

use std::thread;
use std::time::Duration;

use doorward_limits::{
    AtomicBucket, Ban, Decision, FixedWindow, Gcra, Keyed, Keys, LeakyQueue, Limit, Limiter,
    Moment, Shared, SlidingCounter, SlidingLog, SoftHard, TokenBucket, Units, WarmUp,
};

use crate::rule::{Build, Rule, UNIT};
use crate::threads::take_as_much_as_one;

const SECOND: i64 = 1_000_000_000;
const START: i64 = 1_767_225_600 * SECOND;
const TWO_DAYS: i64 = 2 * 86_400 * SECOND;

const RULE: Rule = Rule {
    limit: 10 * UNIT,
    rate: (10 * UNIT, 1_000_000_000),
    window: 1_000_000_000,
    wait: 500_000_000,
    more: 3 * UNIT,
};

fn at(nanos: i64) -> Moment {
    Moment::from_nanos(nanos)
}

/// Steps the clock of one limit back, and compares it with one whose clock goes on.
#[track_caller]
fn check(name: &str, back: i64, limit: &dyn Limit, steady: &dyn Limit) {
    let both = |cost, now: i64, clock: i64| {
        let (is, expected) = (limit.take(cost, at(clock)), steady.take(cost, at(now)));
        assert_eq!(is, expected, "{name}, {back} ns back, at {}", now - START);
    };
    // Nine of ten are used, with all the rests that an algorithm keeps, and four are owed after the last charge.
    for cost in [Units::whole(4), Units::whole(5)] {
        both(cost, START, START);
    }
    let is_large = back > 60 * SECOND;
    for (after, charge) in [(0, 1), (1, 0), (150, 4), (700, 0), (1_500, 0), (9_000, 0)] {
        let now = START + after * SECOND / 1_000;
        if is_large {
            limit.charge(Units::whole(charge), at(now - back));
            steady.charge(Units::whole(charge), at(now));
            both(Units::ONE, now, now - back);
            assert_eq!(
                limit.standing(at(now - back)),
                steady.standing(at(now)),
                "{name}"
            );
        } else {
            // Only GCRA, which keeps one point in time, shows less.
            let remaining = limit.standing(at(now - back)).remaining;
            assert!(
                remaining <= steady.standing(at(now.max(START))).remaining,
                "{name}"
            );
            both(Units::ONE, now, now);
        }
    }
}

fn steps<A: Build + Send + 'static>(name: &str)
where
    A::State: Send,
{
    for back in [1, SECOND, TWO_DAYS] {
        let algorithm = A::build(&RULE).unwrap();
        let steady = || Shared::new(algorithm.clone());
        check(name, back, &steady(), &steady());
        let key = Keys::new([1, 2]).key().text(name).finish();
        let map = Keyed::new(algorithm.clone(), 100);
        check(name, back, &map.at(key), &steady());
        // A key without room, in the limit that such keys share.
        let map = Keyed::new(algorithm.clone(), 0);
        check(name, back, &map.at(key), &steady());
    }
}

#[test]
fn after_a_large_step_back_time_goes_on_and_a_small_one_counts_as_no_time() {
    steps::<TokenBucket>("token bucket");
    steps::<Gcra>("GCRA");
    steps::<LeakyQueue>("leaky queue");
    steps::<FixedWindow>("fixed window");
    steps::<SlidingLog>("sliding log");
    steps::<SlidingCounter>("sliding counter");
    steps::<Ban>("ban");
    steps::<SoftHard<TokenBucket>>("soft and hard");
    steps::<WarmUp>("warm-up");
    for back in [1, SECOND, TWO_DAYS] {
        let bucket = TokenBucket::build(&RULE).unwrap();
        let word = AtomicBucket::new(bucket);
        check("an atomic bucket", back, &word, &Shared::new(bucket));
        // The bucket has counted since long before the step.
        let word = AtomicBucket::new(bucket);
        assert!(word.take(Units::ONE, at(START - 2 * TWO_DAYS)).is_allowed());
        check("an atomic bucket", back, &word, &Shared::new(bucket));
    }
}

/// A fixed window ends with the clock's window, and has the use of the one before the step.
#[test]
fn a_fixed_window_is_aligned_to_the_clock_that_was_set_back() {
    let mut limit = Limiter::new(FixedWindow::new("10/h".parse().unwrap()));
    assert!(limit.take(10, at(START)).is_allowed());
    let ten_hours = 10 * 3_600 * SECOND;
    let wait = |seconds: i64| Decision::After(Duration::from_secs(seconds.unsigned_abs()));
    assert_eq!(
        limit.take(1, at(START - ten_hours)),
        wait(11 * 3_600),
        "no time"
    );
    let later = START - TWO_DAYS + 600 * SECOND;
    assert_eq!(limit.peek(1, at(later)), wait(3_000));
    assert_eq!(limit.take(1, at(later)), wait(3_000));
    assert!(limit.take(10, at(later + 3_000 * SECOND)).is_allowed());
}

/// The longer of a minute and ten times the time in which the limit fills counts as no time.
#[test]
fn a_slow_limit_counts_a_longer_step_back_as_no_time() {
    for (rate, step_max) in [("10/s", 60 * SECOND), ("10/h", 36_000 * SECOND)] {
        let bucket = TokenBucket::new(10, rate.parse().unwrap()).unwrap();
        let wait_after = |back: i64| {
            let mut limit = Limiter::new(bucket);
            assert!(limit.take(10, at(START)).is_allowed());
            let wait = limit.take(1, at(START - back)).retry_after().unwrap();
            i64::try_from(wait.as_nanos()).unwrap()
        };
        let one = wait_after(0);
        assert_eq!(wait_after(step_max), one + step_max);
        assert_eq!(wait_after(step_max + 1), one);
    }
}

/// Threads take from one bucket while the clock is set back in between.
#[test]
fn threads_take_as_much_as_one_by_a_clock_that_is_set_back() {
    for (rate, step) in [("300/s", 7_000_000), ("33.333333333/s", 40_000_000)] {
        let bucket = TokenBucket::new(10, rate.parse().unwrap()).unwrap();
        let (word, mut one) = (AtomicBucket::new(bucket), Limiter::new(bucket));
        // The bucket has counted since long before the step.
        assert!(word.take(Units::ONE, at(0)).is_allowed());
        // The clock first shows two days more. The time of the step itself, of which no clock knows, is lost.
        let clock = |now: Moment| match now.nanos() {
            now if now < 50 * step => at(now + TWO_DAYS),
            now => at(now),
        };
        let known = |now: Moment| match now.nanos() {
            now if now < 50 * step => at(now),
            now => at(now - step),
        };
        take_as_much_as_one(
            Duration::from_nanos(step.unsigned_abs()),
            |now| {
                thread::yield_now();
                word.take(Units::ONE, clock(now)).is_allowed()
            },
            |now| one.take(1, known(now)).is_allowed(),
        );
    }
}
