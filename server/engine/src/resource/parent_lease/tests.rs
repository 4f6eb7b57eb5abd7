//! How a resource stands with its parent: what each event does in each state, and when the parent is asked.

use super::*;

const NOW: Time = Time::from_secs(100);

const PACE: Pace = Pace {
    round: Duration::from_secs(1),
    slow: Duration::from_secs(4),
};

fn at(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

fn request(sequence: u64, sent_at: u64) -> Request {
    Request {
        sequence,
        sent_at: at(sent_at),
        demand_version: 0,
        wants: 0.0,
        clients: 0.0,
        holding: Amount::ZERO,
        learning: false,
    }
}

fn held(refresh_at: u64) -> Standing {
    Standing::Held {
        refresh_at: at(refresh_at),
    }
}

const NOT_READY: Standing = Standing::NotReady;

fn refused(until: u64, refresh_at: Option<u64>) -> Standing {
    Standing::Refused {
        why: RefusalReason::RefusedByParent,
        until: at(until),
        refresh_at: refresh_at.map(at),
    }
}

fn fresh(last: Standing) -> ParentLease {
    ParentLease::Fresh { last }
}

fn asked(last: Standing) -> ParentLease {
    let request = request(7, 90);
    ParentLease::Asked { request, last }
}

fn heard(last: Standing) -> ParentLease {
    let request = request(7, 90);
    ParentLease::Heard { request, last }
}

/// What can happen, at `NOW`.
#[derive(Clone, Copy, Debug)]
enum Input {
    /// A request goes up.
    Ask,
    /// A lease, to be refreshed at 110.
    Hold,
    NotReady,
    Refuse,
    Nonsense,
    Behind,
    Lost,
    /// Nobody is left.
    Forget,
    GiveBack,
}

#[track_caller]
fn check(before: ParentLease, event: Input, after: ParentLease) {
    let mut lease = before;
    match event {
        Input::Ask => lease.ask(request(7, 90)),
        Input::Hold => lease.hold(at(110)),
        Input::NotReady => lease.be_not_ready(),
        Input::Refuse => {
            let _is_news = lease.refuse(RefusalReason::RefusedByParent, NOW);
        }
        Input::Nonsense => lease.note_nonsense(NOW),
        Input::Behind => lease.be_behind(NOW),
        Input::Lost => lease.note_lost(NOW),
        Input::Forget => lease.forget_refusal(NOW),
        Input::GiveBack => lease.give_back(),
    }
    assert_eq!(lease, after, "{before:?}, {event:?}");
}

#[test]
fn every_answer_ends_the_wait_for_it() {
    for before in [asked(held(95)), heard(held(95))] {
        check(before, Input::Hold, heard(held(110)));
        check(before, Input::NotReady, heard(NOT_READY));
        check(before, Input::Refuse, heard(refused(105, Some(95))));
        check(before, Input::Nonsense, heard(held(101)));
        check(before, Input::Behind, heard(held(100)));
        check(before, Input::Lost, heard(held(95)));
    }
    check(asked(held(140)), Input::Lost, heard(held(100)));
}

#[test]
fn what_the_parent_said_counts_while_the_next_request_is_on_its_way() {
    for last in [held(95), NOT_READY, refused(105, None)] {
        check(fresh(last), Input::Ask, asked(last));
        check(heard(last), Input::Ask, asked(last));
        check(asked(last), Input::Lost, heard(last));
        check(heard(last), Input::GiveBack, ParentLease::GivenBack);
    }
}

#[test]
fn a_parent_that_is_not_ready_is_asked_often_until_it_grants_a_lease() {
    check(asked(NOT_READY), Input::Hold, heard(held(110)));
    check(asked(NOT_READY), Input::Refuse, heard(refused(105, None)));
    for event in [Input::NotReady, Input::Nonsense, Input::Behind, Input::Lost] {
        check(asked(NOT_READY), event, heard(NOT_READY));
    }
}

#[test]
fn a_refusal_ends_by_another_answer_or_when_nobody_is_left() {
    let before = asked(refused(105, Some(140)));
    check(before, Input::Hold, heard(held(110)));
    check(before, Input::NotReady, heard(NOT_READY));
    check(before, Input::Nonsense, heard(held(101)));
    check(before, Input::Behind, heard(refused(105, Some(100))));
    check(before, Input::Lost, heard(refused(105, Some(100))));
    check(before, Input::Forget, before);
    for (last, after) in [
        (refused(100, Some(140)), held(140)),
        (refused(100, None), NOT_READY),
        (held(95), held(95)),
    ] {
        check(heard(last), Input::Forget, heard(after));
    }
}

#[test]
fn what_was_given_back_hears_nothing_more() {
    for event in [Input::Hold, Input::Refuse, Input::Lost, Input::Ask] {
        check(ParentLease::GivenBack, event, ParentLease::GivenBack);
    }
    assert!(ParentLease::GivenBack.is_settled(true));
    assert!(fresh(held(0)).is_settled(false) && heard(held(95)).is_settled(false));
    assert!(!heard(held(95)).is_settled(true));
    assert!(!heard(refused(105, None)).is_settled(false));
    assert!(!asked(held(95)).is_settled(false));
}

#[test]
fn a_refusal_is_news_once_and_says_when_to_come_back() {
    for (reason, why, lasts) in [
        (
            RefusalReason::UnknownResource,
            RefusalReason::UnknownResource,
            5,
        ),
        (RefusalReason::Duplicate, RefusalReason::RefusedByParent, 5),
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
        assert!(lease.refuse(reason, NOW), "{reason:?}");
        assert!(!lease.refuse(reason, NOW), "{reason:?}");
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
        (heard(held(0)), Some(7), newest),
        (heard(held(0)), None, newest),
        (heard(held(0)), Some(6), AnswerTo::Older),
        (heard(held(0)), Some(8), AnswerTo::Newer(8)),
        (fresh(held(0)), Some(7), AnswerTo::Older),
        (ParentLease::GivenBack, Some(7), AnswerTo::Older),
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
    use Needs::{Holders, Leftover, Nothing, Unheard};
    let at_once = Some(Time::ZERO);
    let not_ready = Some(at(90) + NOT_READY_LENGTH);
    for (lease, needs, news, due) in [
        (fresh(held(0)), Holders, News::None, at_once),
        (fresh(held(0)), Unheard, News::None, None),
        (fresh(refused(99, None)), Holders, News::None, Some(at(99))),
        (asked(held(95)), Holders, News::Matters, None),
        (ParentLease::GivenBack, Nothing, News::Matters, None),
        (heard(held(95)), Holders, News::None, Some(at(95))),
        (heard(held(95)), Unheard, News::None, Some(at(95))),
        (heard(held(95)), Holders, News::Little, Some(at(94))),
        (heard(held(95)), Holders, News::Matters, Some(at(91))),
        (heard(held(80)), Holders, News::None, Some(at(91))),
        (heard(held(95)), Leftover, News::None, Some(at(91))),
        (heard(held(95)), Nothing, News::None, None),
        (heard(NOT_READY), Holders, News::None, not_ready),
        (heard(NOT_READY), Unheard, News::Matters, not_ready),
        (heard(NOT_READY), Leftover, News::None, Some(at(91))),
        (heard(refused(99, None)), Holders, News::None, Some(at(99))),
        (heard(refused(89, None)), Holders, News::None, Some(at(91))),
        (heard(refused(99, None)), Leftover, News::None, None),
    ] {
        let found = lease.next_request(needs, |_| news, PACE);
        assert_eq!(found, due, "{lease:?}, {needs:?}, {news:?}");
    }
}
