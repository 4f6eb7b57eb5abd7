//! The lease span in etcd: its length, and the effect when it is gone.

use std::time::Duration;

use doorward_session::candidate::standing::Standing;
use doorward_session::candidate::state::CandidateState;
use doorward_session::candidate::store::{
    EtcdKey, LeaseId, LeaseLengths, Op, OpAnswer, TermRecord, TxnStep, Value,
};
use doorward_session::candidate::{ActiveTemplates, NextTemplates};

use crate::driven_candidate::{DrivenCandidate, SPAN, TTL};

const LEASES: Duration = Duration::from_secs(40);

fn in_force() -> ActiveTemplates {
    ActiveTemplates {
        digest: "d".into(),
        longest: LEASES,
        has_history: false,
    }
}

/// A candidate that has won. The test answers its requests for a lease span.
fn elected() -> DrivenCandidate {
    let mut played = DrivenCandidate::begun(Some(in_force()))
        .that_watches()
        .that_stands(None);
    played.grants_spans = false;
    played.transacted(true);
    played
}

/// Grants the lease that the candidate asks for, and returns the length.
#[track_caller]
fn grant(played: &mut DrivenCandidate, lease: LeaseId) -> Duration {
    let Some(Op::Grant(ttl)) = played.asked.as_ref().map(|asked| asked.op.clone()) else {
        panic!("it asks for {:?}", played.asks());
    };
    played.answer(OpAnswer::Granted(lease, ttl));
    ttl
}

/// Lets it renew its own lease when that is due.
#[track_caller]
fn renew(played: &mut DrivenCandidate) {
    let due = played.candidate.poll_timeout().unwrap();
    played.wait(due.since(played.now));
    assert_eq!(played.asks(), "confirm a mastership");
}

/// Returns the leases that are renewed.
#[track_caller]
fn renewed(played: &DrivenCandidate) -> (LeaseId, Option<LeaseId>) {
    match played.asked.as_ref().map(|asked| &asked.op) {
        Some(Op::Confirm { lease, span, .. }) => (*lease, *span),
        other => panic!("it asks for {other:?}"),
    }
}

/// Returns the lease of the span that is to be written with the term.
#[track_caller]
fn written(played: &DrivenCandidate) -> Option<LeaseId> {
    let steps = &played.txn().then;
    let span = steps.iter().find_map(|step| match step {
        TxnStep::Put(EtcdKey::LeaseSpan, _, lease) => *lease,
        _ => None,
    });
    let has_lease_span = steps.iter().any(|step| match step {
        TxnStep::Put(_, value, _) => matches!(value, Value::Term(term) if term.has_lease_span),
        _ => false,
    });
    assert_eq!(span.is_some(), has_lease_span, "the term has the span");
    span
}

#[test]
fn each_confirmation_writes_a_span_that_outlasts_all_leases() {
    let mut played = elected();
    let lasts = grant(&mut played, SPAN);
    assert!(lasts > TTL + LEASES, "{lasts:?}");
    assert_eq!(written(&played), Some(SPAN));
    played.see_own_key();
    played.transacted(true);
    assert_eq!(played.state(), CandidateState::Master);

    renew(&mut played);
    assert_eq!(written(&played), Some(SPAN));
    assert_eq!(renewed(&played), (LeaseId(9), Some(SPAN)));
    // An operator revoked it.
    played.answer(OpAnswer::LeaseGone);
    played.answer(OpAnswer::Renewed);
    assert_eq!(written(&played), None, "at once, without another request");
    played.transacted(true);
    let due = played.candidate.poll_timeout().unwrap();
    played.wait(due.since(played.now));
    grant(&mut played, LeaseId(100));
    assert_eq!(written(&played), Some(LeaseId(100)));
    assert_eq!(renewed(&played), (LeaseId(9), Some(LeaseId(100))));
    played.transacted(true);
    assert_eq!(played.state(), CandidateState::Master);
}

#[test]
fn longer_leases_need_a_longer_span_before_they_come_into_force() {
    let mut played = elected();
    let before = grant(&mut played, SPAN);
    played.see_own_key();
    played.transacted(true);
    let next = NextTemplates {
        digest: "longer".into(),
        longest: 2 * LEASES,
        outlasts: Duration::ZERO,
        learning_outlasts: Duration::ZERO,
    };
    played.candidate.handle_templates(next, played.now);
    played.drain();
    let after = grant(&mut played, LeaseId(100));
    assert!(after > before + LEASES, "{before:?}, {after:?}");
    assert_eq!((written(&played), played.applied), (Some(LeaseId(100)), 0));
    played.transacted(true);
    assert_eq!(played.applied, 1);
}

#[test]
fn a_lease_of_many_years_has_no_span() {
    let years = Duration::from_secs(5 * 365 * 24 * 3600);
    let templates = ActiveTemplates {
        longest: years,
        ..in_force()
    };
    let mut played = DrivenCandidate::begun(Some(templates))
        .that_watches()
        .that_stands(None);
    played.transacted(true);
    assert_eq!(written(&played), None);
}

#[test]
fn a_resignation_keeps_the_written_span() {
    let mut played = DrivenCandidate::begun(Some(in_force()))
        .that_watches()
        .that_stands(None);
    played.transacted(true);
    let mut played = played.that_is_confirmed();
    played.resign();
    let has_span = |step: &TxnStep| match step {
        TxnStep::Put(_, value, _) => matches!(value, Value::Term(term) if term.has_lease_span),
        _ => false,
    };
    assert!(played.txn().then.iter().any(has_span));
}

/// Returns a term that was not resigned.
fn last_term(has_lease_span: bool) -> TermRecord {
    TermRecord {
        epoch: 60,
        address: "there:1".into(),
        server: "theirs".into(),
        length: TTL,
        resigned: false,
        leases: Some(LeaseLengths {
            templates: "d".into(),
            longest: LEASES,
            older: Duration::ZERO,
        }),
        has_lease_span,
    }
}

/// Checks a server that has just started, with these keys in etcd.
#[track_caller]
fn check(what: &str, has_lease_span: bool, shows_span: bool, is_settled: bool) {
    let mut played = DrivenCandidate::begun(Some(in_force()));
    played.shows_span = shows_span;
    played.see(None, Some(last_term(has_lease_span)));
    played.answer(OpAnswer::Granted(LeaseId(9), TTL));
    played.transacted(true);
    played.transacted(true);
    let expected = match is_settled {
        true => CandidateState::Master,
        false => CandidateState::Elected,
    };
    assert_eq!(played.state(), expected, "{what}");
    if let Standing::Master(term) = played.candidate.standing(played.now) {
        assert_eq!(term.vacant_since, None, "{what}");
    }
}

#[test]
fn a_server_that_starts_neither_waits_nor_learns_if_the_span_is_gone() {
    check("all leases are over", true, false, true);
    check("leases may be out", true, true, false);
    check("of the previous release", false, false, false);
    check(
        "of the previous release, after this one",
        false,
        true,
        false,
    );
}

#[test]
fn a_server_that_saw_the_span_before_goes_by_its_own_view() {
    let mut played = DrivenCandidate::begun(Some(in_force()));
    played.see(None, Some(last_term(true)));
    // An operator deletes the key.
    played.shows_span = false;
    played.see(None, Some(last_term(true)));
    played.answer(OpAnswer::Granted(LeaseId(9), TTL));
    played.transacted(true);
    played.transacted(true);
    assert_eq!(played.state(), CandidateState::Elected);
}
