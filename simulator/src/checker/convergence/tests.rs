//! Tests of shifts and of the time until clients settle after them.

use super::*;

fn new(settled_after: Time) -> Convergence {
    crate::checker::with(|it: &mut Convergence| it.settled_after = settled_after)
}

fn at(tenths: u64) -> Time {
    Time::ZERO + Duration::from_millis(100 * tenths)
}

fn spans(tenths: [u64; 2]) -> (Duration, Duration) {
    let [total, longest] = tenths.map(|tenths| Duration::from_millis(100 * tenths));
    (total, longest)
}

#[test]
fn shifts_that_overlap_are_one_that_began_with_the_first() {
    let mut convergence = new(Time::ZERO);
    // A shift every two seconds, and no rest in between.
    for shift in 1..=10 {
        convergence.note_change(60.0, 100.0, at(20 * shift));
        convergence.settle(17.0, 100.0, at(20 * shift + 10));
    }
    convergence.settle(1.0, 100.0, at(230));
    let found = (convergence.total, convergence.longest.value);
    assert_eq!((convergence.shifts, found), (1, spans([210, 210])));
    assert_eq!(convergence.longest.at, at(20));
    // A later shift counts alone.
    convergence.note_change(60.0, 100.0, at(300));
    convergence.settle(0.0, 100.0, at(305));
    let found = (convergence.total, convergence.longest.value);
    assert_eq!((convergence.shifts, found), (2, spans([215, 210])));
}

#[test]
fn a_lasting_distance_from_the_ideal_counts_in_full() {
    let mut convergence = new(Time::ZERO);
    convergence.note_change(6.0, 100.0, at(10));
    for tenth in 11..600 {
        convergence.settle(1.5, 100.0, at(tenth));
    }
    assert!(convergence.pending.is_some());
    convergence.finish(at(600));
    let (total, longest) = spans([590, 590]);
    assert_eq!(
        (convergence.total, convergence.longest.value),
        (total, longest)
    );
    assert_eq!(convergence.unfinished, longest);
}

#[test]
fn a_shift_before_the_run_has_settled_does_not_count() {
    let mut convergence = new(at(100));
    convergence.note_change(60.0, 100.0, at(0));
    convergence.settle(0.0, 100.0, at(90));
    assert_eq!((convergence.shifts, convergence.total), (0, Duration::ZERO));
    convergence.note_change(60.0, 100.0, at(95));
    convergence.settle(0.0, 100.0, at(105));
    let found = (convergence.total, convergence.longest.value);
    assert_eq!((convergence.shifts, found), (1, spans([5, 5])));
}

#[test]
fn a_twentieth_of_the_capacity_at_one_instant_is_a_shift() {
    let mut convergence = new(Time::ZERO);
    convergence.note_change(3.0, 100.0, at(1));
    convergence.note_change(3.0, 100.0, at(2));
    assert!(convergence.pending.is_none());
    convergence.note_change(3.0, 100.0, at(2));
    assert!(convergence.pending.is_some());
    // A shift at the very end had no time to settle and counts for nothing.
    convergence.finish(at(2));
    assert_eq!(
        (convergence.shifts, convergence.unfinished),
        (0, Duration::ZERO)
    );
}
