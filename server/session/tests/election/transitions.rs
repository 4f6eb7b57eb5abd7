//! What a candidate does in each state, whatever happens in it: a table.

use std::time::Duration;

use doorward_session::candidate::state::State;
use doorward_session::candidate::store::{LeaseId, OpAnswer};

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
const RESIGN: Event = Played::resign;
const KEY_GONE: Event = Played::lose_key;

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
                    let created = played.epoch();
                    played.other_saw = Some(5_000);
                    played.see(Some(("ours", created, 9)), None);
                },
                State::Watching,
                "give a mastership back",
            ),
            (
                "somebody wrote over its key by hand",
                |played| {
                    let created = played.epoch();
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
