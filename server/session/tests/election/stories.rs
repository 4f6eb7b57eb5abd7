//! What a candidate does that no table shows.

use std::time::Duration;

use doorward_session::candidate::report::{Loss, Report};
use doorward_session::candidate::standing::Standing;
use doorward_session::candidate::state::State;
use doorward_session::candidate::store::{
    Compare, Key, LeaseId, OpAnswer, OpId, Step, Term, Value,
};

use crate::played::{Played, TTL};

#[test]
fn an_answer_to_what_was_given_up_is_passed_over() {
    let mut played = Played::renewing();
    let given_up = played.asked.clone().unwrap();
    played.lose_key();
    let asked = played.asked.clone();
    played
        .candidate
        .handle_answer(given_up.id, OpAnswer::LeaseGone, 0.5, played.now);
    played
        .candidate
        .handle_answer(OpId(77), OpAnswer::LeaseGone, 0.5, played.now);
    played.drain();
    assert_eq!(played.state(), State::Watching);
    assert_eq!(played.asked, asked, "it waits for what it asked since");
}

#[test]
fn a_mastership_counts_from_when_its_renewal_was_sent() {
    let mut played = Played::renewing();
    let sent = played.now;
    played.now = played.now + Duration::from_secs(1);
    played.answer(OpAnswer::Renewed);
    played.now = played.now + Duration::from_secs(1);
    played.transacted(true);
    let Standing::Master(term) = played.candidate.standing(played.now) else {
        panic!("it is the master");
    };
    assert_eq!(term.valid_until, sent + Duration::from_secs(9));
}

/// etcd may have been restored from a backup: then its key is as it was, and so is its term, although another one
/// has decided in between.
#[test]
fn a_mastership_that_had_lapsed_is_vacant_until_it_is_confirmed() {
    for (what, late, is_vacant_until_then) in
        [("in time", 1, false), ("after it had lapsed", 60, true)]
    {
        let mut played = Played::renewing();
        let Standing::Master(before) = played.candidate.standing(played.now) else {
            panic!("it is the master");
        };
        played.now = played.now + Duration::from_secs(late);
        played.answer(OpAnswer::Failed);
        played.answer(OpAnswer::Heard);
        played.answer(OpAnswer::Renewed);
        played.transacted(true);
        let Standing::Master(term) = played.candidate.standing(played.now) else {
            panic!("{what}: it is the master again");
        };
        assert_eq!(term.epoch, before.epoch, "{what}");
        let vacant_since = match is_vacant_until_then {
            true => played.now,
            false => before.vacant_since,
        };
        assert_eq!(term.vacant_since, vacant_since, "{what}");
    }
}

/// Its term is gone, or another one tells of an epoch whose term is nowhere: etcd was wiped, and somebody may have
/// been elected before that of whom nothing is left.
#[test]
fn a_candidate_gives_time_to_a_master_that_it_never_saw() {
    let own = |played: &Played| Term {
        epoch: played.epoch(),
        address: "here:1".into(),
        server: "ours".into(),
        length: TTL,
        resigned: false,
        leases: None,
    };
    let is_wiped: fn(&mut Played, Term) = |played, _| played.see(None, None);
    let is_told: fn(&mut Played, Term) = |played, term| {
        played.other_saw = Some(term.epoch + 7);
        played.see(None, Some(term));
    };
    let lost_its_key: fn(&mut Played, Term) = |played, term| played.see(None, Some(term));
    for (what, happens, waits) in [
        ("etcd was wiped", is_wiped, TTL),
        ("another one tells of an epoch", is_told, TTL),
        ("it lost its key", lost_its_key, Duration::ZERO),
    ] {
        let mut played = Played::master();
        let term = own(&played);
        played.see(Some(("ours", term.epoch, 9)), Some(term.clone()));
        played.now = played.now + Duration::from_secs(1);
        played.asked = None;
        let heard = played.now;
        happens(&mut played, term);
        assert_eq!(played.state(), State::Standing, "{what}");
        played.transacted(true);
        played.transacted(true);
        assert_eq!(played.state() == State::Master, waits.is_zero(), "{what}");
        while played.now < heard + waits {
            let due = played.candidate.poll_timeout().unwrap();
            played.wait(due.since(played.now));
            if played.asks() == "renew" {
                played.answer(OpAnswer::Renewed);
                played.transacted(true);
            }
        }
        let Standing::Master(term) = played.candidate.standing(played.now) else {
            panic!("{what}: it is the master when that time is over");
        };
        if !waits.is_zero() {
            assert_eq!(term.vacant_since, heard + waits, "{what}");
        }
    }
}

#[test]
fn what_a_master_writes_is_bound_to_its_key() {
    let bound = |played: &Played, created: u64| {
        let compare = Compare::Created(Key::Master, created);
        assert!(played.txn().when.contains(&compare), "{:?}", played.txn());
    };
    let mut renewing = Played::renewing();
    let created = renewing.epoch();
    renewing.answer(OpAnswer::Renewed);
    bound(&renewing, created);
    let lease = Compare::Lease(Key::Master, Some(LeaseId(9)));
    assert!(renewing.txn().when.contains(&lease));
    let mut resigning = Played::master();
    let created = resigning.epoch();
    resigning.resign();
    bound(&resigning, created);
    assert!(resigning.txn().then.contains(&Step::Delete(Key::Master)));
}

/// What a term says that is to be written: whether it is resigned, and for how long it may be believed.
fn written(played: &Played) -> (bool, Duration) {
    let mut terms = played.txn().then.iter().filter_map(|step| match step {
        Step::Put {
            value: Value::Term(term),
            ..
        } => Some((term.resigned, term.length)),
        _ => None,
    });
    terms.next_back().expect("a term")
}

#[test]
fn who_resigns_before_it_has_begun_leaves_its_successor_the_wait() {
    let term = Term {
        epoch: 60,
        address: "there:1".into(),
        server: "theirs".into(),
        length: 3 * TTL,
        resigned: false,
        leases: None,
    };
    let mut played = Played::watching().that_stands(Some(term));
    played.transacted(true);
    assert_eq!(written(&played), (false, 3 * TTL));
    played.now = played.now + TTL;
    played.resign();
    assert_eq!(written(&played), (false, 2 * TTL));
    let mut master = Played::master();
    master.resign();
    assert_eq!(written(&master), (true, TTL));
}

#[test]
fn a_master_that_was_heard_of_too_long_ago_is_not_named() {
    let mut played = Played::watching();
    let heard_at = played.now;
    let names = |played: &Played, later: Duration| {
        let standing = played.candidate.standing(heard_at + later);
        matches!(standing, Standing::Elsewhere { .. })
    };
    assert!(names(&played, 2 * TTL), "as long as etcd can be followed");
    played.candidate.handle_contact(heard_at, true, played.now);
    let moment = Duration::from_nanos(1);
    assert!(names(&played, TTL - moment) && !names(&played, TTL));
    // It says when it stands otherwise, though it has nothing to do then.
    played.now = played.now + (TTL - moment);
    played.candidate.handle_timeout(played.now);
    let due = played.candidate.poll_timeout();
    assert_eq!(due, Some(heard_at + TTL));
}

#[test]
fn what_happened_is_told_once() {
    let mut played = Played::master();
    assert!(played.reports.contains(&Report::Answers));
    played.reports.clear();
    played.lose_key();
    let lost =
        |report: &&Report| matches!(report, Report::Lost { why, .. } if *why == Loss::KeyDeleted);
    assert_eq!(played.reports.iter().filter(lost).count(), 1);
    let answers = |report: &&Report| **report == Report::Answers;
    assert_eq!(played.reports.iter().filter(answers).count(), 0);
}
