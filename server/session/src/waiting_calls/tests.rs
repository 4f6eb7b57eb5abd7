//! Calls, and the time of each answer.

use super::*;

const NOT_READY: CallDecision = CallDecision::NotReady {
    is_parent_down: false,
};
const PARENT_DOWN: CallDecision = CallDecision::NotReady {
    is_parent_down: true,
};

fn at(millis: u64) -> Time {
    Time::after_origin(Duration::from_millis(millis))
}

/// A call that came at 5 s, with the first decision.
fn call(decision: CallDecision) -> WaitingCall {
    let mut call = WaitingCall::new(at(5_000));
    assert_eq!((call.poll_action(), call.poll_timeout()), (None, None));
    call.handle_decision(decision, at(5_000));
    call
}

#[track_caller]
fn waits(call: &mut WaitingCall) {
    assert_eq!(call.poll_action(), None);
    assert_eq!(call.poll_timeout(), Some(at(6_000)));
}

#[track_caller]
fn is_answered(mut call: WaitingCall) {
    assert_eq!(call.poll_action(), Some(CallAction::Answer));
    // The call is answered once, whatever happens.
    call.handle_parent_answered(at(5_700));
    call.handle_timeout(at(7_000));
    assert_eq!((call.poll_action(), call.poll_timeout()), (None, None));
}

#[test]
fn a_call_that_is_decided_is_answered_at_once() {
    is_answered(call(CallDecision::Complete));
}

#[test]
fn a_call_does_not_wait_for_an_unreachable_parent() {
    is_answered(call(PARENT_DOWN));
}

#[test]
fn a_call_that_waits_is_tried_again_whenever_the_parent_answers() {
    let mut call = call(NOT_READY);
    for (answered, then) in [
        (5_100, NOT_READY),
        (5_400, NOT_READY),
        (5_401, CallDecision::Complete),
    ] {
        waits(&mut call);
        call.handle_parent_answered(at(answered));
        let waited = Duration::from_millis(answered - 5_000);
        assert_eq!(call.poll_action(), Some(CallAction::AskAgain { waited }));
        call.handle_decision(then, at(answered));
    }
    is_answered(call);
}

#[test]
fn a_call_that_waits_is_answered_when_the_parent_is_lost_meanwhile() {
    let mut call = call(NOT_READY);
    call.handle_parent_answered(at(5_300));
    assert!(call.poll_action().is_some());
    call.handle_decision(PARENT_DOWN, at(5_300));
    is_answered(call);
}

#[test]
fn a_call_is_answered_after_a_second_whatever_is_undecided() {
    let mut call = call(NOT_READY);
    call.handle_timeout(at(5_999));
    waits(&mut call);
    call.handle_parent_answered(at(5_999));
    assert!(call.poll_action().is_some());
    // The number of attempts does not matter.
    call.handle_decision(NOT_READY, at(5_999));
    waits(&mut call);
    call.handle_timeout(at(6_000));
    is_answered(call);
}

#[test]
fn a_call_that_is_tried_at_its_very_end_does_not_wait_again() {
    let mut call = call(NOT_READY);
    call.handle_parent_answered(at(6_000));
    assert!(call.poll_action().is_some());
    call.handle_decision(NOT_READY, at(6_000));
    is_answered(call);
}
