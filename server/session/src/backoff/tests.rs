//! Tables of failures, and the wait after each.

use super::FailureKind::{Masterless, OutOfReach};
use super::*;

fn at(seconds: f64) -> Time {
    Time::after_origin(Duration::from_secs_f64(seconds))
}

/// Returns the wait after each failure, in seconds, with the largest chance.
fn waits_of(is_served: bool, failures: &[(FailureKind, f64)]) -> Vec<f64> {
    let mut backoff = Backoff::default();
    let wait = |&(kind, now): &(FailureKind, f64)| {
        let config = BackoffConfig::default();
        let wait = backoff.fail(kind, config, is_served, 1.0, at(now));
        (wait.as_secs_f64() * 1e6).round() / 1e6
    };
    failures.iter().map(wait).collect()
}

/// Returns the waits while every resource has a lease.
fn waits(failures: &[(FailureKind, f64)]) -> Vec<f64> {
    waits_of(true, failures)
}

/// From a tenth of a second to a second.
const LIMITS: WaitLimits = WaitLimits {
    base: Duration::from_millis(100),
    cap: Duration::from_secs(1),
    least: 0.0,
};

/// Checks the waits after failures in a row, in milliseconds.
#[track_caller]
fn check(limits: WaitLimits, at_once: u32, chance: f64, expected: &[u128]) {
    let mut backoff = Backoff::default();
    for repeat in ["first", "after a success"] {
        let waits: Vec<u128> = expected
            .iter()
            .map(|_| backoff.note_failure(limits, at_once, chance).as_millis())
            .collect();
        assert_eq!(waits, expected, "{limits:?} {at_once} {chance} {repeat}");
        backoff.succeed();
    }
}

#[test]
fn waits_double_from_the_base_to_the_cap() {
    check(LIMITS, 0, 1.0, &[100, 200, 400, 800, 1_000, 1_000]);
    check(LIMITS, 0, 0.5, &[50, 100, 200, 400, 500, 500]);
}

#[test]
fn other_addresses_are_tried_at_once() {
    check(LIMITS, 1, 1.0, &[0, 100, 200]);
    check(LIMITS, 3, 1.0, &[0, 0, 0, 100, 200, 400, 800, 1_000]);
}

#[test]
fn chance_leaves_the_least_part_of_a_wait() {
    for (least, chance, expected) in [
        (0.0, 0.0, [0, 0, 0]),
        (0.1, 0.0, [10, 20, 40]),
        (0.5, 0.0, [50, 100, 200]),
        (0.5, 0.5, [75, 150, 300]),
        (0.5, 1.0, [100, 200, 400]),
        (1.0, 0.0, [100, 200, 400]),
        // A chance outside 0…1 counts as the nearer end.
        (0.0, -1.0, [0, 0, 0]),
        (0.0, 2.0, [100, 200, 400]),
    ] {
        check(WaitLimits { least, ..LIMITS }, 0, chance, &expected);
    }
}

#[test]
fn failures_without_end_overflow_nothing() {
    let mut backoff = Backoff::default();
    let forever = WaitLimits {
        base: Duration::MAX,
        cap: Duration::MAX,
        least: 0.0,
    };
    for _ in 0..100 {
        backoff.note_failure(forever, 0, 0.5);
    }
    backoff.out_of_reach = u32::MAX;
    let wait = backoff.note_failure(LIMITS, 0, 1.0);
    assert_eq!((wait, backoff.failures()), (LIMITS.cap, u32::MAX));
}

#[test]
fn waits_double_up_to_the_cap_and_start_over_after_a_success() {
    assert_eq!(
        waits(&[(OutOfReach, 0.0); 9]),
        [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    );
    let config = BackoffConfig::default();
    let mut backoff = Backoff::default();
    for kind in [OutOfReach, OutOfReach, Masterless, OutOfReach] {
        backoff.fail(kind, config, true, 1.0, at(0.0));
    }
    assert!(backoff.failures() > 0);
    backoff.succeed();
    assert_eq!(backoff.failures(), 0);
    let wait = backoff.fail(OutOfReach, config, true, 0.5, at(1.0));
    assert_eq!(wait, Duration::from_millis(500));
}

#[test]
fn jitter_is_full_but_not_while_a_master_is_awaited() {
    for (kind, chance, wait) in [
        (OutOfReach, 0.0, 0.0),
        (OutOfReach, 1.0, 1.0),
        (Masterless, 0.0, 0.5),
        (Masterless, 1.0, 1.5),
    ] {
        let config = BackoffConfig::default();
        let waited = Backoff::default().fail(kind, config, true, chance, at(0.0));
        assert_eq!(waited.as_secs_f64(), wait, "{kind:?} {chance}");
    }
}

#[test]
fn while_a_master_is_elected_every_failure_is_retried_after_about_a_second() {
    assert_eq!(waits(&[(Masterless, 0.0); 30]), [1.5; 30]);
    // One of several servers is down, the others have no master.
    let mixed = [
        (Masterless, 0.0),
        (OutOfReach, 1.5),
        (OutOfReach, 3.0),
        (Masterless, 4.5),
        (OutOfReach, 19.0),
    ];
    assert_eq!(waits(&mixed), [1.5; 5]);
}

#[test]
fn a_node_that_was_unreachable_and_now_elects_is_asked_about_every_second() {
    let failures = [
        (OutOfReach, 0.0),
        (OutOfReach, 0.0),
        (OutOfReach, 0.0),
        (Masterless, 9.0),
        (OutOfReach, 10.0),
    ];
    assert_eq!(waits(&failures), [1.0, 2.0, 4.0, 1.5, 1.5]);
}

#[test]
fn a_node_that_stopped_answering_is_out_of_reach() {
    let failures = [(Masterless, 0.0), (OutOfReach, 15.0), (OutOfReach, 16.0)];
    assert_eq!(waits(&failures), [1.5, 1.0, 2.0]);
}

#[test]
fn waits_for_a_master_grow_after_half_a_minute() {
    let waits = waits(&[(Masterless, 0.0); 36]);
    assert_eq!(waits[29..], [1.5, 1.5, 3.0, 6.0, 12.0, 12.0, 12.0]);
    let hasty = BackoffConfig {
        base: Duration::from_secs(1),
        cap: Duration::from_secs(1),
        ..BackoffConfig::default()
    };
    let wait = Backoff::default().fail(Masterless, hasty, true, 1.0, at(0.0));
    assert!(wait <= hasty.cap, "{wait:?}");
}

#[test]
fn without_a_lease_no_wait_is_longer_than_five_seconds() {
    assert_eq!(
        waits_of(false, &[(OutOfReach, 0.0); 6]),
        [1.0, 2.0, 4.0, 5.0, 5.0, 5.0]
    );
    let elections = waits_of(false, &[(Masterless, 0.0); 36]);
    assert_eq!(elections[29..32], [1.5, 1.5, 3.0]);
    assert_eq!(elections[32..], [5.0; 4]);
    // Jitter stays full at the cap, and is not cut off there during an election.
    let config = BackoffConfig::default();
    for (kind, least) in [(OutOfReach, 0.0), (Masterless, 5.0 / 3.0)] {
        let mut backoff = Backoff::default();
        for _ in 0..40 {
            backoff.fail(kind, config, false, 1.0, at(0.0));
        }
        for (chance, wait) in [(0.0, least), (0.5, f64::midpoint(least, 5.0))] {
            let waited = backoff.clone().fail(kind, config, false, chance, at(0.0));
            let waited = waited.as_secs_f64();
            assert!((waited - wait).abs() < 1e-6, "{kind:?} {chance}: {waited}");
        }
    }
    // A lower cap for all failures applies here, too.
    let hasty = BackoffConfig {
        cap: Duration::from_millis(10),
        ..config
    };
    let wait = Backoff::default().fail(OutOfReach, hasty, false, 1.0, at(0.0));
    assert_eq!(wait, hasty.cap);
}

#[test]
fn callers_come_back_no_earlier_than_asked_and_not_all_at_once() {
    for (retry_in, earliest, latest) in [
        (0, 500, 625),
        (100, 500, 625),
        (2_000, 2_000, 2_500),
        (48_000, 48_000, 60_000),
        (3_600_000, 48_000, 60_000),
        (u64::MAX, 48_000, 60_000),
    ] {
        let waits = [0.0, 1.0].map(|chance| come_back(Duration::from_millis(retry_in), chance));
        let expected = [earliest, latest].map(Duration::from_millis);
        assert_eq!(waits, expected, "{retry_in} ms");
    }
}
