//! Lines that are logged and left out, minute by minute.

use super::LineVerdict::{LeftOut, Logged};
use super::*;

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// With two lines a minute: when a line comes, of which place, and what becomes of it.
#[track_caller]
fn check(lines: &[(u64, &'static str, LineVerdict)]) -> LineAllowance<&'static str> {
    let mut allowance = LineAllowance::new(2);
    for (number, (second, place, verdict)) in lines.iter().enumerate() {
        let found = allowance.handle_line(place, at(*second));
        assert_eq!(found, *verdict, "line {number}");
    }
    allowance
}

#[test]
fn a_place_logs_its_allowance_and_the_rest_is_counted() {
    let mut allowance = check(&[
        (5, "a", Logged),
        (6, "a", Logged),
        (7, "a", LeftOut(Some(at(65)))),
        (8, "a", LeftOut(None)),
        (64, "a", LeftOut(None)),
    ]);
    assert_eq!(allowance.poll_timeout(), Some(at(65)));
    assert_eq!(allowance.poll_left_out(at(64)), []);
    assert_eq!(allowance.poll_left_out(at(65)), [("a", 3)]);
    assert_eq!(allowance.poll_left_out(at(66)), []);
    assert_eq!(allowance.poll_timeout(), None);
    assert_eq!(allowance.handle_line(&"a", at(66)), Logged);
}

#[test]
fn no_place_takes_anothers_allowance() {
    check(&[
        (0, "a", Logged),
        (0, "a", Logged),
        (0, "a", LeftOut(Some(at(60)))),
        (0, "b", Logged),
        (1, "b", Logged),
        (2, "b", LeftOut(Some(at(60)))),
    ]);
}

#[test]
fn the_next_minute_begins_with_the_first_line_after_the_last_one() {
    check(&[
        (0, "a", Logged),
        (59, "a", Logged),
        (60, "a", Logged),
        (119, "a", Logged),
        (119, "a", LeftOut(Some(at(120)))),
    ]);
}

#[test]
fn what_was_left_out_is_reported_before_anything_more_is_logged() {
    let mut allowance = check(&[
        (0, "a", Logged),
        (0, "a", Logged),
        (1, "a", LeftOut(Some(at(60)))),
        // Whoever is to report is late.
        (70, "a", LeftOut(None)),
    ]);
    assert_eq!(allowance.poll_left_out(at(71)), [("a", 2)]);
    assert_eq!(allowance.handle_line(&"a", at(71)), Logged);
}
