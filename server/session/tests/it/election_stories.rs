//! Behaviour of a candidate that no table shows.

use std::sync::Arc;
use std::time::Duration;

use doorward_session::candidate::report::{ElectionReport, LossReason};
use doorward_session::candidate::standing::Standing;
use doorward_session::candidate::state::CandidateState;
use doorward_session::candidate::store::{
    Compare, EtcdKey, LeaseId, Op, OpAnswer, OpId, Role, TermRecord, TreePlace, TxnStep, Value,
};
use doorward_session::candidate::{ActiveTemplates, NextTemplates};
use doorward_session::time::Time;

use crate::driven_candidate::{DrivenCandidate, SPAN, TTL};

#[test]
fn an_answer_to_an_abandoned_request_is_ignored() {
    let mut played = DrivenCandidate::renewing();
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
    assert_eq!(played.state(), CandidateState::Watching);
    assert_eq!(played.asked, asked, "it waits for its last request");
}

#[test]
fn a_mastership_counts_from_when_its_renewal_was_sent() {
    let mut played = DrivenCandidate::renewing();
    let sent = played.now;
    played.now = played.now + Duration::from_secs(2);
    played.transacted(true);
    let Standing::Master(term) = played.candidate.standing(played.now) else {
        panic!("it is the master");
    };
    assert_eq!(term.valid_until, sent + Duration::from_secs(9));
}

/// etcd may have been restored from a backup. Then its key and term are unchanged, although another master has decided
/// in between.
#[test]
fn a_mastership_that_had_lapsed_is_vacant_until_it_is_confirmed() {
    for (what, late, is_vacant_until_then) in
        [("in time", 1, false), ("after it had lapsed", 60, true)]
    {
        let mut played = DrivenCandidate::renewing();
        let Standing::Master(before) = played.candidate.standing(played.now) else {
            panic!("it is the master");
        };
        played.now = played.now + Duration::from_secs(late);
        played.answer(OpAnswer::Failed);
        played.answer(OpAnswer::Probed);
        played.transacted(true);
        let Standing::Master(term) = played.candidate.standing(played.now) else {
            panic!("{what}: it is the master again");
        };
        assert_eq!(term.epoch, before.epoch, "{what}");
        let vacant_since = match is_vacant_until_then {
            true => Some(played.now),
            false => before.vacant_since,
        };
        assert_eq!(term.vacant_since, vacant_since, "{what}");
    }
}

/// The last term is gone, or another server has seen an epoch without a term: etcd was wiped, and an unknown master may
/// have been elected before that.
#[test]
fn a_candidate_gives_time_to_a_master_that_it_never_saw() {
    let resigned = TermRecord {
        epoch: 50,
        address: "there:1".into(),
        server: "theirs".into(),
        length: TTL,
        resigned: true,
        leases: None,
        has_lease_span: false,
    };
    for (what, term, told, waits) in [
        ("etcd was wiped", None, None, TTL),
        ("it is told of another", Some(&resigned), Some(57), TTL),
        ("nothing is missing", Some(&resigned), None, Duration::ZERO),
    ] {
        let mut played = DrivenCandidate::watching();
        played.see(Some(("theirs", 50, 7)), Some(resigned.clone()));
        played.now = played.now + Duration::from_secs(1);
        let heard = played.now;
        played.other_saw = told;
        played.asked = None;
        played.see(None, term.cloned());
        assert_eq!(played.state(), CandidateState::Standing, "{what}");
        played.transacted(true);
        played.transacted(true);
        let is_master = played.state() == CandidateState::Master;
        assert_eq!(is_master, waits.is_zero(), "{what}");
        while played.now < heard + waits {
            let due = played.candidate.poll_timeout().unwrap();
            played.wait(due.since(played.now));
            if played.asks() == "confirm a mastership" {
                played.transacted(true);
            }
        }
        let Standing::Master(won) = played.candidate.standing(played.now) else {
            panic!("{what}: it is the master when that time is over");
        };
        assert_eq!(won.vacant_since, Some(heard + waits), "{what}");
    }
}

#[test]
fn every_transaction_of_a_master_is_bound_to_its_key() {
    let bound = |played: &DrivenCandidate, created: u64| {
        let compare = Compare::Created(EtcdKey::Master, created);
        assert!(played.txn().when.contains(&compare), "{:?}", played.txn());
    };
    let renewing = DrivenCandidate::renewing();
    let created = renewing.epoch();
    bound(&renewing, created);
    let lease = Compare::Lease(EtcdKey::Master, Some(LeaseId(9)));
    assert!(renewing.txn().when.contains(&lease));
    let mut resigning = DrivenCandidate::master();
    let created = resigning.epoch();
    resigning.resign();
    bound(&resigning, created);
    assert!(
        resigning
            .txn()
            .then
            .contains(&TxnStep::Delete(EtcdKey::Master))
    );
}

/// Returns the term that is to be written: whether it is resigned, and its length.
fn written(played: &DrivenCandidate) -> (bool, Duration) {
    let mut terms = played.txn().then.iter().filter_map(|step| match step {
        TxnStep::Put(_, Value::Term(term), _) => Some((term.resigned, term.length)),
        _ => None,
    });
    terms.next_back().expect("a term")
}

#[test]
fn a_resignation_before_the_beginning_leaves_the_wait_to_the_successor() {
    let term = TermRecord {
        epoch: 60,
        address: "there:1".into(),
        server: "theirs".into(),
        length: 3 * TTL,
        resigned: false,
        leases: None,
        has_lease_span: false,
    };
    let mut played = DrivenCandidate::watching().that_stands(Some(term));
    played.transacted(true);
    assert_eq!(written(&played), (false, 3 * TTL));
    played.now = played.now + TTL;
    played.resign();
    assert_eq!(written(&played), (false, 2 * TTL));
    let mut master = DrivenCandidate::master();
    master.resign();
    assert_eq!(written(&master), (true, TTL));
}

#[test]
fn a_master_in_an_outdated_view_is_not_named() {
    let mut played = DrivenCandidate::watching();
    let seen_at = played.now;
    let names = |played: &DrivenCandidate, later: Duration| {
        let standing = played.candidate.standing(seen_at + later);
        matches!(standing, Standing::Elsewhere { .. })
    };
    assert!(names(&played, 2 * TTL), "as long as etcd can be followed");
    played.candidate.handle_contact(seen_at, true, played.now);
    let moment = Duration::from_nanos(1);
    assert!(names(&played, TTL - moment) && !names(&played, TTL));
    // Its timeout is at the change of its standing, though no action follows.
    played.now = played.now + (TTL - moment);
    played.candidate.handle_timeout(played.now);
    let due = played.candidate.poll_timeout();
    assert_eq!(due, Some(seen_at + TTL));
}

#[test]
fn each_change_is_reported_once() {
    let mut played = DrivenCandidate::master();
    assert!(played.reports.contains(&ElectionReport::Answers));
    played.reports.clear();
    played.lose_key();
    let lost = |report: &&ElectionReport| matches!(report, ElectionReport::Lost { why, .. } if *why == LossReason::KeyDeleted);
    assert_eq!(played.reports.iter().filter(lost).count(), 1);
    let answers = |report: &&ElectionReport| **report == ElectionReport::Answers;
    assert_eq!(played.reports.iter().filter(answers).count(), 0);
}

/// While etcd takes two fifths of the TTL for each answer, a request beside the confirmations would cost the mastership.
#[test]
fn a_slow_etcd_costs_no_mastership() {
    let slow = TTL * 2 / 5;
    let mut played = DrivenCandidate::begun(Some(ActiveTemplates {
        digest: "d".into(),
        longest: TTL,
        has_history: false,
    }))
    .that_watches()
    .that_stands(None);
    played.transacted(true);
    let mut played = played.that_is_confirmed();
    (played.is_registered, played.grants_spans) = (false, false);
    let (mut registrations, mut asked_at) = (0, None);
    while played.now < Time::ZERO + 100 * TTL {
        let Some(sent) = asked_at.take() else {
            let due = played.candidate.poll_timeout().unwrap();
            played.wait(due.since(played.now));
            asked_at = played.asked.is_some().then_some(played.now);
            continue;
        };
        let asked = played.asked.clone().unwrap();
        assert!(asked.within > slow, "{:?}", asked.within);
        played.now = sent + slow;
        assert_eq!(played.state(), CandidateState::Master, "at {sent:?}");
        let is_put = |step: &TxnStep| matches!(step, TxnStep::Put(EtcdKey::Server(_), ..));
        match &asked.op {
            Op::Confirm { txn, .. } => {
                registrations += u32::from(txn.then.iter().any(is_put));
                played.transacted(true);
            }
            Op::Grant(ttl) => played.answer(OpAnswer::Granted(SPAN, *ttl)),
            other => panic!("{other:?}"),
        }
        // Its place changes, and its leases become longer.
        let (role, level) = (Role::Root, Some(played.applied));
        played
            .candidate
            .handle_place(TreePlace { role, level }, played.now);
        if !played.candidate.has_templates_waiting() {
            let next = NextTemplates {
                digest: format!("{}", played.applied).into(),
                longest: TTL * (played.applied + 2),
                outlasts: Duration::ZERO,
                learning_outlasts: Duration::ZERO,
            };
            played.candidate.handle_templates(next, played.now);
        }
        played.drain();
        asked_at = played.asked.is_some().then_some(played.now);
    }
    assert!(registrations > 100, "{registrations}");
    assert!(played.applied > 100, "{}", played.applied);
}

/// Also the first confirmation counts only while the lease lasts, which was renewed some requests before.
#[test]
fn a_candidate_becomes_the_master_although_etcd_is_slow() {
    let slow = TTL * 2 / 5;
    let templates = ActiveTemplates {
        digest: "d".into(),
        longest: TTL,
        has_history: false,
    };
    let mut played = DrivenCandidate::begun(Some(templates));
    (played.is_registered, played.grants_spans, played.is_read) = (false, false, false);
    played.see(None, None);
    // Earliest end of its lease in etcd.
    let mut ends = Time::ZERO;
    while played.state() != CandidateState::Master {
        assert!(played.now < Time::ZERO + 10 * TTL, "{:?}", played.state());
        let Some(asked) = played.asked.clone() else {
            let due = played.candidate.poll_timeout().unwrap();
            played.wait(due.since(played.now));
            continue;
        };
        let arrives = played.now + slow / 2;
        let lasts = match &asked.op {
            Op::Grant(ttl) if *ttl == TTL => true,
            _ => arrives < ends,
        };
        let renews = match asked.op {
            Op::Grant(ttl) => ttl == TTL,
            Op::Renew(_) | Op::Confirm { .. } | Op::ReadMarks { .. } => true,
            _ => false,
        };
        if lasts && renews {
            ends = arrives + TTL;
        }
        played.now = arrives + slow / 2;
        match &asked.op {
            _ if !lasts => played.answer(OpAnswer::LeaseGone),
            Op::Grant(ttl) => played.answer(OpAnswer::Granted(LeaseId(9), *ttl)),
            Op::ReadMarks { .. } => played.answer(OpAnswer::Marks(Some(Arc::default()))),
            Op::Renew(_) => played.answer(OpAnswer::Renewed),
            _ => played.transacted(true),
        }
    }
}

/// Returns the term that is written when the key is deleted.
fn handed_over(played: &DrivenCandidate) -> Option<TermRecord> {
    let then = &played.txn().then;
    let written = then.iter().find_map(|step| match step {
        TxnStep::Put(_, Value::Term(term), _) => Some(term.clone()),
        _ => None,
    });
    written.filter(|_| then.contains(&TxnStep::Delete(EtcdKey::Master)))
}

#[test]
fn a_master_that_an_operator_asks_to_step_down_leaves_the_mastership_to_another_one() {
    for is_alone in [false, true] {
        let mut played = DrivenCandidate::master();
        let epoch = played.epoch();
        let key = Some(("ours", epoch, 9));
        // A request to an earlier master.
        played.steps_down = Some(epoch - 1);
        played.see(key, None);
        assert_eq!(played.state(), CandidateState::Master);

        played.steps_down = Some(epoch);
        played.is_alone = is_alone;
        played.see(key, None);
        assert_eq!(played.state(), CandidateState::Watching, "at once");
        let why = LossReason::SteppedDown;
        assert!(
            played
                .reports
                .contains(&ElectionReport::Lost { epoch, why })
        );
        let term = handed_over(&played).unwrap();
        assert!(term.resigned && term.epoch == epoch, "{term:?}");
        played.transacted(true);
        played.see(None, Some(term.clone()));
        let waits = if is_alone {
            CandidateState::Standing
        } else {
            CandidateState::Watching
        };
        assert_eq!(played.state(), waits, "alone: {is_alone}");

        // The other one has not become the master meanwhile.
        played.steps_down = None;
        played.see(None, Some(term));
        assert_eq!(played.state(), CandidateState::Standing);
    }
}
