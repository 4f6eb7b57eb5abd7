//! The marks of a root's resources in etcd: which ones a new master counts on, and the chain of writes.

use std::time::Duration;

use doorward_session::candidate::ActiveTemplates;
use doorward_session::candidate::report::{ElectionReport, LossReason};
use doorward_session::candidate::store::{
    Compare, EtcdEntry, EtcdKey, MarksHead, Op, OpAnswer, StoredMarks, TermRecord, Txn, TxnAnswer,
    TxnStep, Value,
};

use crate::driven_candidate::{DrivenCandidate, TTL};

const LEASES: Duration = Duration::from_secs(40);

/// Revision of the last master's head.
const FOUND_AT: u64 = 70;

/// Marks of a master with that epoch.
fn stored(epoch: u64) -> StoredMarks {
    let marks = [("a", 60.0), ("b", 5.0)];
    let head = MarksHead {
        epoch,
        write: 7,
        count: 2,
        unmarked: Duration::ZERO,
    };
    StoredMarks {
        head: Some(head),
        head_modified: FOUND_AT,
        marks: marks
            .map(|(id, amount)| (id, (Some(amount), LEASES)))
            .into_iter()
            .collect(),
        ..StoredMarks::default()
    }
}

/// A root's candidate that has won after a master of epoch 60.
fn elected(found: StoredMarks, other_saw: Option<u64>) -> DrivenCandidate {
    let templates = ActiveTemplates {
        digest: "d".into(),
        longest: LEASES,
        has_history: false,
    };
    let mut played = DrivenCandidate::begun(Some(templates)).that_watches();
    played.stored = found;
    played.other_saw = other_saw;
    let term = TermRecord {
        epoch: 60,
        address: "there:1".into(),
        server: "theirs".into(),
        length: TTL,
        resigned: true,
        ..TermRecord::default()
    };
    let mut played = played.that_stands(Some(term));
    played.transacted(true);
    played
}

fn master(found: StoredMarks) -> DrivenCandidate {
    elected(found, None).that_is_confirmed()
}

fn txn(played: &DrivenCandidate) -> &Txn {
    match played.writes.as_ref().map(|it| &it.op) {
        Some(Op::Transact(_, txn)) => txn,
        other => panic!("{other:?}"),
    }
}

/// Returns the head that it writes, and the revision of the one before.
fn head(played: &DrivenCandidate) -> (MarksHead, u64) {
    let txn = txn(played);
    let head = txn.then.iter().find_map(|step| match step {
        TxnStep::Put(EtcdKey::MarksHead, Value::MarksHead(head), None) => Some(*head),
        _ => None,
    });
    let before = txn.when.iter().find_map(|compare| match compare {
        Compare::Modified(EtcdKey::MarksHead, revision) => Some(*revision),
        _ => None,
    });
    (head.unwrap(), before.unwrap())
}

/// Writes marks, after which there are `count`.
fn write(played: &mut DrivenCandidate, changes: &[(&str, Option<f64>)], count: u64) {
    let now = played.now;
    let mark = |amount| (Some(amount), LEASES);
    let change = |(id, amount): &(&str, Option<f64>)| ((*id).into(), amount.map(mark));
    let changes = changes.iter().map(change).collect();
    played
        .candidate
        .write_marks(changes, count, Duration::ZERO, now);
    played.drain();
}

/// Answers the write. `found`: the head that it read instead, and its revision.
fn answer(played: &mut DrivenCandidate, found: Result<u64, Option<(MarksHead, u64)>>) {
    let id = played.writes.take().unwrap().id;
    let answer = match found {
        Ok(revision) => TxnAnswer {
            succeeded: true,
            revision,
            found: None,
        },
        Err(found) => TxnAnswer {
            succeeded: false,
            revision: 999,
            found: found.map(|(head, modified)| EtcdEntry {
                value: Value::MarksHead(head),
                created: 50,
                modified,
                lease: None,
                seen_at: played.now,
            }),
        },
    };
    let answer = OpAnswer::Transacted(answer);
    played.candidate.handle_answer(id, answer, 0.5, played.now);
    played.drain();
}

#[test]
fn only_whole_marks_of_the_last_master_count() {
    let unreadable = |mut stored: StoredMarks| {
        stored.has_unreadable = true;
        stored
    };
    let removed = |mut stored: StoredMarks| {
        stored.marks.remove("b");
        stored
    };
    let changed = |change: fn(&mut MarksHead)| {
        let mut stored = stored(60);
        stored.head.iter_mut().for_each(change);
        stored
    };
    let no_head = StoredMarks {
        head: None,
        ..stored(60)
    };
    let learned = changed(|head| head.unmarked = LEASES);
    let of_earlier = changed(|head| head.epoch = 59);
    for (what, found, other_saw, counts) in [
        ("of the last one", stored(60), None, true),
        ("of an earlier one", of_earlier, None, false),
        ("another was seen since", stored(60), Some(61), false),
        ("its master did not know all", learned, None, false),
        ("one is unreadable", unreadable(stored(60)), None, false),
        ("one was removed by hand", removed(stored(60)), None, false),
        ("the head was removed by hand", no_head, None, false),
        ("there are none", StoredMarks::default(), None, false),
    ] {
        let mut played = elected(found.clone(), other_saw);
        let taken = played.candidate.take_found_marks();
        assert_eq!(taken, counts.then_some(found.marks), "{what}");
        assert!(played.candidate.take_found_marks().is_none(), "{what}");
    }
}

#[test]
fn marks_of_an_etcd_that_went_back_do_not_count() {
    // Revisions by which etcd goes back before this server stands, and before it has won.
    for (before, meanwhile, counts) in [(0, 0, true), (20, 0, false), (0, 20, false)] {
        let mut played = DrivenCandidate::begun(Some(ActiveTemplates {
            digest: "d".into(),
            longest: LEASES,
            has_history: false,
        }))
        .that_watches();
        played.stored = stored(60);
        played.see(Some(("theirs", 60, 7)), None);
        // The same term is in an etcd of some time ago.
        played.revision -= before;
        let term = TermRecord {
            epoch: 60,
            resigned: true,
            ..TermRecord::default()
        };
        let mut played = played.that_stands(Some(term.clone()));
        played.revision -= meanwhile;
        let won = played.revision + 1;
        if counts {
            // A view of what came after that overtakes the answer.
            played.revision += 5;
            played.see(None, Some(term));
        }
        played.revision = won - 1;
        played.transacted(true);
        assert!(played.candidate.keeps_marks());
        let found = played.candidate.take_found_marks();
        assert_eq!(found.is_some(), counts, "{before} {meanwhile}");
    }
}

#[test]
fn a_server_that_wrote_more_marks_than_it_finds_does_not_count_on_them() {
    for (found, counts) in [(9, true), (8, false)] {
        let mut played = master(stored(60));
        let epoch = played.epoch();
        for revision in [200, 201] {
            write(&mut played, &[], 2);
            answer(&mut played, Ok(revision));
        }
        // Its key is deleted, and etcd may have been restored to a state since the last view of it.
        let mut head = stored(epoch);
        head.head.iter_mut().for_each(|head| head.write = found);
        played.stored = head;
        played.lose_key();
        let mut played = played.that_stands(Some(TermRecord {
            epoch,
            resigned: true,
            ..TermRecord::default()
        }));
        played.transacted(true);
        let taken = played.candidate.take_found_marks();
        assert_eq!(taken.is_some(), counts, "write {found}");
    }
}

#[test]
fn writes_form_a_chain() {
    let mut played = master(stored(60));
    let epoch = played.epoch();
    assert!(played.candidate.can_write_marks());
    write(&mut played, &[], 2);
    assert!(!played.candidate.can_write_marks(), "one at a time");
    let first = MarksHead {
        epoch,
        write: 8,
        count: 2,
        unmarked: Duration::ZERO,
    };
    assert_eq!(head(&played), (first, FOUND_AT));
    assert!(!txn(&played).then.contains(&TxnStep::DeleteMarks));
    answer(&mut played, Ok(200));
    assert_eq!(played.written, 1);
    let changes = [
        ("a", Some(70.0)),
        ("c", Some(1.0)),
        ("d", Some(1.0)),
        ("b", None),
    ];
    write(&mut played, &changes, 3);
    let (second, before) = head(&played);
    assert_eq!((second.write, second.count, before), (9, 3, 200));
    assert_eq!(txn(&played).then.len(), 5);
}

#[test]
fn marks_that_do_not_count_are_removed_first() {
    let mut played = master(stored(59));
    write(&mut played, &[], 0);
    assert_eq!(head(&played).0.count, 0);
    assert!(txn(&played).then.contains(&TxnStep::DeleteMarks));
    answer(&mut played, Ok(200));
    write(&mut played, &[("a", Some(1.0))], 1);
    assert_eq!(head(&played).0.count, 1);
    assert!(!txn(&played).then.contains(&TxnStep::DeleteMarks));
}

#[test]
fn a_write_whose_answer_is_lost_is_sent_again_and_counts_once() {
    for executed in [true, false] {
        let mut played = master(stored(60));
        write(&mut played, &[], 2);
        let (sent, id) = (head(&played), played.writes.take().unwrap().id);
        played
            .candidate
            .handle_answer(id, OpAnswer::Failed, 0.5, played.now);
        played.drain();
        assert!(played.writes.is_none(), "not at once");
        played.wait(Duration::from_millis(100));
        assert_eq!(head(&played), sent, "the same write");
        if executed {
            answer(&mut played, Err(Some((sent.0, 180))));
        } else {
            answer(&mut played, Ok(200));
        }
        assert_eq!(played.written, 1);
        write(&mut played, &[("c", Some(1.0))], 3);
        assert_eq!(head(&played).1, if executed { 180 } else { 200 });
    }
}

#[test]
fn a_master_whose_marks_another_program_changed_gives_its_mastership_back() {
    for found in [None, Some((stored(60).head.unwrap(), 300))] {
        let mut played = master(stored(60));
        write(&mut played, &[], 2);
        answer(&mut played, Err(found));
        assert_eq!(played.written, 0);
        let lost = played.reports.iter().any(|report| {
            matches!(report, ElectionReport::Lost { why, .. } if *why == LossReason::MarksChanged)
        });
        assert!(lost, "{:?}", played.reports);
        assert_eq!(played.asks(), "give a mastership back");
    }
}

#[test]
fn marks_that_the_node_forgot_are_removed_by_the_next_write() {
    let mut played = master(stored(60));
    write(&mut played, &[], 2);
    played.candidate.forget_marks();
    answer(&mut played, Ok(200));
    assert_eq!(played.written, 0, "the node knows nothing of that write");
    write(&mut played, &[], 0);
    assert!(txn(&played).then.contains(&TxnStep::DeleteMarks));
}

#[test]
fn a_mastership_that_is_over_writes_nothing() {
    let mut played = master(stored(60));
    played.resign();
    assert!(!played.candidate.can_write_marks());
    assert!(!elected(stored(60), None).candidate.can_write_marks());
}

#[test]
fn a_master_that_may_not_read_marks_keeps_none() {
    let refused = StoredMarks {
        is_refused: true,
        ..StoredMarks::default()
    };
    let played = master(refused);
    assert!(!played.candidate.keeps_marks() && !played.candidate.can_write_marks());
}

#[test]
fn a_master_that_may_not_write_marks_gives_its_mastership_back_and_then_keeps_none() {
    let mut played = master(stored(60));
    let epoch = played.epoch();
    write(&mut played, &[], 2);
    let id = played.writes.take().unwrap().id;
    let refused = OpAnswer::Refused;
    played.candidate.handle_answer(id, refused, 0.5, played.now);
    played.drain();
    let why = LossReason::MarksRefused;
    assert!(
        played
            .reports
            .contains(&ElectionReport::Lost { epoch, why })
    );
    assert_eq!(played.asks(), "give a mastership back");
    played.transacted(true);
    let mut played = played.that_stands(None);
    played.transacted(true);
    let played = played.that_is_confirmed();
    assert!(!played.candidate.keeps_marks());
}
