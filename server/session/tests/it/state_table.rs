//! A table: what a candidate does in each state on each event.

use std::time::Duration;

use doorward_session::candidate::state::CandidateState;
use doorward_session::candidate::store::{LeaseId, OpAnswer};

use crate::driven_candidate::{DrivenCandidate, TTL};

type Input = fn(&mut DrivenCandidate);

/// For each event in a state: the next state, and the request.
#[track_caller]
fn check(from: fn() -> DrivenCandidate, cases: &[(&str, Input, CandidateState, &str)]) {
    for (what, event, state, asks) in cases {
        let mut played = from();
        event(&mut played);
        assert_eq!((played.state(), played.asks()), (*state, *asks), "{what}");
    }
}

const FAILED: Input = |played| played.answer(OpAnswer::Failed);
const LEASE_GONE: Input = |played| played.answer(OpAnswer::LeaseGone);
const YES: Input = |played| played.transacted(true);
const NO: Input = |played| played.transacted(false);
const RESIGN: Input = DrivenCandidate::resign;
const KEY_GONE: Input = DrivenCandidate::lose_key;

#[test]
fn outside() {
    check(
        DrivenCandidate::outside,
        &[
            ("nothing", |_| {}, CandidateState::Outside, "grant"),
            (
                "it has a lease",
                |played| {
                    played.is_registered = false;
                    played.answer(OpAnswer::Granted(LeaseId(9), TTL));
                },
                CandidateState::Watching,
                "register",
            ),
            (
                "the other endpoint at once",
                FAILED,
                CandidateState::Outside,
                "probe",
            ),
            (
                "none of both, it waits",
                |played| {
                    FAILED(played);
                    FAILED(played);
                },
                CandidateState::Outside,
                "",
            ),
            (
                "and then tries again",
                |played| {
                    FAILED(played);
                    FAILED(played);
                    played.wait(Duration::from_secs(1));
                    played.answer(OpAnswer::Probed);
                },
                CandidateState::Outside,
                "grant",
            ),
            ("it resigns", RESIGN, CandidateState::Over, ""),
        ],
    );
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn watching() {
    check(
        DrivenCandidate::watching,
        &[
            ("nothing", |_| {}, CandidateState::Watching, ""),
            (
                "there is no master",
                KEY_GONE,
                CandidateState::Standing,
                "stand for election",
            ),
            (
                "there is none, and it is not able",
                |played| {
                    played.candidate.handle_able(false, played.now);
                    KEY_GONE(played);
                },
                CandidateState::Watching,
                "",
            ),
            (
                "the lease is due",
                |played| played.wait(TTL / 3),
                CandidateState::Watching,
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
                    played.answer(OpAnswer::Probed);
                    played.answer(OpAnswer::Renewed);
                    played.wait(TTL / 3);
                    assert_eq!(played.asks(), "renew");
                    FAILED(played);
                },
                CandidateState::Watching,
                "probe",
            ),
            (
                "its key under its lease: the answer that it won was lost",
                |played| played.see(Some(("ours", 120, 9)), None),
                CandidateState::Elected,
                "confirm a mastership",
            ),
            (
                "the key has no lease, but not for long",
                |played| played.see(Some(("hand", 120, 0)), None),
                CandidateState::Watching,
                "",
            ),
            (
                "the key has no lease for a TTL",
                |played| {
                    played.see(Some(("hand", 120, 0)), None);
                    played.wait(TTL + Duration::from_secs(1));
                    played.answer(OpAnswer::Renewed);
                },
                CandidateState::Watching,
                "delete a key without a lease",
            ),
            (
                "its place is another one",
                |played| played.candidate.handle_place("leaf".into(), played.now),
                CandidateState::Watching,
                "",
            ),
            ("it resigns", RESIGN, CandidateState::Resigning, "revoke"),
        ],
    );
}

#[test]
fn standing() {
    check(
        DrivenCandidate::standing,
        &[
            (
                "it won",
                YES,
                CandidateState::Elected,
                "confirm a mastership",
            ),
            ("another was faster", NO, CandidateState::Watching, ""),
            (
                "no answer: it asks again, elsewhere",
                FAILED,
                CandidateState::Standing,
                "stand for election",
            ),
            ("its lease is gone", LEASE_GONE, CandidateState::Outside, ""),
            (
                "a master came meanwhile",
                |played| {
                    played.see(Some(("theirs", 120, 7)), None);
                    NO(played);
                },
                CandidateState::Watching,
                "",
            ),
            (
                "an epoch came meanwhile that is higher",
                |played| {
                    played.see(Some(("theirs", 500, 7)), None);
                    YES(played);
                },
                CandidateState::Watching,
                "give a mastership back",
            ),
            ("it resigns", RESIGN, CandidateState::Resigning, "revoke"),
        ],
    );
}

#[test]
fn elected() {
    check(
        DrivenCandidate::elected,
        &[
            ("it is confirmed", YES, CandidateState::Master, ""),
            ("it is not", NO, CandidateState::Watching, ""),
            (
                "no answer: it asks again, elsewhere",
                FAILED,
                CandidateState::Elected,
                "confirm a mastership",
            ),
            ("its lease is gone", LEASE_GONE, CandidateState::Outside, ""),
            (
                "its key is gone",
                KEY_GONE,
                CandidateState::Standing,
                "stand for election",
            ),
            ("it resigns", RESIGN, CandidateState::Resigning, "resign"),
        ],
    );
}

#[test]
fn master() {
    check(
        DrivenCandidate::master,
        &[
            ("nothing", |_| {}, CandidateState::Master, ""),
            (
                "its key is gone",
                KEY_GONE,
                CandidateState::Standing,
                "stand for election",
            ),
            (
                "another has its key",
                |played| played.see(Some(("theirs", 300, 7)), None),
                CandidateState::Watching,
                "",
            ),
            (
                "etcd was restored, and another has a key of that revision",
                |played| {
                    let created = played.revision - 1;
                    played.see(Some(("theirs", created - 1, 7)), None);
                },
                CandidateState::Watching,
                "",
            ),
            (
                "another server has seen a higher epoch: etcd went back",
                |played| {
                    let created = played.epoch();
                    played.other_saw = Some(5_000);
                    played.see(Some(("ours", created, 9)), None);
                },
                CandidateState::Watching,
                "give a mastership back",
            ),
            (
                "its key was overwritten by hand",
                |played| {
                    let created = played.epoch();
                    played.see(Some(("hand", created, 0)), None);
                },
                CandidateState::Master,
                "confirm a mastership",
            ),
            (
                "time passes without an answer",
                |played| played.wait(TTL),
                CandidateState::Lapsed,
                "renew",
            ),
            ("it resigns", RESIGN, CandidateState::Resigning, "resign"),
        ],
    );
}

#[test]
fn renewing() {
    check(
        DrivenCandidate::renewing,
        &[
            (
                "renewed, and not confirmed yet",
                |played| played.answer(OpAnswer::Renewed),
                CandidateState::Master,
                "confirm a mastership",
            ),
            (
                "renewed and confirmed",
                |played| {
                    played.answer(OpAnswer::Renewed);
                    YES(played);
                },
                CandidateState::Master,
                "",
            ),
            (
                "renewed, and confirmed no more",
                |played| {
                    played.answer(OpAnswer::Renewed);
                    NO(played);
                },
                // It still sees its key, and makes sure that it is gone.
                CandidateState::Watching,
                "give a mastership back",
            ),
            (
                "renewed, and not confirmed: both again",
                |played| {
                    played.answer(OpAnswer::Renewed);
                    FAILED(played);
                },
                CandidateState::Master,
                "probe",
            ),
            ("no answer", FAILED, CandidateState::Master, "probe"),
            ("its lease is gone", LEASE_GONE, CandidateState::Outside, ""),
            (
                "its key is gone: the renewal is given up",
                KEY_GONE,
                CandidateState::Watching,
                "renew",
            ),
        ],
    );
}

#[test]
fn lapsed() {
    check(
        DrivenCandidate::lapsed,
        &[
            ("nothing", |_| {}, CandidateState::Lapsed, "renew"),
            (
                "renewed and confirmed, by the time of the renewal",
                |played| {
                    played.answer(OpAnswer::Renewed);
                    YES(played);
                    played.wait(Duration::ZERO);
                },
                CandidateState::Lapsed,
                "renew",
            ),
            ("its lease is gone", LEASE_GONE, CandidateState::Outside, ""),
        ],
    );
}

#[test]
fn resigning() {
    check(
        DrivenCandidate::resigning,
        &[
            ("nothing", |_| {}, CandidateState::Resigning, "resign"),
            ("it has resigned", YES, CandidateState::Resigning, "revoke"),
            (
                "the key was not its own",
                NO,
                CandidateState::Resigning,
                "revoke",
            ),
            ("no answer", FAILED, CandidateState::Resigning, "resign"),
            (
                "no answer from any, thrice",
                |played| {
                    for _ in 0..3 {
                        FAILED(played);
                    }
                },
                CandidateState::Resigning,
                "revoke",
            ),
            (
                "all is given back",
                |played| {
                    YES(played);
                    played.answer(OpAnswer::Revoked);
                },
                CandidateState::Over,
                "",
            ),
            (
                "the time is over",
                |played| {
                    played.asked = None;
                    played.wait(Duration::from_secs(1));
                },
                CandidateState::Over,
                "",
            ),
        ],
    );
}
