//! The amount left for holders that have not reported yet, report by report.

use super::*;

fn amount(amount: f64) -> Amount {
    Amount::new(amount).unwrap()
}

fn id(bits: u64) -> Origin {
    Some(MastershipId::new(bits))
}

/// A client's report, before any other.
fn report(origin: Origin, amount: f64, until: Time) -> ReportedLease {
    let amount = self::amount(amount);
    ReportedLease {
        origin,
        amount,
        until,
        said: Time::ZERO,
        lasts: Some((amount, until)),
    }
}

const NOW: Time = Time::from_secs(100);
const LATER: Time = Time::from_secs(160);

fn books(inherited: f64, accounted: &[u64]) -> ParentTerms {
    ParentTerms {
        inherited: Some(amount(inherited)),
        accounted: accounted
            .iter()
            .map(|bits| MastershipId::new(*bits))
            .collect(),
        ..ParentTerms::default()
    }
}

#[track_caller]
fn check(learned: &Learned, expected: f64) {
    let left = learned.unreported().rounded_down();
    assert!((left - expected).abs() < 1e-9, "{left}, not {expected}");
}

#[test]
fn capacity_that_is_not_reported_yet_is_left_for_its_holders() {
    let mut learned = Learned::default();
    learned.note_parent_books(&books(60.0, &[]), id(1), NOW);
    check(&learned, 60.0);
    learned.note(1, report(id(5), 20.0, LATER));
    check(&learned, 40.0);
    // Again, with more, from another mastership by now, and when it is gone.
    learned.note(1, report(id(5), 10.0, LATER));
    check(&learned, 40.0);
    learned.note(1, report(id(6), 25.0, LATER));
    check(&learned, 35.0);
    learned.note_gone(1);
    check(&learned, 35.0);
    learned.note(1, report(id(5), 25.0, LATER));
    check(&learned, 35.0);
    learned.note(2, report(None, 40.0, LATER));
    check(&learned, 0.0);
}

#[test]
fn leases_that_the_parent_does_not_know_leave_no_less_for_the_others() {
    for (accounted, left) in [(&[5, 6][..], 40.0), (&[], 10.0)] {
        let mut learned = Learned::default();
        learned.note(1, report(id(5), 20.0, LATER));
        learned.note_parent_books(&books(60.0, accounted), id(1), NOW);
        learned.note(2, report(id(7), 30.0, LATER));
        check(&learned, left);
    }
}

#[test]
fn a_lease_that_has_ended_is_no_part_of_a_later_amount() {
    let soon = Time::from_secs(105);
    let mut learned = Learned::default();
    // The report comes before the parent's answer, and its lease has ended by then.
    learned.note(1, report(id(5), 9.0, Time::from_secs(99)));
    learned.note_parent_books(&books(80.0, &[]), id(1), NOW);
    check(&learned, 80.0);
    learned.note(2, report(id(5), 70.0, soon));
    check(&learned, 10.0);
    // The parent's amount is smaller now, and the second holder has no part of it.
    learned.note_parent_books(&books(50.0, &[]), id(1), Time::from_secs(106));
    check(&learned, 10.0);
    learned.note(3, report(id(5), 5.0, LATER));
    check(&learned, 5.0);
    learned.note_parent_books(&books(2.0, &[]), id(1), Time::from_secs(110));
    check(&learned, 0.0 + 2.0 - 2.0);
}

#[test]
fn a_report_makes_a_lease_longer_and_never_shorter() {
    let soon = Time::from_secs(105);
    for untils in [[soon, LATER], [LATER, soon]] {
        let mut learned = Learned::default();
        for until in untils {
            learned.note(1, report(id(5), 20.0, until));
        }
        assert_eq!(learned.until(1), Some(LATER));
        learned.note_parent_books(&books(60.0, &[]), id(1), Time::from_secs(106));
        check(&learned, 40.0);
    }
    // It ends just when the parent says what lasts on.
    let mut learned = Learned::default();
    learned.note(1, report(id(5), 20.0, NOW));
    learned.note_parent_books(&books(60.0, &[]), id(1), NOW);
    check(&learned, 60.0);
    learned.note(2, report(id(5), 20.0, NOW));
    check(&learned, 60.0);
}

#[test]
fn the_part_of_a_report_that_is_not_believed_counts_no_more() {
    let there = |learned: &Learned| learned.reported()[0].capacity.get();
    let mut learned = Learned::default();
    learned.note_parent_books(&books(60.0, &[]), id(1), NOW);
    learned.note(1, report(id(5), 20.0, LATER));
    for (most, left) in [(50.0, 40.0), (5.0, 55.0), (6.0, 55.0)] {
        learned.lower(1, amount(most));
        check(&learned, left);
        assert_eq!(there(&learned), 60.0 - left);
    }
    learned.note_gone(1);
    learned.lower(1, amount(2.0));
    assert_eq!(there(&learned), 0.0);
    learned.lower(7, amount(2.0));
}

#[test]
fn the_least_counts_from_when_it_was_said_first() {
    let mut learned = Learned::default();
    learned.note_parent_books(&books(60.0, &[]), id(1), NOW);
    learned.note(1, report(id(5), 30.0, Time::from_secs(110)));
    learned.note_parent_books(&books(40.0, &[]), id(1), Time::from_secs(106));
    check(&learned, 10.0);
    learned.note_parent_books(&books(40.0, &[]), id(1), Time::from_secs(111));
    check(&learned, 10.0);
}

#[test]
fn leases_of_predecessors_stay_known_when_the_parent_begins_anew() {
    let silent = ParentTerms::default();
    for (what, first, second, expected) in [
        ("it says nothing", books(60.0, &[]), silent.clone(), 60.0),
        (
            "it has just begun",
            books(60.0, &[]),
            books(0.0, &[9]),
            60.0,
        ),
        (
            "both have just begun",
            books(30.0, &[5, 9]),
            books(0.0, &[9]),
            30.0,
        ),
        ("it knows all", books(30.0, &[5, 9]), books(70.0, &[]), 70.0),
        ("it runs down", books(60.0, &[]), books(40.0, &[]), 40.0),
    ] {
        let mut learned = Learned::default();
        learned.note_parent_books(&first, id(1), NOW);
        learned.note_parent_books(&second, id(2), NOW);
        assert!(learned.has_books());
        let left = learned.unreported().rounded_down();
        assert_eq!(left, expected, "{what}");
    }
    // The same mastership of the parent.
    for (what, first, second, expected) in [
        (
            "it says more",
            books(30.0, &[5, 9]),
            books(40.0, &[5, 9]),
            30.0,
        ),
        (
            "it knows of more",
            books(30.0, &[5]),
            books(40.0, &[5, 9]),
            40.0,
        ),
        ("it knew all", books(60.0, &[]), books(70.0, &[9]), 60.0),
    ] {
        let mut learned = Learned::default();
        learned.note_parent_books(&first, id(1), NOW);
        learned.note_parent_books(&second, id(1), NOW);
        check(&learned, expected);
        learned = Learned::default();
        assert!(!learned.has_books(), "{what}");
    }
    let mut learned = Learned::default();
    learned.note_parent_books(&silent, None, NOW);
    assert!(!learned.has_books());
    learned.note_parent_books(&books(30.0, &[5, 9]), id(1), NOW);
    learned.note_parent_books(&books(10.0, &[5, 9]), id(1), NOW);
    check(&learned, 10.0);
}

#[test]
fn only_reports_of_present_holders_go_up() {
    let mut learned = Learned::default();
    learned.note(1, report(id(5), 20.0, LATER));
    learned.note(2, report(None, 30.0, LATER));
    learned.note(3, report(id(5), 2.0, LATER));
    let reported = |learned: &Learned| {
        let part = |it: ReportedLeases| (it.granted_by, it.capacity.get());
        learned.reported().into_iter().map(part).collect::<Vec<_>>()
    };
    assert_eq!(reported(&learned), [(None, 30.0), (id(5), 22.0)]);
    learned.note_gone(2);
    learned.note_gone(3);
    assert_eq!(reported(&learned), [(None, 0.0), (id(5), 20.0)]);
}

#[test]
fn masterships_beyond_the_limit_count_as_unknown() {
    let mut learned = Learned::default();
    learned.note_parent_books(&books(200.0, &[1, 99]), id(1), NOW);
    for number in 1..100 {
        learned.note(number, report(id(number), 1.0, LATER));
    }
    assert!(learned.there.len() <= ORIGINS_MAX + 1);
    check(&learned, 199.0);
}

/// A report of a child server whose own lease is `has`. None: it has no lease.
fn of_child(has: Option<f64>, said: Time) -> ReportedLease {
    ReportedLease {
        said,
        lasts: has.map(|has| (amount(has), LATER)),
        ..report(id(5), 60.0, LATER)
    }
}

#[test]
fn only_the_own_lease_of_a_child_is_sure_to_last_on() {
    let later = Time::from_secs(110);
    for (what, child, expected) in [
        ("it has as much itself", of_child(Some(60.0), NOW), 10.0),
        ("a part may be over", of_child(Some(40.0), NOW), 30.0),
        ("it has none itself", of_child(None, NOW), 40.0),
        ("it has said so since", of_child(Some(40.0), later), 10.0),
        ("so has one that has none", of_child(None, later), 10.0),
    ] {
        let mut learned = Learned::default();
        learned.note(1, child);
        learned.note_parent_books(&books(100.0, &[]), id(1), NOW);
        learned.note_parent_books(&books(70.0, &[]), id(1), later);
        assert_eq!(learned.unreported().rounded_down(), expected, "{what}");
    }
}
