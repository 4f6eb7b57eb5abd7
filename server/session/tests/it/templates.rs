//! Templates with shorter leases come into force once etcd has recorded how long former leases may last. The next
//! winner knows that time.

use std::time::Duration;

use doorward_session::candidate::standing::Standing;
use doorward_session::candidate::state::CandidateState;
use doorward_session::candidate::store::{LeaseLengths, OpAnswer, TermRecord, TxnStep, Value};
use doorward_session::candidate::{ActiveTemplates, NextTemplates};

use crate::driven_candidate::{DrivenCandidate, TTL};

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Templates with leases of 40 s.
fn in_force(has_history: bool) -> ActiveTemplates {
    ActiveTemplates {
        digest: "long".into(),
        longest: secs(40),
        has_history,
    }
}

/// New templates with leases of 5 s, and a learning mode of 20 s.
fn shorter() -> NextTemplates {
    NextTemplates {
        digest: "short".into(),
        longest: secs(5),
        outlasts: secs(40),
        learning_outlasts: secs(20),
    }
}

/// Returns the term of a master that has resigned, with the lease lengths in it.
fn resigned(leases: Option<LeaseLengths>) -> TermRecord {
    TermRecord {
        epoch: 60,
        address: "there:1".into(),
        server: "theirs".into(),
        length: TTL,
        resigned: true,
        leases,
        has_lease_span: false,
    }
}

fn lengths(templates: &str, longest: u64, older: u64) -> LeaseLengths {
    LeaseLengths {
        templates: templates.into(),
        longest: secs(longest),
        older: secs(older),
    }
}

fn master() -> DrivenCandidate {
    let mut played = DrivenCandidate::begun(Some(in_force(false)))
        .that_watches()
        .that_stands(None);
    played.transacted(true);
    played.that_is_confirmed()
}

/// Returns the lease lengths in the term that is to be written.
fn written(played: &DrivenCandidate) -> LeaseLengths {
    let mut terms = played.txn().then.iter().filter_map(|step| match step {
        TxnStep::Put(_, Value::Term(term), _) => term.leases.clone(),
        _ => None,
    });
    terms.next_back().expect("a term with lengths")
}

fn longer_leases(played: &DrivenCandidate) -> Duration {
    match played.candidate.standing(played.now) {
        Standing::Master(term) => term.longer_leases,
        other => panic!("{other:?}"),
    }
}

fn hand_in(played: &mut DrivenCandidate) {
    played.candidate.handle_templates(shorter(), played.now);
    played.drain();
}

#[test]
fn a_masters_new_templates_come_into_force_when_etcd_has_confirmed_their_term() {
    let mut played = master();
    hand_in(&mut played);
    assert_eq!(played.asks(), "confirm a mastership");
    assert_eq!(written(&played), lengths("short", 5, 40));
    assert_eq!(played.applied, 0, "etcd does not know of them yet");
    played.transacted(true);
    assert_eq!(played.applied, 1);
    assert_eq!(longer_leases(&played), secs(20), "as far as it is to learn");
}

#[test]
fn a_confirmation_requested_before_them_does_not_bring_them_into_force() {
    let mut played = master();
    // A renewal is due. With it the mastership is confirmed, by the templates in force.
    let next = played.candidate.poll_timeout().unwrap();
    played.wait(next.since(played.now));
    assert_eq!(played.asks(), "confirm a mastership");
    assert_eq!(written(&played), lengths("long", 40, 0));
    hand_in(&mut played);
    played.transacted(true);
    assert_eq!(played.applied, 0, "etcd does not know of them yet");
    while played.asks() != "confirm a mastership" {
        played.transacted(true);
    }
    assert_eq!(written(&played), lengths("short", 5, 40));
    played.transacted(true);
    assert_eq!(played.applied, 1);
}

#[test]
fn without_etcd_they_come_into_force_when_the_mastership_is_over() {
    let mut played = master();
    hand_in(&mut played);
    while played.state() == CandidateState::Master {
        assert_eq!(played.applied, 0);
        if played.asked.is_some() {
            played.answer(OpAnswer::Failed);
        }
        let next = played.candidate.poll_timeout().unwrap();
        played.wait(next.since(played.now));
    }
    assert_eq!(played.state(), CandidateState::Lapsed);
    if played.applied == 0 {
        // This is between two requests.
        played.answer(OpAnswer::Failed);
        let next = played.candidate.poll_timeout().unwrap();
        played.wait(next.since(played.now));
    }
    assert_eq!(played.applied, 1);
}

#[test]
fn they_come_into_force_at_once_where_there_is_no_mastership() {
    let mut played = DrivenCandidate::begun(Some(in_force(false))).that_watches();
    hand_in(&mut played);
    assert_eq!((played.applied, played.asks()), (1, ""));
}

#[test]
fn a_candidate_that_resigns_never_brings_them_into_force() {
    let mut played = master();
    hand_in(&mut played);
    played.candidate.handle_resign(played.now);
    played.drain();
    assert_eq!(written(&played), lengths("long", 40, 0));
    played.transacted(true);
    assert_eq!(played.applied, 0);
}

#[test]
fn a_winner_learns_for_as_long_as_its_predecessors_term_states() {
    for (what, term, longer) in [
        ("there was no master", None, 0),
        ("the same", Some(lengths("long", 40, 0)), 0),
        ("older ones", Some(lengths("long", 40, 70)), 70),
        ("other ones", Some(lengths("other", 50, 0)), 50),
    ] {
        let term = term.map(|leases| resigned(Some(leases)));
        let mut played = DrivenCandidate::begun(Some(in_force(true)))
            .that_watches()
            .that_stands(term);
        played.transacted(true);
        played.transacted(true);
        assert_eq!(longer_leases(&played), secs(longer), "{what}");
    }
}

#[test]
fn if_the_term_states_nothing_all_former_templates_are_read() {
    let mut played = DrivenCandidate::begun(Some(in_force(true)))
        .that_watches()
        .that_stands(Some(resigned(None)));
    played.transacted(true);
    assert_eq!(
        (played.state(), played.asks()),
        (CandidateState::Standing, "history"),
        "it is not elected before it knows"
    );
    played.answer(OpAnswer::History(None));
    assert_eq!(played.state(), CandidateState::Watching, "it takes longer");
    played.see_own_key();
    assert_eq!(played.asks(), "history");
    played.answer(OpAnswer::History(Some(secs(60))));
    played.transacted(true);
    assert_eq!(longer_leases(&played), secs(60));
}

#[test]
fn if_former_templates_are_unknown_their_leases_count_as_long_as_present_ones() {
    let mut played = DrivenCandidate::begun(Some(in_force(false)))
        .that_watches()
        .that_stands(Some(resigned(None)));
    played.transacted(true);
    played.transacted(true);
    assert_eq!(longer_leases(&played), secs(40));
}
