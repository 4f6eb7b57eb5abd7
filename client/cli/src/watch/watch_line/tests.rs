//! Lines of `watch` with an answer and without one.

use super::*;

const LEASE: Holding = Holding {
    capacity: Capacity::Limited(20.0),
    source: Source::Lease,
    remaining: Some(Duration::from_secs(41)),
    changes_in: Some(Duration::from_secs(41)),
    then: Capacity::Limited(2.0),
    limited_by: None,
    learning_for: None,
};

const SINCE: Option<Duration> = Some(Duration::from_secs(1_800_000_000));

fn said(holding: &Holding, problem: Option<&str>) -> String {
    because(holding, problem, SINCE.filter(|_| problem.is_some()))
}

#[test]
fn a_lease_is_reported_with_its_end_and_why_it_is_no_larger() {
    assert_eq!(said(&LEASE, None), "lease, expires in 41s");
    let learning = Holding {
        limited_by: Some(LimitedBy::Learning),
        learning_for: Some(Duration::from_millis(40_500)),
        ..LEASE
    };
    assert_eq!(
        said(&learning, None),
        "lease, expires in 41s; learning mode, at most 41 s left"
    );
    let beside = Holding {
        capacity: Capacity::Limited(2.0),
        source: Source::Mode,
        ..learning
    };
    assert_eq!(
        said(&beside, None),
        "lease of 0, expires in 41s: 2 by the safe capacity; learning mode, at most 41 s left"
    );
}

#[test]
fn without_an_answer_it_is_reported_since_when_and_what_is_used_then() {
    for (then, expected) in [
        (2.0, "then 2 by the safe capacity"),
        (0.0, "then nothing, since no safe capacity is known"),
    ] {
        let holding = Holding {
            then: Capacity::Limited(then),
            ..LEASE
        };
        assert_eq!(
            said(&holding, Some("not connected: refused")),
            format!(
                "lease, expires in 41s, {expected}; since 2027-01-15T08:00:00Z: not connected: refused"
            )
        );
    }
    let over = Holding {
        capacity: Capacity::Limited(2.0),
        source: Source::Mode,
        remaining: None,
        changes_in: Some(Duration::from_secs(60)),
        then: Capacity::Limited(1.0),
        ..LEASE
    };
    assert_eq!(
        said(&over, Some("not connected: refused")),
        "no lease: 2 by the safe capacity, 1 in 1m; since 2027-01-15T08:00:00Z: not connected: refused"
    );
}
