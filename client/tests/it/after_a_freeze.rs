//! Limiters of a client in safe mode that was frozen for several lease lengths. The program calls them before the
//! client's task can update them.

use std::time::Duration;

use doorward::Refusal;
use doorward::capacity::{Allowance, Capacity, GrantedSafeCapacity, InSafeMode, Source};
use doorward::limiter::concurrency::LeasedPermits;
use doorward::limiter::rate::{Burst, LeasedRate};
use doorward::time::Time;
use doorward_limits::{Moment, Units, Wait};

fn at(seconds: f64) -> Time {
    Time::after_origin(Duration::from_secs_f64(seconds))
}

fn moment(time: Time) -> Moment {
    Moment::ORIGIN.after(time.since_origin())
}

/// Returns a lease of 100 that ends after 100 s, followed by a safe capacity of 8. Leases last 10 s.
fn lease() -> Allowance {
    let since = at(100.0);
    let safe = GrantedSafeCapacity {
        granted: Capacity::Limited(8.0),
        length: Duration::from_secs(10),
        since,
    };
    Allowance {
        capacity: Capacity::Limited(100.0),
        source: Source::Lease,
        until: Some(since),
        then: safe.granted,
        safe: Some(InSafeMode { safe, wants: 1e6 }),
    }
}

/// Takes as a program's call does: by the fast path, and by the other one where that cannot decide.
fn take(limiter: &LeasedRate, cost: f64, now: Time) -> Result<(), Refusal> {
    let answer = limiter.try_acquire_at_once(Units::at_least(cost).unwrap(), moment(now));
    let after = |wait: Wait| Refusal::over(Some(wait.into()));
    answer.map_or_else(|| limiter.try_acquire(cost, now), |it| it.map_err(after))
}

/// Returns the number of admitted requests between two points in time, each at the time of the previous answer.
fn admitted(limiter: &LeasedRate, from: f64, to: f64) -> u32 {
    let (mut now, mut count) = (at(from), 0);
    while now < at(to) {
        match take(limiter, 1.0, now) {
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
fn a_rate_is_halved_as_often_as_leases_would_have_ended() {
    let limiter = LeasedRate::new(Burst::default(), at(0.0));
    limiter.handle_allowance(lease(), at(0.0));
    // The safe capacity is 8, 4, 2, and 1 by now: a burst, and one each second.
    assert_eq!(admitted(&limiter, 135.0, 139.9), 5);
    // It continues by itself.
    assert_eq!(admitted(&limiter, 140.0, 149.9), 5);
    assert!(admitted(&limiter, 10_000.0, 20_000.0) <= 1);
}

#[test]
fn the_supply_of_an_expensive_request_survives_each_halving() {
    let limiter = LeasedRate::new(Burst::default(), at(0.0));
    limiter.handle_allowance(lease(), at(0.0));
    assert!(take(&limiter, 3.0, at(99.0)).is_ok());
    // The lease of 100 for a second, 10 s of 8, 10 s of 4, 10 s of 2, and 5 s of 1.
    assert!(take(&limiter, 245.1, at(135.0)).is_err());
    assert!(take(&limiter, 244.9, at(135.0)).is_ok());
}

#[test]
fn permits_are_halved_as_often_as_leases_would_have_ended() {
    let limiter = LeasedPermits::default();
    limiter.handle_allowance(lease());
    let admits = |seconds| {
        let answer = limiter.try_acquire_at_once(1, moment(at(seconds)));
        answer.unwrap_or_else(|| limiter.try_acquire(1, at(seconds)))
    };
    assert!((0..8).all(|_| admits(105.0)), "the first one is not over");
    limiter.release(8);
    assert!(admits(135.0));
    assert!(!admits(135.0), "8, 4, 2, and 1 by now");
    assert_eq!(limiter.until(), Some(at(140.0)));
    limiter.release(1);
    assert!(!admits(145.0), "half of one is none");
}
