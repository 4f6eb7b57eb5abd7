//! Transitions of the parent lease: each event in each state, and the time of the next request.

use super::*;

const NOW: Time = Time::from_secs(100);

const PACE: ParentPace = ParentPace {
    round: Duration::from_secs(1),
    slow: Duration::from_secs(4),
};

fn at(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

fn request(sequence: u64, sent_at: u64) -> LeaseRequest {
    LeaseRequest {
        sequence,
        sent_at: at(sent_at),
        demand_version: 0,
        wants: 0.0,
        clients: 0.0,
        holding: Amount::ZERO,
        learning: false,
    }
}

fn held(refresh_at: u64) -> LastAnswer {
    LastAnswer {
        refresh_at: Some(at(refresh_at)),
        refused: None,
    }
}

const NOT_READY: LastAnswer = LastAnswer {
    refresh_at: None,
    refused: None,
};

fn refused(until: u64, refresh_at: Option<u64>) -> LastAnswer {
    LastAnswer {
        refresh_at: refresh_at.map(at),
        refused: Some((RefusalReason::RefusedByParent, at(until))),
    }
}

fn fresh(last: LastAnswer) -> ParentLease {
    let stage = Stage::Fresh;
    ParentLease { stage, last }
}

fn asked(last: LastAnswer) -> ParentLease {
    let stage = Stage::Asked(request(7, 90));
    ParentLease { stage, last }
}

fn answered(last: LastAnswer) -> ParentLease {
    let stage = Stage::Answered(request(7, 90));
    ParentLease { stage, last }
}

const GIVEN_BACK: ParentLease = ParentLease {
    stage: Stage::GivenBack,
    ..ParentLease::NEW
};

/// Events at `NOW`.
#[derive(Clone, Copy, Debug)]
enum Input {
    /// A request to the parent.
    Ask,
    /// A lease, to be refreshed at 110.
    Hold,
    NotReady,
    Refuse,
    Nonsense,
    Behind,
    Lost,
    /// The last holder has left.
    Forget,
    GiveBack,
}

#[track_caller]
fn check(before: ParentLease, event: Input, after: ParentLease) {
    let mut lease = before;
    match event {
        Input::Ask => lease.ask(request(7, 90)),
        Input::Hold => lease.become_held(Amount::ZERO, at(110)),
        Input::NotReady => lease.become_not_ready(),
        Input::Refuse => {
            let _is_news = lease.become_refused(RefusalReason::RefusedByParent, NOW);
        }
        Input::Nonsense => lease.note_invalid_answer(NOW),
        Input::Behind => lease.become_behind(NOW),
        Input::Lost => lease.note_lost(NOW),
        Input::Forget => lease.forget_refusal(NOW),
        Input::GiveBack => lease.give_back(),
    }
    assert_eq!(lease, after, "{before:?}, {event:?}");
}

#[test]
fn every_answer_ends_the_wait_for_it() {
    for before in [asked(held(95)), answered(held(95))] {
        check(before, Input::Hold, answered(held(110)));
        check(before, Input::NotReady, answered(NOT_READY));
        check(before, Input::Refuse, answered(refused(105, Some(95))));
        check(before, Input::Nonsense, answered(held(101)));
        check(before, Input::Behind, answered(held(100)));
        check(before, Input::Lost, answered(held(95)));
    }
    check(asked(held(140)), Input::Lost, answered(held(100)));
}

#[test]
fn the_last_answer_counts_while_the_next_request_is_in_flight() {
    for last in [held(95), NOT_READY, refused(105, None)] {
        check(fresh(last), Input::Ask, asked(last));
        check(answered(last), Input::Ask, asked(last));
        check(asked(last), Input::Lost, answered(last));
        check(answered(last), Input::GiveBack, GIVEN_BACK);
    }
}

#[test]
fn a_parent_that_is_not_ready_is_asked_often_until_it_grants_a_lease() {
    check(asked(NOT_READY), Input::Hold, answered(held(110)));
    check(
        asked(NOT_READY),
        Input::Refuse,
        answered(refused(105, None)),
    );
    for event in [Input::NotReady, Input::Nonsense, Input::Behind, Input::Lost] {
        check(asked(NOT_READY), event, answered(NOT_READY));
    }
}

#[test]
fn a_refusal_ends_by_another_answer_or_with_the_last_holder() {
    let before = asked(refused(105, Some(140)));
    check(before, Input::Hold, answered(held(110)));
    check(before, Input::NotReady, answered(NOT_READY));
    check(before, Input::Nonsense, answered(held(101)));
    check(before, Input::Behind, answered(refused(105, Some(100))));
    check(before, Input::Lost, answered(refused(105, Some(100))));
    check(before, Input::Forget, before);
    for (last, after) in [
        (refused(100, Some(140)), held(140)),
        (refused(100, None), NOT_READY),
        (held(95), held(95)),
    ] {
        check(answered(last), Input::Forget, answered(after));
    }
}

#[test]
fn a_lease_given_back_ignores_answers() {
    for event in [Input::Hold, Input::Refuse, Input::Lost, Input::Ask] {
        check(GIVEN_BACK, event, GIVEN_BACK);
    }
    assert!(GIVEN_BACK.is_settled(true));
    assert!(fresh(held(0)).is_settled(false) && answered(held(95)).is_settled(false));
    assert!(!answered(held(95)).is_settled(true));
    assert!(!answered(refused(105, None)).is_settled(false));
    assert!(!asked(held(95)).is_settled(false));
}

#[test]
fn a_refusal_is_reported_once_and_has_a_wait() {
    for (reason, why, lasts) in [
        (
            RefusalReason::UnknownResource,
            RefusalReason::UnknownResource,
            5,
        ),
        (
            RefusalReason::AnotherProcess(Duration::from_secs(20)),
            RefusalReason::RefusedByParent,
            20,
        ),
        (
            RefusalReason::AnotherProcess(Duration::from_secs(900)),
            RefusalReason::RefusedByParent,
            60,
        ),
    ] {
        let mut lease = asked(held(95));
        assert!(lease.become_refused(reason, NOW), "{reason:?}");
        assert!(!lease.become_refused(reason, NOW), "{reason:?}");
        assert_eq!(lease.refused_until(), Some(at(100 + lasts)), "{reason:?}");
        assert_eq!(lease.refused(at(99 + lasts)), Some(why));
        assert_eq!(lease.refused(at(100 + lasts)), None);
    }
}

#[test]
fn an_answer_counts_if_it_is_to_the_newest_request() {
    let newest = AnswerTo::Newest(request(7, 90));
    for (lease, sequence, expected) in [
        (asked(held(0)), Some(7), newest),
        (answered(held(0)), Some(7), newest),
        (answered(held(0)), None, newest),
        (answered(held(0)), Some(6), AnswerTo::Older),
        (answered(held(0)), Some(8), AnswerTo::Newer(8)),
        (fresh(held(0)), Some(7), AnswerTo::Older),
        (GIVEN_BACK, Some(7), AnswerTo::Older),
    ] {
        assert_eq!(
            lease.answer_to(sequence),
            expected,
            "{lease:?} {sequence:?}"
        );
    }
}

#[test]
fn the_parent_is_asked_as_soon_as_it_matters_and_never_twice_at_once() {
    use Needs::{Holders, Leftover, Nothing, Unreported};
    let at_once = Some(Time::ZERO);
    let not_ready = Some(at(90) + NOT_READY_LENGTH);
    for (lease, needs, news, due) in [
        (fresh(held(0)), Holders, Changes::None, at_once),
        (fresh(held(0)), Unreported, Changes::None, None),
        (
            fresh(refused(99, None)),
            Holders,
            Changes::None,
            Some(at(99)),
        ),
        (asked(held(95)), Holders, Changes::Matters, None),
        (GIVEN_BACK, Nothing, Changes::Matters, None),
        (answered(held(95)), Holders, Changes::None, Some(at(95))),
        (answered(held(95)), Unreported, Changes::None, Some(at(95))),
        (answered(held(95)), Holders, Changes::Little, Some(at(94))),
        (answered(held(95)), Holders, Changes::Matters, Some(at(91))),
        (answered(held(80)), Holders, Changes::None, Some(at(91))),
        (answered(held(95)), Leftover, Changes::None, Some(at(91))),
        (answered(held(95)), Nothing, Changes::None, None),
        (answered(NOT_READY), Holders, Changes::None, not_ready),
        (answered(NOT_READY), Unreported, Changes::Matters, not_ready),
        (answered(NOT_READY), Leftover, Changes::None, Some(at(91))),
        (
            answered(refused(99, None)),
            Holders,
            Changes::None,
            Some(at(99)),
        ),
        (
            answered(refused(89, None)),
            Holders,
            Changes::None,
            Some(at(91)),
        ),
        (answered(refused(99, None)), Leftover, Changes::None, None),
    ] {
        let found = lease.next_request(needs, |_| news, PACE);
        assert_eq!(found, due, "{lease:?}, {needs:?}, {news:?}");
    }
}
