//! Names and streams that share a lease.

#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::records::tests;

#[test]
fn a_name_does_not_wait_by_a_level_that_has_grown() {
    let now = Time::ZERO + Duration::from_secs(60);
    let by = By {
        name: "web",
        weight: 1,
        is_safe: false,
        whole: None,
    };
    let mut sharing = Sharing::new(1, now);
    // From 2/s to another rate.
    let mut wait = |rate| {
        for rate in [2.0, rate] {
            sharing.name(&by, |_| true, now).0.asked(1_000.0, now);
            let allowance = Allowance::by_mode(Capacity::Limited(rate));
            sharing.divide(allowance, "x", (&Records::default(), ""), now);
            let (name, level) = sharing.name(&by, |_| true, now);
            if rate == 2.0 {
                name.paid_until = now;
                name.pass(20.0, level, now);
            }
        }
        let (name, level) = sharing.name(&by, |_| true, now);
        name.wait(level, now).unwrap_or_default()
    };
    assert_eq!(wait(20.0), Duration::from_millis(900));
    assert_eq!(wait(1.0), Duration::from_millis(19_900));
    assert_eq!(wait(0.0), RETRY_IN);
}

/// A sharing with one Envoy that wants 5, after the first division of a lease of 10 by these records.
fn divided(records: &Records, now: Time) -> (Sharing, Allowance) {
    let allowance = Allowance::by_mode(Capacity::Limited(10.0));
    let mut sharing = Sharing::new(1, now);
    let by = By {
        name: "envoy",
        weight: 1,
        is_safe: false,
        whole: None,
    };
    sharing.set_stream(1, &by, true, 5.0, &Arc::default());
    sharing.divide(allowance, "x", (records, "a"), now);
    (sharing, allowance)
}

#[test]
fn an_assignment_is_recorded_before_it_is_sent_and_a_smaller_one_after_its_way() {
    let dir = tempfile::tempdir().unwrap();
    let (records, now) = (tests::next(&dir, true).0, Time::from_secs(60));
    let (mut sharing, allowance) = divided(&records, now);
    assert_eq!(tests::first(&dir), Some(5.0));
    sharing.set_sent(1, 5.0, now + SPAN * 9, now);
    for (wants, after, expected) in [(2.0, 0, 5.0), (2.0, 99, 5.0), (2.0, 100, 2.0)] {
        if let Some(stream) = sharing.streams.get_mut(&1) {
            stream.wants = wants;
        }
        let at = now + Duration::from_millis(after);
        sharing.divide(allowance, "x", (&records, "a"), at);
        if after == 0 {
            sharing.set_sent(1, 2.0, now + SPAN * 9, now);
            sharing.divide(allowance, "x", (&records, "a"), at);
        }
        assert_eq!(tests::first(&dir), Some(expected), "after {after} ms");
        assert_eq!(sharing.held(at), expected);
    }
}

#[test]
fn no_assignment_grows_that_the_next_process_would_not_find() {
    let dir = tempfile::tempdir().unwrap();
    let (sharing, _) = divided(&tests::broken(&dir), Time::from_secs(60));
    assert_eq!(sharing.held(Time::from_secs(60)), 0.0);
}

/// Otherwise the same assignment would be sent again and again until the lease ends.
#[test]
fn an_assignment_is_due_anew_only_if_the_lease_lasts_longer() {
    let (now, second) = (Time::ZERO + Duration::from_secs(60), Duration::from_secs(1));
    let by = By {
        name: "envoy",
        weight: 1,
        is_safe: false,
        whole: None,
    };
    for (lease, is_due) in [(3, false), (8, false), (20, true)] {
        let allowance = Allowance {
            source: Source::Lease,
            until: Some(now + lease * second),
            ..Allowance::by_mode(Capacity::Limited(10.0))
        };
        let (changes, mut sharing) = (Arc::default(), Sharing::new(1, now));
        sharing.set_stream(1, &by, true, 5.0, &changes);
        sharing.divide(allowance, "x", (&Records::default(), ""), now);
        assert_eq!(changes.take().len(), 1, "the first assignment");
        sharing.set_sent(1, 5.0, now + (lease - 1).min(7) * second, now);
        sharing.divide(allowance, "x", (&Records::default(), ""), now);
        assert_eq!(!changes.take().is_empty(), is_due, "{lease} s are left");
    }
}
