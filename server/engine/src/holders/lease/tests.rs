//! Reserved capacity of one holder, second by second.

use super::*;
use crate::id::Incarnation;

fn amount(value: f64) -> Amount {
    Amount::new(value).unwrap()
}

fn lease(capacity: f64, expires_at: u64) -> Lease {
    Lease {
        capacity: amount(capacity),
        expires_at: Time::from_secs(expires_at),
    }
}

/// Reserved at the given seconds, expiring as time goes on.
#[track_caller]
fn check(leases: &Leases, expected: &[(u64, f64)]) {
    let mut leases = leases.clone();
    for (second, reserved) in expected {
        let alive = leases.expire(Time::from_secs(*second));
        let got = if alive { leases.reserved().get() } else { 0.0 };
        assert_eq!(got, *reserved, "at {second} s: {leases:?}");
    }
}

#[test]
fn a_larger_or_equal_lease_replaces_the_one_before() {
    let mut leases = Leases::new(lease(40.0, 60));
    leases.grant(lease(100.0, 70));
    assert!(leases.older().is_empty());
    leases.grant(lease(100.0, 80));
    assert!(leases.older().is_empty(), "as large");
    leases.grant(lease(110.0, 80));
    assert!(leases.older().is_empty(), "as long");
    check(&leases, &[(0, 110.0), (79, 110.0), (80, 0.0)]);
}

#[test]
fn a_shrunk_lease_counts_in_full_until_the_older_one_ends() {
    let mut leases = Leases::new(lease(100.0, 60));
    leases.grant(lease(40.0, 70));
    check(
        &leases,
        &[(0, 100.0), (59, 100.0), (60, 40.0), (69, 40.0), (70, 0.0)],
    );
}

#[test]
fn a_child_servers_lease_counts_until_a_longer_one_of_before_ends() {
    let mut leases = Leases::new(lease(30.0, 90));
    leases.grant_to_server(lease(50.0, 30));
    leases.grant_to_server(lease(25.0, 32));
    check(&leases, &[(0, 50.0), (31, 50.0), (89, 50.0), (90, 0.0)]);
    leases.grant_to_server(lease(20.0, 95));
    check(&leases, &[(89, 50.0), (90, 20.0), (95, 0.0)]);
    leases.acknowledge(amount(30.0));
    check(&leases, &[(0, 30.0), (89, 30.0), (90, 20.0), (95, 0.0)]);
}

#[test]
fn an_acknowledged_shrink_counts_at_once() {
    let mut leases = Leases::new(lease(100.0, 60));
    leases.grant(lease(40.0, 70));
    leases.acknowledge(amount(40.0));
    assert!(leases.older().is_empty());
    check(&leases, &[(0, 40.0), (69, 40.0), (70, 0.0)]);
}

#[test]
fn a_holder_that_still_has_the_old_lease_acknowledges_nothing() {
    let mut leases = Leases::new(lease(100.0, 60));
    leases.grant(lease(40.0, 70));
    leases.acknowledge(amount(100.0));
    check(&leases, &[(0, 100.0), (60, 40.0)]);
}

#[test]
fn work_still_in_flight_counts_until_the_older_lease_ends() {
    let mut leases = Leases::new(lease(100.0, 60));
    leases.grant(lease(40.0, 70));
    leases.acknowledge(amount(70.0));
    check(&leases, &[(0, 70.0), (59, 70.0), (60, 40.0)]);
}

#[test]
fn several_shrinks_come_down_as_a_staircase() {
    let mut leases = Leases::new(lease(100.0, 60));
    leases.grant(lease(80.0, 65));
    leases.grant(lease(20.0, 70));
    leases.grant(lease(40.0, 75));
    check(
        &leases,
        &[(59, 100.0), (60, 80.0), (65, 40.0), (74, 40.0), (75, 0.0)],
    );
}

#[test]
fn a_shorter_lease_counts_for_nothing_once_over_but_an_older_longer_one_does() {
    let mut leases = Leases::new(lease(100.0, 60));
    leases.grant(lease(40.0, 20));
    check(&leases, &[(0, 100.0), (20, 100.0), (59, 100.0), (60, 0.0)]);
    leases.acknowledge(amount(40.0));
    check(&leases, &[(0, 40.0), (20, 40.0), (59, 40.0), (60, 0.0)]);
}

#[test]
fn a_holder_that_has_nothing_frees_all() {
    let mut leases = Leases::new(lease(100.0, 60));
    leases.grant(lease(40.0, 70));
    leases.acknowledge(Amount::ZERO);
    check(&leases, &[(0, 0.0)]);
    // Nor is it remembered for as long as it would have had more.
    let mut leases = Leases::new(lease(100.0, 60));
    leases.grant(lease(40.0, 20));
    leases.acknowledge(Amount::ZERO);
    assert_eq!(leases.last_expiry(), Time::from_secs(20));
}

#[test]
fn a_larger_lease_that_ends_before_the_longest_counts_until_its_end() {
    let mut leases = Leases::new(lease(100.0, 60));
    leases.grant(lease(40.0, 70));
    leases.grant(lease(70.0, 65));
    leases.grant(lease(10.0, 80));
    check(
        &leases,
        &[(59, 100.0), (60, 70.0), (65, 40.0), (70, 10.0), (80, 0.0)],
    );
}

#[test]
fn older_leases_that_do_not_count_are_dropped() {
    for grants in [
        // The second ends with the first.
        [(100.0, 60), (40.0, 60), (10.0, 80)],
        // The second ends before the first.
        [(100.0, 60), (40.0, 50), (10.0, 80)],
        // The third covers the second.
        [(100.0, 60), (5.0, 70), (10.0, 80)],
    ] {
        let mut leases = Leases::new(lease(0.0, 1));
        for (capacity, until) in grants {
            leases.grant(lease(capacity, until));
        }
        assert_eq!(leases.older(), [lease(100.0, 60)], "{grants:?}");
    }
}

/// Gives a process a lease, and then its name to another process.
fn handed_on(leases: &mut Leases, number: u64, capacity: f64) {
    leases.grant(lease(capacity, 60));
    leases.set_apart(Incarnation::new(number), Time::ZERO);
}

#[test]
fn a_process_that_had_the_name_several_times_gets_its_largest_lease_back() {
    for capacities in [[10.0, 30.0], [30.0, 10.0]] {
        let mut leases = Leases::new(lease(0.0, 60));
        handed_on(&mut leases, 1, capacities[0]);
        handed_on(&mut leases, 2, 50.0);
        handed_on(&mut leases, 1, capacities[1]);
        assert_eq!(leases.reserved(), amount(90.0));
        let own = leases.take_apart(Incarnation::new(1));
        assert_eq!(own, Some(lease(30.0, 60)), "{capacities:?}");
        assert_eq!(leases.reserved(), amount(50.0));
    }
}

#[test]
fn a_process_that_has_the_name_again_has_it_until_its_last_lease_ends() {
    for ends in [[60, 80], [80, 60]] {
        let mut leases = Leases::new(lease(0.0, 1));
        for (number, end) in [(1, ends[0]), (2, 50), (1, ends[1])] {
            leases.grant(lease(10.0, end));
            leases.set_apart(Incarnation::new(number), Time::ZERO);
        }
        let own = leases.take_apart(Incarnation::new(1));
        assert_eq!(own, Some(lease(10.0, 80)), "{ends:?}");
    }
}

#[test]
fn a_lease_kept_apart_replaces_the_former_one_of_the_same_process_only() {
    let mut leases = Leases::new(lease(5.0, 60));
    assert!(!leases.has_apart());
    for (number, capacity) in [(1, 30.0), (2, 50.0), (1, 20.0)] {
        leases.add_apart(OtherProcessLease {
            whose: Whose::One(Incarnation::new(number)),
            lease: lease(capacity, 60),
            ends: Time::from_secs(60),
        });
    }
    assert!(leases.has_apart());
    check(&leases, &[(0, 75.0), (60, 0.0)]);
}

#[test]
fn a_merged_lease_of_several_is_not_taken_back_by_one() {
    let mut leases = Leases::new(lease(0.0, 60));
    for number in 1..=6 {
        handed_on(&mut leases, number, 10.0);
    }
    assert!(leases.reserved() >= amount(60.0));
    for number in 1..=3 {
        assert_eq!(leases.take_apart(Incarnation::new(number)), None);
        assert!(leases.reserved() >= amount(60.0), "process {number}");
    }
    let own = leases.take_apart(Incarnation::new(4));
    assert_eq!(own, Some(lease(10.0, 60)));
    assert!(leases.reserved() >= amount(50.0));
    assert!(leases.reserved() < amount(50.1));
}

#[test]
fn many_shrinks_never_count_for_less_than_they_are() {
    let mut leases = Leases::new(lease(100.0, 60));
    for step in 1..30_u32 {
        leases.grant(lease(100.0 - f64::from(step), 60 + u64::from(step)));
    }
    assert_eq!(leases.older().len(), OLDER_MAX);
    for second in 0..60 + 29 {
        let mut at = leases.clone();
        at.expire(Time::from_secs(second));
        let step = second.saturating_sub(59).min(29);
        let truly = 100.0 - step as f64;
        assert!(at.reserved().get() >= truly, "at {second} s");
    }
}
