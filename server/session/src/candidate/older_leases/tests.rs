//! Changes of lease lengths, and the learning time of a successor.

use super::*;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(seconds: u64) -> Time {
    Time::after_origin(secs(seconds))
}

fn digest(seconds: u64) -> SmolStr {
    SmolStr::new(format!("leases of {seconds} s"))
}

/// Templates with leases of that many seconds, on a clock with that error.
fn lengths_by(seconds: u64, clock_tolerance: Tolerance) -> OlderLeases {
    let in_force = ActiveTemplates {
        digest: digest(seconds),
        longest: secs(seconds),
        has_history: false,
    };
    OlderLeases::new(&in_force, clock_tolerance)
}

fn lengths(seconds: u64) -> OlderLeases {
    lengths_by(seconds, Tolerance::LEAST)
}

/// New templates with leases of that many seconds.
fn next(lengths: &OlderLeases, seconds: u64) -> NextTemplates {
    let shortened = lengths.longest > secs(seconds);
    let outlasts = if shortened {
        lengths.longest
    } else {
        Duration::ZERO
    };
    NextTemplates {
        digest: digest(seconds),
        longest: secs(seconds),
        outlasts,
        learning_outlasts: outlasts,
    }
}

fn change(lengths: &mut OlderLeases, seconds: u64, granted_until: Time) {
    lengths.change(next(lengths, seconds), granted_until);
}

/// Compares the statement of a term: the templates by their longest lease in seconds, and older
/// leases.
#[track_caller]
fn check(written: &LeaseLengths, longest: u64, older_ms: u64) {
    let expected = LeaseLengths {
        templates: digest(longest),
        longest: secs(longest),
        older: Duration::from_millis(older_ms),
    };
    assert_eq!(*written, expected);
}

#[test]
fn longer_leases_are_written_before_shorter_ones_come_into_force() {
    let mut lengths = lengths(40);
    check(&lengths.to_write(None, at(0)), 40, 0);
    // Until the new templates are in force, leases have the full former length.
    for later in [0, 30] {
        let written = lengths.to_write(Some(&next(&lengths, 5)), at(later));
        check(&written, 5, 40_000);
    }
    change(&mut lengths, 5, at(30));
    let until = at(30) + at_most(secs(40));
    let before = |seconds| Time::after_origin(until.since(at(seconds)));
    check(&lengths.to_write(None, before(10)), 5, 10_000);
    check(&lengths.to_write(None, until), 5, 0);
    // Longer leases are written in time as well, and do not change the time of older leases.
    let written = lengths.to_write(Some(&next(&lengths, 40)), before(10));
    check(&written, 40, 10_000);
    change(&mut lengths, 40, at(40));
    check(&lengths.to_write(None, before(10)), 40, 10_000);
}

#[test]
fn of_two_changes_the_one_that_leaves_the_longer_leases_counts() {
    for (first, second, third) in [(40, 20, 5), (40, 5, 4), (10, 40, 5)] {
        let mut lengths = lengths(first);
        change(&mut lengths, second, at(0));
        change(&mut lengths, third, at(10));
        let until = [at(0) + at_most(secs(first)), at(10) + at_most(secs(second))];
        let shorter = [second < first, third < second];
        let until = until.into_iter().zip(shorter).filter(|(_, is)| *is);
        let until = until.map(|(until, _)| until).max().unwrap();
        let written = lengths.to_write(None, Time::after_origin(until.since(at(1))));
        check(&written, third, 1_000);
    }
}

#[test]
fn a_successor_learns_for_as_long_as_its_predecessor_states() {
    let lengths = lengths(5);
    let stated = |by: u64, older: u64| LeaseLengths {
        templates: digest(by),
        longest: secs(by),
        older: secs(older),
    };
    for (what, stated, longer) in [
        ("there was no predecessor", None, 0),
        ("by the same templates", Some(stated(5, 0)), 0),
        ("with older leases", Some(stated(5, 40)), 40),
        ("by other templates", Some(stated(20, 0)), 20),
        ("by others, with older leases", Some(stated(20, 40)), 40),
        ("by others, with shorter ones", Some(stated(20, 10)), 20),
    ] {
        let stated = stated
            .as_ref()
            .map_or(PredecessorLeases::NoTerm, PredecessorLeases::Lengths);
        let found = lengths.longer_leases(stated, secs(60));
        assert_eq!(found, secs(longer), "{what}");
    }
    let found = lengths.longer_leases(PredecessorLeases::NotStated, secs(60));
    assert_eq!(found, secs(60), "the term states nothing");
}

#[test]
fn a_chain_of_short_masterships_loses_nothing_and_adds_nothing() {
    let mut first = lengths(40);
    change(&mut first, 5, at(0));
    let until = at(0) + at_most(secs(40));
    let mut written = first.to_write(None, at(1));
    for vacant_since in [3, 6, 9].map(at) {
        let mut next = lengths(5);
        let longer = next.longer_leases(PredecessorLeases::Lengths(&written), Duration::ZERO);
        assert!(vacant_since + longer >= until);
        next.note_older(vacant_since, longer);
        written = next.to_write(None, vacant_since + secs(1));
    }
    // A successor counts from a later time than the writing. It adds no more than that.
    assert!(at(10) + written.older >= until);
    assert!(at(10) + written.older <= until + secs(3 * 3 + 1));
}

#[test]
fn a_clock_that_may_be_wrong_counts_older_leases_for_longer() {
    let mut lengths = lengths_by(40, Tolerance::clamped(0.1));
    change(&mut lengths, 5, at(0));
    // When a clock that is a tenth too fast shows 40 s, 36 s have passed.
    let written = lengths.to_write(None, at(40));
    assert!(written.older > secs(4), "{written:?}");
}

#[test]
fn durations_are_never_written_shorter_than_they_are() {
    let mut lengths = lengths(5);
    lengths.note_older(at(0), Duration::from_nanos(1_000_001));
    let written = lengths.to_write(None, at(0));
    assert_eq!(written.older, Duration::from_millis(2));
    let after = lengths.older_after(at(0));
    assert!(after > Duration::from_nanos(1_000_001));
    assert_eq!(lengths.older_after(at(1)), Duration::ZERO);
}

#[test]
fn by_a_clock_that_may_be_wrong_leases_of_others_last_longer() {
    let mut lengths = lengths_by(5, Tolerance::clamped(0.1));
    lengths.note_older(at(100), secs(40));
    // 40 s by a correct clock are 44 s by one that is a tenth too fast.
    assert!(lengths.older_after(at(100)) > secs(44));
    let written = lengths.to_write(None, at(110));
    assert!(written.older > secs(37), "{written:?}");
}
