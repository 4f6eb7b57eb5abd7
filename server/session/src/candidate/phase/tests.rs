//! The time in which a mastership is in force, and the time since which a node is vacant.

use super::*;

fn at(seconds: u64) -> Time {
    Time::after_origin(Duration::from_secs(seconds))
}

/// A mastership that begins at 10 s.
fn held(valid_until: Option<u64>) -> HeldMastership {
    HeldMastership {
        created: CreatedKey {
            revision: 3,
            epoch_offset: 0,
        },
        begins: at(10),
        vacant_since: Some(at(10)),
        longer_leases: Duration::ZERO,
        valid_until: valid_until.map(at),
    }
}

#[test]
fn a_mastership_that_is_confirmed_too_late_is_vacant_until_then() {
    for (what, valid_until, begins, now, expected) in [
        ("for the first time", None, 10, 12, (10, 5)),
        ("in time", Some(15), 10, 14, (10, 5)),
        ("too late", Some(15), 10, 15, (15, 15)),
        ("long after", Some(15), 10, 90, (90, 90)),
        ("too late, before it begins", Some(15), 30, 20, (30, 20)),
    ] {
        let mut held = HeldMastership {
            begins: at(begins),
            vacant_since: Some(at(5)),
            ..held(valid_until)
        };
        held.note_confirmed(at(99), at(now));
        let (begins, vacant) = expected;
        let found = (held.begins, held.vacant_since);
        assert_eq!(found, (at(begins), Some(at(vacant))), "{what}");
        assert_eq!(held.valid_until, Some(at(99)), "{what}");
    }
}

#[test]
fn a_mastership_is_in_force_once_it_begins_and_while_it_is_confirmed() {
    for (what, valid_until, now, state) in [
        ("it was never confirmed", None, 11, CandidateState::Elected),
        (
            "its predecessor may be the master",
            Some(15),
            9,
            CandidateState::Elected,
        ),
        ("it begins", Some(15), 10, CandidateState::Master),
        ("it is confirmed", Some(15), 14, CandidateState::Master),
        ("it was confirmed", Some(15), 15, CandidateState::Lapsed),
    ] {
        let held = held(valid_until);
        let is_master = state == CandidateState::Master;
        assert_eq!(held.standing(at(now)).term().is_some(), is_master, "{what}");
        assert_eq!(held.state(at(now)), state, "{what}");
    }
}
