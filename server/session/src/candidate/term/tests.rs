//! Ends and beginnings of masterships, by clocks that differ.

use super::*;

const TTL: Duration = Duration::from_secs(10);

fn term(server: &str, resigned: bool) -> TermRecord {
    TermRecord {
        epoch: 7,
        address: "there:1".into(),
        server: server.into(),
        length: TTL,
        resigned,
        leases: None,
        has_lease_span: false,
    }
}

fn at(seconds: u64) -> Time {
    Time::after_origin(Duration::from_secs(seconds))
}

#[test]
fn a_mastership_ends_before_its_lease_can() {
    for (ttl, holds) in [(10_000, 9_000), (2_000, 1_800), (500, 400), (50, 0)] {
        let until = valid_until(at(7), Duration::from_millis(ttl), Tolerance::LEAST);
        assert_eq!(until, at(7) + Duration::from_millis(holds), "TTL {ttl} ms");
    }
}

#[test]
fn a_mastership_ends_before_its_successor_begins_whichever_clock_is_wrong() {
    for part in [0.001, 0.01, 0.05, 0.1, 0.25] {
        let until = valid_until(at(7), TTL, Tolerance::clamped(part));
        let holds = until.since(at(7)).as_secs_f64();
        // The master's clock is as slow as allowed, the successor's as fast.
        let (ends, begins) = (holds / (1.0 - part), TTL.as_secs_f64() / (1.0 + part));
        assert!(ends <= begins + 1e-6, "{part}: {ends} {begins}");
        // There is time to renew it, which happens every third of the TTL.
        assert!(holds > TTL.as_secs_f64() * 0.55, "{part}: {holds}");
    }
}

#[test]
fn a_successor_begins_when_its_predecessor_has_certainly_ended() {
    let theirs = term("theirs", false);
    for (what, last, won, begins) in [
        ("there was no master before", None, 1, 1),
        ("it crashed, and its lease ran out", Some(&theirs), 11, 11),
        ("its key was deleted by hand", Some(&theirs), 3, 10),
        ("it resigned", Some(&term("theirs", true)), 3, 3),
        ("it was this process", Some(&term("ours", false)), 3, 3),
    ] {
        let last = last.map(|term| (term, at(0)));
        assert_eq!(may_begin(last, "ours", at(won)), at(begins), "{what}");
    }
    // The predecessor stops earlier.
    assert!(
        valid_until(at(0), TTL, Tolerance::LEAST)
            < may_begin(Some((&theirs, at(0))), "ours", at(0))
    );
}

#[test]
fn a_node_is_vacant_since_the_last_moment_of_a_decision() {
    let (theirs, ours) = (term("theirs", false), term("ours", false));
    let resigned = term("theirs", true);
    for (what, last, others, begins, vacant) in [
        ("nothing is known", None, None, 60, 60),
        ("it was cut off from etcd", Some(&theirs), None, 60, 10),
        ("it was this process", Some(&ours), None, 60, 10),
        ("it resigned", Some(&resigned), None, 60, 0),
        ("it began early", Some(&theirs), None, 3, 3),
        ("one before it may act", Some(&resigned), Some(7), 60, 7),
        ("ones before it might", Some(&theirs), Some(7), 60, 10),
    ] {
        let last = last.map(|term| (term, at(0)));
        let found = vacant_since(last, others.map(at), at(begins));
        assert_eq!(found, at(vacant), "{what}");
    }
}

#[test]
fn epochs_go_on_although_revisions_go_back() {
    for (highest, revision, offset) in [(0, 3, 0), (7, 7, 0), (7, 20, 0), (7, 1, 6)] {
        let found = epoch_offset(highest, revision);
        assert_eq!(found, offset, "{highest} {revision}");
        assert!(highest < revision + 1 + found);
    }
}

#[test]
fn a_term_that_has_not_begun_covers_the_rest_of_the_one_before() {
    assert_eq!(length(at(0), TTL, at(10)), TTL);
    assert_eq!(length(at(5), TTL, at(0)), TTL);
    assert_eq!(length(at(30), TTL, at(0)), TTL * 3);
    let longer = at(30) + Duration::from_nanos(1);
    let written = length(longer, TTL, at(0));
    assert_eq!(
        written,
        TTL * 3 + Duration::from_millis(1),
        "at least the rest"
    );
}
