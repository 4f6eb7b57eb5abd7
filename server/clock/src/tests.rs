//! The choice of the clock, and that it never runs backwards.

use std::cell::Cell;

use super::*;

#[cfg(target_os = "linux")]
#[test]
fn it_is_the_clock_that_nobody_steers() {
    use rustix::time::{ClockId, clock_gettime};

    let raw = || {
        let time = clock_gettime(ClockId::MonotonicRaw);
        Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
    };
    // The steered clock has moved away from this one since the machine was started.
    let (before, now, after) = (raw(), Instant::now(), raw());
    assert!(before <= now.0 && now.0 <= after, "{before:?} {now:?}");
    const { assert!(!IS_STEERED) };
}

#[test]
fn it_never_runs_backwards() {
    let mut last = Instant::now();
    for _ in 0..1_000 {
        let now = Instant::now();
        assert!(now >= last);
        last = now;
    }
}

#[test]
fn instants_are_counted_with() {
    let now = Instant::now();
    let second = Duration::from_secs(1);
    assert_eq!((now + second) - now, second);
    assert_eq!(now - (now + second), Duration::ZERO, "not after it");
    assert_eq!((now + second) - second, now);
    assert!(now + Duration::MAX > now, "it saturates");
    assert!(now - Duration::MAX < now, "it saturates");
}

#[tokio::test]
async fn a_timer_that_fires_too_early_is_set_again_without_spinning() {
    // The system's clock, on which tokio's timers run, is twice as fast as this clock.
    let began = tokio::time::Instant::now();
    let origin = Instant::now();
    let looks = Cell::new(0);
    let now = || {
        looks.set(looks.get() + 1);
        origin + began.elapsed() / 2
    };
    let deadline = origin + Duration::from_millis(50);
    sleep_until_by(now, deadline).await;
    let (looks, took) = (looks.get(), began.elapsed().as_millis());
    assert!(now() >= deadline, "it woke too early");
    assert!(
        looks <= 2 + took,
        "{looks} looks in {took} ms: it slept between them"
    );
}

#[tokio::test]
async fn what_is_over_is_not_waited_for() {
    let over = Instant::now();
    let later = || over + Duration::from_secs(1);
    sleep_until_by(later, over).await;
    sleep_until(over).await;
}
