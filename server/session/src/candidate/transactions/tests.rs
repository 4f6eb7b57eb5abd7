//! Keys that a candidate takes up, and keys of other servers.

use super::super::store::{Role, TreePlace};
use super::*;
use crate::time::tolerance::Tolerance;

const TTL: Duration = Duration::from_secs(10);
const OURS: LeaseId = LeaseId(9);

fn transactions(server: &str) -> CandidateConfig {
    CandidateConfig {
        address: "here:1".into(),
        server: server.into(),
        pages: None,
        node: "n".into(),
        version: "1".into(),
        ttl: TTL,
        clock_tolerance: Tolerance::LEAST,
        endpoints: 1,
        templates: None,
    }
}

fn entry(value: Value, lease: Option<LeaseId>) -> EtcdEntry {
    EtcdEntry {
        value,
        created: 5,
        modified: 5,
        lease,
        seen_at: Time::after_origin(TTL),
    }
}

fn place(role: Role) -> TreePlace {
    TreePlace { role, level: None }
}

fn registered(server: &str, highest_epoch: Option<u64>) -> Registration {
    Registration {
        node: "n".into(),
        address: server.into(),
        pages: None,
        server: server.into(),
        place: place(Role::Root),
        highest_epoch,
        version: "1".into(),
    }
}

#[test]
fn a_key_is_taken_up_by_the_candidate_that_created_it() {
    let (transactions, other) = (transactions("ours"), transactions("theirs"));
    let created = CreatedKey {
        revision: 5,
        epoch_offset: 2,
    };
    assert_eq!(created.epoch(), 7);
    let ours = entry(transactions.master(2), Some(OURS));
    assert_eq!(transactions.created_by_us(&ours), Some(created));
    assert!(transactions.is_intact(&ours, created, OURS));
    let without_lease = EtcdEntry {
        lease: None,
        ..ours
    };
    assert!(!transactions.is_intact(&without_lease, created, OURS));
    for (value, lease, is_of_another) in [
        (other.master(2), Some(LeaseId(8)), true),
        (other.master(2), None, false),
        (transactions.master(2), Some(OURS), false),
        (Value::Unreadable, Some(OURS), false),
    ] {
        let found = transactions.is_of_another(&entry(value, lease));
        assert_eq!(found, is_of_another);
    }
    for value in [other.master(2), Value::Unreadable] {
        let found = entry(value, Some(OURS));
        assert_eq!(transactions.created_by_us(&found), None);
        assert!(!transactions.is_intact(&found, created, OURS));
    }
}

#[test]
fn an_unreadable_term_is_not_over() {
    let mut view = View::default();
    assert_eq!(term_in_view(&view, TTL), None);
    let nonsense = entry(Value::Unreadable, None);
    let seen_at = nonsense.seen_at;
    view.entries.insert(EtcdKey::Term, nonsense);
    let (term, seen) = term_in_view(&view, TTL).unwrap();
    assert_eq!((term.resigned, term.length, seen), (false, TTL, seen_at));
}

#[test]
fn other_servers_report_epochs_that_they_have_seen() {
    let (transactions, other) = (transactions("ours"), transactions("theirs"));
    let mut view = View::default();
    let register = |view: &mut View, server: &str, epoch| {
        let value = Value::Server(registered(server, epoch));
        let entry = entry(value, Some(OURS));
        view.entries.insert(EtcdKey::Server(server.into()), entry);
    };
    for (server, epoch) in [("ours", Some(90)), ("theirs", Some(46)), ("old", None)] {
        register(&mut view, server, epoch);
    }
    let found = |view: &View| {
        (
            transactions.epoch_of_another(view),
            transactions.reported_epochs(view),
        )
    };
    assert_eq!(found(&view), (None, vec![46]));
    let key = entry(other.master(3), Some(OURS));
    view.entries.insert(EtcdKey::Master, key);
    assert_eq!(found(&view), (Some(8), vec![46]));
    let own = entry(transactions.master(3), Some(OURS));
    view.entries.insert(EtcdKey::Master, own);
    assert_eq!(found(&view), (None, vec![46]));
    register(&mut view, "theirs", Some(8));
    let reported = transactions.reported_epochs(&view);
    assert!(reported.is_empty(), "it has seen our own: {reported:?}");
}

#[test]
fn a_registration_is_mended_but_not_taken_from_another_process() {
    let transactions = transactions("ours");
    let ours = registered("ours", None);
    let theirs = Registration {
        server: "theirs".into(),
        ..ours.clone()
    };
    let old = Registration {
        place: place(Role::Leaf),
        ..ours.clone()
    };
    for (value, lease, stands) in [
        (Value::Server(ours.clone()), Some(OURS), true),
        (Value::Server(ours.clone()), None, false),
        (Value::Server(old), Some(OURS), false),
        (Value::Server(theirs), Some(LeaseId(4)), true),
        (Value::Unreadable, Some(OURS), false),
    ] {
        let found = entry(value, lease);
        let found_to_stand = transactions.is_registered(&found, &ours, OURS);
        assert_eq!(found_to_stand, stands, "{found:?}");
    }
}
