//! Terms that are seen, overwritten or gone, and the wait of a successor for each.

use super::super::store::LeaseLengths;
use super::*;

fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn at(seconds: u64) -> Time {
    Time::after_origin(secs(seconds))
}

const TTL: Duration = Duration::from_secs(10);

/// A term of 10 s, with leases of that many seconds if it states any.
fn term(epoch: u64, resigned: bool, longest: Option<u64>) -> TermRecord {
    TermRecord {
        epoch,
        address: "there:1".into(),
        server: "theirs".into(),
        length: secs(10),
        resigned,
        leases: longest.map(|seconds| LeaseLengths {
            templates: "d".into(),
            longest: secs(seconds),
            older: Duration::ZERO,
        }),
        has_lease_span: false,
    }
}

#[test]
fn the_highest_epoch_stays() {
    let mut past = TermHistory::default();
    for (epoch, highest) in [(46, 46), (18, 46), (47, 47), (u64::MAX, 47), (0, 47)] {
        past.note_epoch(epoch);
        assert_eq!(past.highest_epoch(), highest, "after {epoch}");
    }
}

#[test]
fn a_successor_waits_for_a_master_whose_term_is_overwritten() {
    for (what, restored, won, begins, vacant) in [
        // Another server may have been elected since the backup.
        ("it resigned in the backup", Some((18, true)), 3, 12, 12),
        (
            "it was confirmed in the backup",
            Some((18, false)),
            3,
            12,
            12,
        ),
        ("it cannot be read", Some((0, false)), 3, 12, 12),
        ("its time is over", Some((18, true)), 20, 20, 12),
        ("it is as it was", None, 3, 10, 10),
    ] {
        let mut past = TermHistory::default();
        past.note_term(&term(46, false, None), at(0));
        if let Some((epoch, resigned)) = restored {
            past.note_term(&term(epoch, resigned, None), at(2));
        }
        let found = past.begin("ours", None, at(won));
        assert_eq!(found, (at(begins), Some(at(vacant))), "{what}");
        assert_eq!(past.highest_epoch(), 46, "{what}");
    }
}

/// Another server was the master, last confirmed at 0 s. etcd answers again at 20 s, and this server wins at 21 s.
#[track_caller]
fn check_reported(what: &str, found: impl FnOnce(&mut TermHistory), begins: u64, vacant: u64) {
    let mut past = TermHistory::default();
    past.note_reported_epoch(40, TTL, at(0));
    past.note_term(&term(46, false, None), at(0));
    found(&mut past);
    let found = past.begin("ours", None, at(21));
    assert_eq!(found, (at(begins), Some(at(vacant))), "{what}");
}

#[test]
fn a_master_of_whom_others_report_and_whose_term_was_never_seen_is_given_time() {
    check_reported("nobody does", |_| (), 21, 10);
    let reports = |past: &mut TermHistory| {
        past.note_reported_epoch(52, TTL, at(20));
        past.note_reported_epoch(52, TTL, at(21));
    };
    check_reported("others do", reports, 30, 30);
    let known = |past: &mut TermHistory| past.note_reported_epoch(46, TTL, at(20));
    check_reported("others tell of this one", known, 21, 10);
    let seen = |past: &mut TermHistory| {
        past.note_reported_epoch(52, TTL, at(20));
        past.note_term(&term(52, true, None), at(20));
    };
    check_reported("its term is seen", seen, 21, 20);
    let own = |past: &mut TermHistory| {
        past.note_own_epoch(52);
        past.note_reported_epoch(52, TTL, at(20));
    };
    check_reported("they tell of our own", own, 21, 10);
    let by_hand = |past: &mut TermHistory| past.note_reported_epoch(u64::MAX, TTL, at(20));
    check_reported("somebody wrote nonsense", by_hand, 21, 10);
}

#[test]
fn a_node_is_not_vacant_while_this_server_may_decide_itself() {
    let mut past = TermHistory::default();
    past.note_term(&term(46, true, None), at(0));
    let found = past.begin("ours", Some(at(9)), at(21));
    assert_eq!(found, (at(21), Some(at(9))));
}

#[test]
fn a_term_that_is_settled_is_not_waited_for_unless_something_is_missing() {
    type Case = (
        &'static str,
        Option<u64>,
        fn(&mut TermHistory),
        u64,
        Option<u64>,
    );
    let nothing = |_: &mut TermHistory| ();
    let reported = |past: &mut TermHistory| past.note_reported_epoch(52, TTL, at(20));
    let again = |past: &mut TermHistory| past.note_term(&term(46, false, Some(40)), at(20));
    let cases: [Case; 4] = [
        ("no lease is left", Some(40), nothing, 21, None),
        (
            "below the root, the parent tells",
            None,
            nothing,
            21,
            Some(21),
        ),
        (
            "others saw a higher epoch",
            Some(40),
            reported,
            30,
            Some(30),
        ),
        ("it is confirmed again", Some(40), again, 30, Some(30)),
    ];
    for (what, longest, then, begins, vacant) in cases {
        let mut past = TermHistory::default();
        past.note_term(&term(46, false, longest), at(19));
        past.note_settled();
        then(&mut past);
        let found = past.begin("ours", None, at(21));
        assert_eq!(found, (at(begins), vacant.map(at)), "{what}");
    }
}

#[test]
fn without_the_last_term_any_master_may_have_followed() {
    let mut past = TermHistory::default();
    past.note_no_term(at(1));
    assert_eq!(
        past.begin("ours", None, at(1)),
        (at(1), Some(at(1))),
        "no term before"
    );
    let mut past = TermHistory::default();
    past.note_term(&term(46, false, Some(40)), at(0));
    // The server was frozen, etcd was wiped, and the server sees that now. The second time changes nothing.
    past.note_no_term(at(30));
    past.note_no_term(at(50));
    assert_eq!(past.predecessor_leases(), PredecessorLeases::NoTerm);
    assert_eq!(past.highest_epoch(), 46);
    assert_eq!(past.lost_after(at(0)), secs(50));
    assert_eq!(past.begin("ours", None, at(31)), (at(40), Some(at(40))));
}

#[test]
fn leases_of_a_term_are_kept_if_the_next_term_does_not_carry_them_on() {
    for (what, next, lost) in [
        ("its successor copies them", term(47, false, Some(5)), 0),
        (
            "its successor is of an older version",
            term(47, false, None),
            50,
        ),
        ("it was restored from a backup", term(18, true, Some(5)), 50),
    ] {
        let mut past = TermHistory::default();
        assert_eq!(past.predecessor_leases(), PredecessorLeases::NoTerm);
        past.note_term(&term(46, false, Some(40)), at(0));
        assert!(matches!(
            past.predecessor_leases(),
            PredecessorLeases::Lengths(_)
        ));
        past.note_term(&next, at(2));
        assert_eq!(past.lost_after(at(0)), secs(lost), "{what}");
        let states_nothing = next.leases.is_none();
        assert_eq!(
            past.predecessor_leases() == PredecessorLeases::NotStated,
            states_nothing,
            "{what}"
        );
    }
}
