//! A mode in which refused attempts count, and a limit that is given as one text.

use std::time::Duration;

use doorward_limits::{
    Algorithm, CountRefused, Decision, FixedWindow, Limit, Limiter, Moment, Part, Shared,
    SlidingLog, TokenBucket, Units, several,
};

#[test]
fn a_caller_that_keeps_asking_stays_refused() {
    #[track_caller]
    fn check(name: &str, algorithm: impl Algorithm, pause_ms: u64, passed: usize) {
        let mut limit = Limiter::new(CountRefused(algorithm));
        let at = |it: u64| Moment::ORIGIN.after(Duration::from_millis(it * pause_ms));
        let takes = (0..100).filter(|it| limit.take(1, at(*it)).is_allowed());
        assert_eq!(takes.count(), passed, "{name}, every {pause_ms} ms");
    }
    let log = SlidingLog::new("5/s".parse().unwrap()).unwrap();
    check("log", log, 100, 5);
    check("log", log, 200, 100);
    let bucket = TokenBucket::new(5, "5/s".parse().unwrap()).unwrap();
    check("bucket", bucket, 100, 9);
    check("bucket", bucket, 200, 100);
    check("window", FixedWindow::new("5/s".parse().unwrap()), 100, 50);
}

#[test]
fn the_wait_of_a_counted_refusal_is_exact() {
    let log = SlidingLog::new("2/s".parse().unwrap()).unwrap();
    let mut limit = Limiter::new(CountRefused(log));
    let at = |ms: i64| Moment::from_nanos(ms * 1_000_000);
    assert!(limit.take(1, at(0)).is_allowed());
    assert!(limit.take(1, at(100)).is_allowed());
    // The requests of 100 and of 200 ms count until 1,100 and 1,200 ms.
    let wait_for = |ms| Decision::After(Duration::from_millis(ms));
    assert_eq!(limit.take(1, at(200)), wait_for(900));
    assert_eq!(limit.peek(0, at(200)), wait_for(800));
    // A take would count once more, and be told this.
    assert_eq!(limit.peek(1, at(200)), wait_for(1_000));
    assert!(limit.peek(1, at(1_100)).is_allowed());
    assert!(!limit.take(3, at(1_100)).is_allowed());
    assert!(limit.take(1, at(1_100)).is_allowed());
}

#[test]
fn several_limits_tell_the_wait_of_a_counted_refusal() {
    let log = SlidingLog::new("2/s".parse().unwrap()).unwrap();
    let limit = Shared::new(CountRefused(log));
    let part = Part {
        name: "log",
        limit: &limit,
        cost: Units::ONE,
    };
    let take = || several::take(std::slice::from_ref(&part), Moment::ORIGIN).unwrap();
    assert!(take().decision.is_allowed());
    assert!(take().decision.is_allowed());
    let told = take().decision.retry_after().unwrap();
    let later = Moment::ORIGIN.after(told);
    assert_eq!(limit.standing(Moment::ORIGIN).debt, Units::ONE);
    assert!(limit.peek(Units::ONE, later).is_allowed());
}

#[test]
fn several_limits_charge_nothing_for_a_cost_that_can_never_pass() {
    let limit = Shared::new(CountRefused(TokenBucket::limit("10/s").unwrap()));
    let part = Part {
        name: "bucket",
        limit: &limit,
        cost: Units::whole(20),
    };
    let answer = several::take(&[part], Moment::ORIGIN).unwrap();
    assert!(matches!(answer.decision, Decision::Never(_)));
    let standing = limit.standing(Moment::ORIGIN);
    assert_eq!(
        (standing.remaining, standing.debt),
        (Units::whole(10), Units::ZERO)
    );
}

#[test]
fn a_limit_by_its_rate_has_the_burst_of_a_second() {
    #[track_caller]
    fn check(rate: &str, burst: u64) {
        let limit = TokenBucket::limit(rate).unwrap();
        assert_eq!(limit.limit(), Units::whole(burst), "{rate}");
    }
    check("100/s", 100);
    check("100/min", 2);
    check("10/h", 1);
    check("0.5/s", 1);
    check("3/100ms", 30);
    check("0/s", 0);
    let problem = |rate| TokenBucket::limit(rate).unwrap_err().to_string();
    assert!(problem("100").contains("is not a rate"));
    assert!(problem("7/month").contains("fixed window"));
}
