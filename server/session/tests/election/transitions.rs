//! What a candidate does in each state, whatever happens in it: a table.

use std::time::Duration;

use doorward_session::candidate::report::{Loss, Report};
use doorward_session::candidate::standing::Standing;
use doorward_session::candidate::state::State;
use doorward_session::candidate::store::{
    Compare, Key, LeaseId, OpAnswer, OpId, Step, Term, Value,
};

use crate::played::{Played, TTL};

type Event = fn(&mut Played);

/// After what happens in a state: the state, and what is asked.
#[track_caller]
fn check(from: fn() -> Played, cases: &[(&str, Event, State, &str)]) {
    for (what, event, state, asks) in cases {
        let mut played = from();
        event(&mut played);
        assert_eq!((played.state(), played.asks()), (*state, *asks), "{what}");
    }
}

const FAILED: Event = |played| played.answer(OpAnswer::Failed);
const LEASE_GONE: Event = |played| played.answer(OpAnswer::LeaseGone);
const YES: Event = |played| played.transacted(true);
const NO: Event = |played| played.transacted(false);
const RESIGN: Event = |played| {
    played.asked = None;
    played.candidate.handle_resign(played.now);
    played.drain();
};
const KEY_GONE: Event = |played| {
    played.asked = None;
    played.see(None, None);
};

#[test]
fn outside() {
    check(
        Played::outside,
        &[
            ("nothing", |_| {}, State::Outside, "grant"),
            (
                "it has a lease",
                |played| {
                    played.is_registered = false;
                    played.answer(OpAnswer::Granted(LeaseId(9), TTL));
                },
                State::Watching,
                "register",
            ),
            ("the other endpoint at once", FAILED, State::Outside, "hear"),
            (
                "none of both, it waits",
                |played| {
                    FAILED(played);
                    FAILED(played);
                },
                State::Outside,
                "",
            ),
            (
                "and then tries again",
                |played| {
                    FAILED(played);
                    FAILED(played);
                    played.wait(Duration::from_secs(1));
                    played.answer(OpAnswer::Heard);
                },
                State::Outside,
                "grant",
            ),
            ("it resigns", RESIGN, State::Over, ""),
        ],
    );
}

#[test]
fn watching() {
    check(
        Played::watching,
        &[
            ("nothing", |_| {}, State::Watching, ""),
            (
                "there is no master",
                KEY_GONE,
                State::Standing,
                "stand for election",
            ),
            (
                "there is none, and it is not able",
                |played| {
                    played.candidate.handle_able(false, played.now);
                    KEY_GONE(played);
                },
                State::Watching,
                "",
            ),
            (
                "the lease is due",
                |played| played.wait(TTL / 3),
                State::Watching,
                "renew",
            ),
            (
                "what failed is forgotten when all is answered",
                |played| {
                    played.wait(TTL / 3);
                    FAILED(played);
                    FAILED(played);
                    assert_eq!(played.asks(), "", "it waits");
                    played.wait(Duration::from_secs(1));
                    played.answer(OpAnswer::Heard);
                    played.answer(OpAnswer::Renewed);
                    played.wait(TTL / 3);
                    assert_eq!(played.asks(), "renew");
                    FAILED(played);
                },
                State::Watching,
                "hear",
            ),
            (
                "its key under its lease: it was not told that it won",
                |played| played.see(Some(("ours", 120, 9)), None),
                State::Elected,
                "confirm a mastership",
            ),
            (
                "the key is nobody's, but not for long",
                |played| played.see(Some(("hand", 120, 0)), None),
                State::Watching,
                "",
            ),
            (
                "the key is nobody's for a TTL",
                |played| {
                    played.see(Some(("hand", 120, 0)), None);
                    played.wait(TTL + Duration::from_secs(1));
                    played.answer(OpAnswer::Renewed);
                },
                State::Watching,
                "delete a key of nobody",
            ),
            (
                "its place is another one",
                |played| played.candidate.handle_place("leaf".into(), played.now),
                State::Watching,
                "",
            ),
            ("it resigns", RESIGN, State::Resigning, "revoke"),
        ],
    );
}

#[test]
fn standing() {
    check(
        Played::standing,
        &[
            ("it won", YES, State::Elected, "confirm a mastership"),
            ("another was faster", NO, State::Watching, ""),
            (
                "no answer: it asks again, elsewhere",
                FAILED,
                State::Standing,
                "stand for election",
            ),
            ("its lease is gone", LEASE_GONE, State::Outside, ""),
            (
                "a master came meanwhile",
                |played| {
                    played.see(Some(("theirs", 120, 7)), None);
                    NO(played);
                },
                State::Watching,
                "",
            ),
            (
                "an epoch came meanwhile that is higher",
                |played| {
                    played.see(Some(("theirs", 500, 7)), None);
                    YES(played);
                },
                State::Watching,
                "give a mastership back",
            ),
            ("it resigns", RESIGN, State::Resigning, "revoke"),
        ],
    );
}

#[test]
fn elected() {
    check(
        Played::elected,
        &[
            ("it is confirmed", YES, State::Master, ""),
            ("it is not", NO, State::Watching, ""),
            (
                "no answer: it asks again, elsewhere",
                FAILED,
                State::Elected,
                "confirm a mastership",
            ),
            ("its lease is gone", LEASE_GONE, State::Outside, ""),
            (
                "its key is gone",
                KEY_GONE,
                State::Standing,
                "stand for election",
            ),
            ("it resigns", RESIGN, State::Resigning, "resign"),
        ],
    );
}

#[test]
fn master() {
    check(
        Played::master,
        &[
            ("nothing", |_| {}, State::Master, ""),
            (
                "its key is gone",
                KEY_GONE,
                State::Standing,
                "stand for election",
            ),
            (
                "another has its key",
                |played| played.see(Some(("theirs", 300, 7)), None),
                State::Watching,
                "",
            ),
            (
                "etcd was restored, and another has a key of that revision",
                |played| {
                    let created = played.revision - 1;
                    played.see(Some(("theirs", created - 1, 7)), None);
                },
                State::Watching,
                "",
            ),
            (
                "somebody has seen a higher epoch: etcd went back",
                |played| {
                    let created = own_revision(played);
                    played.other_saw = Some(5_000);
                    played.see(Some(("ours", created, 9)), None);
                },
                State::Watching,
                "give a mastership back",
            ),
            (
                "somebody wrote over its key by hand",
                |played| {
                    let created = own_revision(played);
                    played.see(Some(("hand", created, 0)), None);
                },
                State::Master,
                "confirm a mastership",
            ),
            (
                "time passes without a word",
                |played| played.wait(TTL),
                State::Lapsed,
                "renew",
            ),
            ("it resigns", RESIGN, State::Resigning, "resign"),
        ],
    );
}

/// Of the key in the view that it saw last.
fn own_revision(played: &Played) -> u64 {
    match played.candidate.standing(played.now) {
        Standing::Master(term) => term.epoch,
        other => panic!("{other:?}"),
    }
}

#[test]
fn renewing() {
    check(
        Played::renewing,
        &[
            (
                "renewed, and not confirmed yet",
                |played| played.answer(OpAnswer::Renewed),
                State::Master,
                "confirm a mastership",
            ),
            (
                "renewed and confirmed",
                |played| {
                    played.answer(OpAnswer::Renewed);
                    YES(played);
                },
                State::Master,
                "",
            ),
            (
                "renewed, and confirmed no more",
                |played| {
                    played.answer(OpAnswer::Renewed);
                    NO(played);
                },
                // It still sees its key, and makes sure that it is gone.
                State::Watching,
                "give a mastership back",
            ),
            (
                "renewed, and not confirmed: both again",
                |played| {
                    played.answer(OpAnswer::Renewed);
                    FAILED(played);
                },
                State::Master,
                "hear",
            ),
            ("no answer", FAILED, State::Master, "hear"),
            ("its lease is gone", LEASE_GONE, State::Outside, ""),
            (
                "its key is gone: the renewal is given up",
                KEY_GONE,
                State::Watching,
                "renew",
            ),
        ],
    );
}

#[test]
fn lapsed() {
    check(
        Played::lapsed,
        &[
            ("nothing", |_| {}, State::Lapsed, "renew"),
            (
                "renewed and confirmed, by the time of the renewal",
                |played| {
                    played.answer(OpAnswer::Renewed);
                    YES(played);
                    played.wait(Duration::ZERO);
                },
                State::Lapsed,
                "renew",
            ),
            ("its lease is gone", LEASE_GONE, State::Outside, ""),
        ],
    );
}

#[test]
fn resigning() {
    check(
        Played::resigning,
        &[
            ("nothing", |_| {}, State::Resigning, "resign"),
            ("it has resigned", YES, State::Resigning, "revoke"),
            ("the key was not its own", NO, State::Resigning, "revoke"),
            ("no answer", FAILED, State::Resigning, "resign"),
            (
                "no answer from any, thrice",
                |played| {
                    for _ in 0..3 {
                        FAILED(played);
                    }
                },
                State::Resigning,
                "revoke",
            ),
            (
                "all is given back",
                |played| {
                    YES(played);
                    played.answer(OpAnswer::Revoked);
                },
                State::Over,
                "",
            ),
            (
                "the time is over",
                |played| {
                    played.asked = None;
                    played.wait(Duration::from_secs(1));
                },
                State::Over,
                "",
            ),
        ],
    );
}

#[test]
fn an_answer_to_what_was_given_up_is_passed_over() {
    let mut played = Played::renewing();
    let given_up = played.asked.clone().unwrap();
    KEY_GONE(&mut played);
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

#[test]
fn what_a_master_writes_is_bound_to_its_key() {
    let bound = |played: &Played, created: u64| {
        let compare = Compare::Created(Key::Master, created);
        assert!(played.txn().when.contains(&compare), "{:?}", played.txn());
    };
    let mut renewing = Played::renewing();
    let created = own_revision(&renewing);
    renewing.answer(OpAnswer::Renewed);
    bound(&renewing, created);
    let lease = Compare::Lease(Key::Master, Some(LeaseId(9)));
    assert!(renewing.txn().when.contains(&lease));
    let mut resigning = Played::master();
    let created = own_revision(&resigning);
    RESIGN(&mut resigning);
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
    RESIGN(&mut played);
    assert_eq!(written(&played), (false, 2 * TTL));
    let mut master = Played::master();
    RESIGN(&mut master);
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
    KEY_GONE(&mut played);
    let lost =
        |report: &&Report| matches!(report, Report::Lost { why, .. } if *why == Loss::KeyDeleted);
    assert_eq!(played.reports.iter().filter(lost).count(), 1);
    let answers = |report: &&Report| **report == Report::Answers;
    assert_eq!(played.reports.iter().filter(answers).count(), 0);
}
