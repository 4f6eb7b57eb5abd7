//! A master that resigns hands over what its leases may have in use, and the next master takes that.

use std::sync::Arc;
use std::time::Duration;

use doorward_session::candidate::ActiveTemplates;
use doorward_session::candidate::store::{
    EtcdKey, Handover, LeaseId, Mark, TermRecord, TxnStep, Value,
};

use crate::driven_candidate::{DrivenCandidate, MARK, TTL};

fn handover(epoch: u64) -> Handover {
    let mark = Mark {
        amount: 60.0,
        lasts: Duration::from_secs(40),
    };
    Handover {
        epoch,
        marks: [("r".into(), mark)].into(),
        others_last: Duration::ZERO,
    }
}

fn at_root() -> DrivenCandidate {
    let templates = ActiveTemplates {
        digest: "d".into(),
        longest: Duration::from_secs(40),
        has_history: false,
    };
    DrivenCandidate::begun(Some(templates)).that_watches()
}

/// Returns what is written into the mark, with its lease.
fn written(played: &DrivenCandidate) -> Option<(Handover, LeaseId)> {
    let steps = &played.txn().then;
    steps.iter().find_map(|step| match step {
        TxnStep::Put {
            key: EtcdKey::Outstanding,
            value: Value::Outstanding(Some(handover)),
            lease: Some(lease),
        } => Some((Handover::clone(handover), *lease)),
        _ => None,
    })
}

#[test]
fn a_master_hands_over_with_its_resignation_and_a_server_that_has_not_begun_does_not() {
    let mut played = at_root().that_stands(None);
    played.transacted(true);
    let mut master = played.that_is_confirmed();
    let epoch = master.epoch();
    master.resign_with(Some(handover(0)));
    assert_eq!(written(&master), Some((handover(epoch), MARK)));

    let waits = TermRecord {
        epoch: 60,
        address: "there:1".into(),
        server: "theirs".into(),
        length: 3 * TTL,
        ..TermRecord::default()
    };
    let mut elected = at_root().that_stands(Some(waits));
    elected.transacted(true);
    elected.resign_with(Some(handover(0)));
    assert_eq!(written(&elected), None);
}

#[test]
fn only_the_handover_of_the_last_master_is_taken() {
    let resigned = |resigned| TermRecord {
        epoch: 60,
        address: "there:1".into(),
        server: "theirs".into(),
        length: TTL,
        resigned,
        ..TermRecord::default()
    };
    for (what, term, epoch, other_saw, expected) in [
        ("the last one", Some(resigned(true)), 60, None, true),
        ("an earlier one", Some(resigned(true)), 59, None, false),
        (
            "it has not resigned",
            Some(resigned(false)),
            60,
            None,
            false,
        ),
        ("there is no term", None, 60, None, false),
        (
            "another was seen since",
            Some(resigned(true)),
            60,
            Some(61),
            false,
        ),
    ] {
        let mut played = at_root();
        played.handover = Some(Arc::new(handover(epoch)));
        played.other_saw = other_saw;
        let mut played = played.that_stands(term);
        played.transacted(true);
        let taken = played.candidate.handover().map(|it| Handover::clone(it));
        assert_eq!(taken, expected.then(|| handover(60)), "{what}");
    }
}

#[test]
fn a_handover_counts_no_more_once_its_mastership_has_lapsed() {
    let term = TermRecord {
        epoch: 60,
        resigned: true,
        ..TermRecord::default()
    };
    let mut played = at_root();
    played.handover = Some(Arc::new(handover(60)));
    let mut played = played.that_stands(Some(term));
    played.transacted(true);
    let mut master = played.that_is_confirmed();
    assert!(master.candidate.handover().is_some());
    master.wait(2 * TTL);
    master.transacted(true);
    assert!(master.candidate.handover().is_none());
}
