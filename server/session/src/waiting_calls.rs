//! Calls that wait for the parent. A server below the root that has no lease of a resource yet cannot grant
//! anything of it. The first caller would have to come back, so its call waits a moment instead.
//!
//! A call is answered at once if the node can decide all of it, or if the parent is known to be unreachable.
//! Otherwise it waits, at most [`PARENT_WAIT`] after it came. Whenever the parent answers, the node is asked
//! again for the undecided resources. When the time is over, the call is answered: resources that are still
//! undecided are refused as *not ready*.
//!
//! Each call has a small state machine of its own, so calls that do not wait cost nothing. The driver keeps the
//! answer, and merges later decisions into it.

use std::time::Duration;

use crate::session_bugs::{self, SessionBug};
use crate::time::Time;

/// How long a call waits for the parent, at most.
pub const PARENT_WAIT: Duration = Duration::from_secs(1);

/// What the node decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallDecision {
    /// All of it was decided, or refused for good.
    Complete,
    /// Some of it is not ready: the parent has not answered.
    NotReady {
        /// The parent is known to be unreachable, so waiting is of no use.
        is_parent_down: bool,
    },
}

/// What the driver has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallAction {
    /// Answer the call with what was decided.
    Answer,
    /// Ask the node again for what was not ready. The client's lease was measured when the call came, so it lasts
    /// that much less by now.
    AskAgain {
        /// How long the call has waited.
        waited: Duration,
    },
}

/// The state of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    /// The node is asked.
    Deciding,
    /// It waits for the parent.
    Waiting,
    /// The parent has answered: the node is to be asked again.
    AskingAgain { at: Time },
    /// It has to be answered.
    Answering,
    /// It was answered.
    Over,
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct WaitingCall {
    came_at: Time,
    state: CallState,
}

impl WaitingCall {
    /// A call that comes now. Ask the node at once.
    pub const fn new(now: Time) -> Self {
        Self {
            came_at: now,
            state: CallState::Deciding,
        }
    }

    /// Whether it waits for the parent.
    pub const fn is_waiting(&self) -> bool {
        matches!(self.state, CallState::Waiting)
    }

    /// What the node decided.
    pub fn handle_decision(&mut self, decision: CallDecision, now: Time) {
        debug_assert_eq!(self.state, CallState::Deciding, "the node was asked");
        let waits = matches!(
            decision,
            CallDecision::NotReady {
                is_parent_down: false
            }
        );
        let has_time = now < self.until() || session_bugs::is(SessionBug::CallWaitsWithoutEnd);
        self.state = if waits && has_time {
            CallState::Waiting
        } else {
            CallState::Answering
        };
    }

    /// The parent has answered.
    pub fn handle_parent_answered(&mut self, now: Time) {
        if self.is_waiting() {
            self.state = CallState::AskingAgain { at: now };
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.is_waiting()
            && self.until() <= now
            && !session_bugs::is(SessionBug::CallWaitsWithoutEnd)
        {
            self.state = CallState::Answering;
        }
    }

    /// The next action.
    pub fn poll_action(&mut self) -> Option<CallAction> {
        match self.state {
            CallState::AskingAgain { at } => {
                self.state = CallState::Deciding;
                let waited = at.since(self.came_at);
                Some(CallAction::AskAgain { waited })
            }
            CallState::Answering => {
                self.state = CallState::Over;
                Some(CallAction::Answer)
            }
            CallState::Deciding | CallState::Waiting | CallState::Over => None,
        }
    }

    /// When to call [`WaitingCall::handle_timeout`] at the latest. Calls that came later have a later one.
    pub fn poll_timeout(&self) -> Option<Time> {
        let waits = self.is_waiting() && !session_bugs::is(SessionBug::CallWaitsWithoutEnd);
        waits.then(|| self.until())
    }

    fn until(&self) -> Time {
        self.came_at + PARENT_WAIT
    }
}

#[cfg(test)]
mod tests {
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
        // Once, whatever happens.
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
        // However often it was tried.
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
}
