//! Templates that give shorter leases count when etcd knows what former ones leave behind; and who wins knows for
//! how long leases may be out.

use std::time::Duration;

use doorward_session::candidate::standing::Standing;
use doorward_session::candidate::state::State;
use doorward_session::candidate::store::{LeaseLengths, OpAnswer, Step, Term, Value};
use doorward_session::candidate::{InForce, NextTemplates};

use crate::played::{Played, TTL};

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Templates with leases of 40 s.
fn in_force(has_history: bool) -> InForce {
    InForce {
        digest: "long".into(),
        longest: secs(40),
        has_history,
    }
}

/// Templates with leases of 5 s, to come after them; of which operators want a master to learn for 20 s.
fn shorter() -> NextTemplates {
    NextTemplates {
        digest: "short".into(),
        longest: secs(5),
        outlasts: secs(40),
        learning_outlasts: secs(20),
    }
}

/// A term of somebody who has resigned, and what it said of leases.
fn resigned(leases: Option<LeaseLengths>) -> Term {
    Term {
        epoch: 60,
        address: "there:1".into(),
        server: "theirs".into(),
        length: TTL,
        resigned: true,
        leases,
    }
}

fn said(templates: &str, longest: u64, older: u64) -> LeaseLengths {
    LeaseLengths {
        templates: templates.into(),
        longest: secs(longest),
        older: secs(older),
    }
}

fn master() -> Played {
    let mut played = Played::begun(Some(in_force(false)))
        .that_watches()
        .that_stands(None);
    played.transacted(true);
    played.that_is_confirmed()
}

/// What the term says of leases that is to be written.
fn told(played: &Played) -> LeaseLengths {
    let mut terms = played.txn().then.iter().filter_map(|step| match step {
        Step::Put {
            value: Value::Term(term),
            ..
        } => term.leases.clone(),
        _ => None,
    });
    terms.next_back().expect("a term with lengths")
}

fn longer_leases(played: &Played) -> Duration {
    match played.candidate.standing(played.now) {
        Standing::Master(term) => term.longer_leases,
        other => panic!("{other:?}"),
    }
}

fn hand_in(played: &mut Played) {
    played.candidate.handle_templates(shorter(), played.now);
    played.drain();
}

#[test]
fn of_a_master_they_count_when_etcd_has_confirmed_what_they_leave_behind() {
    let mut played = master();
    hand_in(&mut played);
    assert_eq!(played.asks(), "confirm a mastership");
    assert_eq!(told(&played), said("short", 5, 40));
    assert_eq!(played.applied, 0, "etcd does not know of them yet");
    played.transacted(true);
    assert_eq!(played.applied, 1);
    assert_eq!(longer_leases(&played), secs(20), "as far as it is to learn");
}

#[test]
fn a_confirmation_that_was_asked_before_they_came_does_not_bring_them_into_force() {
    let mut played = master();
    // A renewal is due; after it the mastership is confirmed, by the templates that are in force.
    let next = played.candidate.poll_timeout().unwrap();
    played.wait(next.since(played.now));
    played.answer(OpAnswer::Renewed);
    assert_eq!(played.asks(), "confirm a mastership");
    assert_eq!(told(&played), said("long", 40, 0));
    hand_in(&mut played);
    played.transacted(true);
    assert_eq!(played.applied, 0, "etcd does not know of them yet");
    while played.asks() != "confirm a mastership" {
        played.transacted(true);
    }
    assert_eq!(told(&played), said("short", 5, 40));
    played.transacted(true);
    assert_eq!(played.applied, 1);
}

#[test]
fn if_etcd_cannot_be_told_they_count_when_the_mastership_is_over() {
    let mut played = master();
    hand_in(&mut played);
    while played.state() == State::Master {
        assert_eq!(played.applied, 0);
        if played.asked.is_some() {
            played.answer(OpAnswer::Failed);
        }
        let next = played.candidate.poll_timeout().unwrap();
        played.wait(next.since(played.now));
    }
    assert_eq!(played.state(), State::Lapsed);
    if played.applied == 0 {
        // Between two questions.
        played.answer(OpAnswer::Failed);
        let next = played.candidate.poll_timeout().unwrap();
        played.wait(next.since(played.now));
    }
    assert_eq!(played.applied, 1);
}

#[test]
fn of_everybody_else_they_count_at_once() {
    let mut played = Played::begun(Some(in_force(false))).that_watches();
    hand_in(&mut played);
    assert_eq!((played.applied, played.asks()), (1, ""));
}

#[test]
fn of_one_that_resigns_they_never_count() {
    let mut played = master();
    hand_in(&mut played);
    played.candidate.handle_resign(played.now);
    played.drain();
    assert_eq!(told(&played), said("long", 40, 0));
    played.transacted(true);
    assert_eq!(played.applied, 0);
}

#[test]
fn who_wins_learns_for_what_its_predecessor_said() {
    for (what, term, longer) in [
        ("there was nobody", None, 0),
        ("the same", Some(said("long", 40, 0)), 0),
        ("older ones", Some(said("long", 40, 70)), 70),
        ("other ones", Some(said("other", 50, 0)), 50),
    ] {
        let term = term.map(|leases| resigned(Some(leases)));
        let mut played = Played::begun(Some(in_force(true)))
            .that_watches()
            .that_stands(term);
        played.transacted(true);
        played.transacted(true);
        assert_eq!(longer_leases(&played), secs(longer), "{what}");
    }
}

#[test]
fn if_a_predecessor_said_nothing_all_templates_are_read_that_there_were() {
    let mut played = Played::begun(Some(in_force(true)))
        .that_watches()
        .that_stands(Some(resigned(None)));
    played.transacted(true);
    assert_eq!(
        (played.state(), played.asks()),
        (State::Standing, "history"),
        "it is not elected before it knows"
    );
    played.answer(OpAnswer::History(None));
    assert_eq!(played.state(), State::Watching, "it takes longer");
    played.see_own_key();
    assert_eq!(played.asks(), "history");
    played.answer(OpAnswer::History(Some(secs(60))));
    played.transacted(true);
    assert_eq!(longer_leases(&played), secs(60));
}

#[test]
fn if_nothing_is_known_of_former_templates_their_leases_count_for_as_long_as_ours() {
    let mut played = Played::begun(Some(in_force(false)))
        .that_watches()
        .that_stands(Some(resigned(None)));
    played.transacted(true);
    played.transacted(true);
    assert_eq!(longer_leases(&played), secs(40));
}
