//! Requests, and the answers that complete them.

use std::time::Duration;

use super::*;

const A: u64 = 1;
const B: u64 = 2;
const C: u64 = 3;

fn at(seconds: u64) -> Time {
    Time::after_origin(Duration::from_secs(seconds))
}

fn to(resource: u64, to: Option<u64>) -> AnsweredResource {
    AnsweredResource { resource, to }
}

#[test]
fn a_request_is_answered_once_all_of_its_resources_are() {
    let mut in_flight = InFlight::default();
    in_flight.note_sent(5, [A, B, C], at(0));
    in_flight.note_answer(&[to(A, Some(5))], at(0));
    in_flight.note_answer(&[to(B, None)], at(0));
    assert_eq!(in_flight.since(), Some(at(0)));
    in_flight.note_answer(&[to(C, None)], at(0));
    assert_eq!((in_flight.since(), in_flight.len()), (None, 0));
}

#[test]
fn a_pushed_change_answers_no_request() {
    let mut in_flight = InFlight::default();
    in_flight.note_sent(5, [A], at(0));
    for pushed in [to(A, Some(4)), to(B, None), to(B, Some(5))] {
        in_flight.note_answer(&[pushed], at(0));
    }
    assert_eq!(in_flight.len(), 1);
}

#[test]
fn any_answer_completes_a_request_for_no_resource() {
    let mut in_flight = InFlight::default();
    in_flight.note_sent(5, [], at(0));
    assert_eq!(in_flight.since(), Some(at(0)));
    in_flight.note_answer(&[], at(0));
    assert_eq!(in_flight.since(), None);
}

#[test]
fn each_request_has_the_full_timeout() {
    let mut in_flight = InFlight::default();
    in_flight.note_sent(5, [A], at(0));
    in_flight.note_sent(6, [B], at(0));
    in_flight.note_answer(&[to(A, Some(5))], at(1));
    assert_eq!(in_flight.since(), Some(at(1)));
    // Answers to other requests do not extend its time.
    in_flight.note_sent(7, [A], at(1));
    in_flight.note_answer(&[to(A, Some(7))], at(2));
    assert_eq!(in_flight.since(), Some(at(1)));
}
