//! The reasons of a lease, as they are printed.

use super::*;

#[track_caller]
fn check(limit: Option<LimitedBy>, millis: Option<u64>, words: Option<&str>) {
    let said = super::words(limit, millis.map(Duration::from_millis));
    assert_eq!(said.as_deref(), words, "{limit:?} {millis:?}");
}

#[test]
fn learning_mode_is_printed_with_its_end_and_what_is_not_known_is_not_printed() {
    use LimitedBy::{Learning, ParentLearning, Share, Wants};

    check(None, None, None);
    check(None, Some(9_000), None);
    check(Some(Wants), Some(9_000), None);
    check(
        Some(Learning),
        Some(40_001),
        Some("learning mode, at most 41 s left"),
    );
    check(
        Some(Learning),
        Some(900),
        Some("learning mode, at most 1 s left"),
    );
    check(
        Some(Learning),
        Some(3_600_000),
        Some("learning mode, at most 1h left"),
    );
    check(Some(Learning), None, Some("learning mode"));
    check(
        Some(ParentLearning),
        Some(2_000),
        Some("learning mode of a parent, at most 2 s left"),
    );
    check(
        Some(Share),
        None,
        Some("its share; the capacity does not cover all wants"),
    );
}
