//! Tests with limiters that admit too much.

use std::time::Duration;

use super::*;
use doorward::capacity::{Capacity, Source};

fn at(seconds: f64) -> Time {
    Time::after_origin(Duration::from_secs_f64(seconds))
}

fn rate(rate: f64) -> Allowance {
    Allowance {
        capacity: Capacity::Limited(rate),
        source: Source::Lease,
        until: Some(at(10.0)),
        then: Capacity::NONE,
        safe: None,
    }
}

#[test]
fn admissions_beyond_the_rate_and_a_burst_are_found() {
    let mut admission = AdmissionCheck::new(at(0.0));
    admission.handle_allowance(rate(2.0), at(0.0));
    for request in 0..10 {
        admission.note_admitted(1.0, at(f64::from(request) * 0.5));
    }
    assert_eq!(admission.worst, 0.0);
    // One request too many at once.
    admission.note_admitted(1.0, at(4.6));
    assert!(admission.worst > 0.5, "{}", admission.worst);
}

#[test]
fn permits_beyond_the_limit_are_found() {
    let mut admission = AdmissionCheck::new(at(0.0));
    admission.handle_allowance(rate(4.0), at(0.0));
    admission.note_taken(4.0, at(1.0));
    assert_eq!(admission.worst, 0.0);
    admission.note_taken(5.0, at(1.0));
    assert_eq!(admission.worst, 0.25);
    // The lease has ended.
    admission.note_taken(1.0, at(10.0));
    assert_eq!(admission.worst, 1.0);
}

#[test]
fn admissions_after_the_end_of_a_lease_are_found() {
    let mut admission = AdmissionCheck::new(at(0.0));
    admission.handle_allowance(rate(2.0), at(0.0));
    admission.note_admitted(1.0, at(9.9));
    assert_eq!(admission.worst, 0.0);
    admission.note_admitted(0.1, at(10.0));
    assert_eq!(admission.worst, 1.0);
}
