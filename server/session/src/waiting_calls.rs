//! Calls that wait for the parent: a server below the root that has no lease of a resource yet cannot say
//! what there is of it. Whoever asks first would have to come back, so its call waits a moment.
//!
//! A call is answered at once if all of it can be decided, or if the parent is known to be out of reach.
//! Else it waits, for [`PARENT_WAIT`] since it came at most. Whenever the parent answers, what was not
//! decided is asked of the node again. When the time is over, the call is answered as it is: what is not
//! decided then is refused as *not ready*.
//!
//! One small machine a call: it costs nothing where nothing waits. The driver keeps the answer, and merges
//! into it what is decided later.

use std::time::Duration;

use crate::planted::{self, Bug};
use crate::time::Time;

/// How long a call waits for the parent at most, since it came.
pub const PARENT_WAIT: Duration = Duration::from_secs(1);

/// What came of asking the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// All of it was decided, or refused for good.
    Whole,
    /// Something of it is not ready: the parent has not answered.
    NotReady {
        /// The parent is known to be out of reach: waiting is of no use.
        is_parent_down: bool,
    },
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The call is answered with what was decided of it.
    Answer,
    /// The node is asked again for what was not ready. The call has waited so long: what its client has lasts
    /// for that much less.
    AskAgain {
        /// Since the call came.
        waited: Duration,
    },
}

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The node is asked, and will say.
    Deciding,
    /// It waits for the parent.
    Waiting,
    /// The parent has answered: the node is to be asked again.
    AskingAgain { at: Time },
    /// It is to be answered.
    Answering,
    /// It was answered.
    Over,
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct WaitingCall {
    came_at: Time,
    state: State,
}

impl WaitingCall {
    /// A call that comes now. The node is asked at once.
    pub const fn new(now: Time) -> Self {
        Self {
            came_at: now,
            state: State::Deciding,
        }
    }

    /// Whether it waits for the parent.
    pub const fn is_waiting(&self) -> bool {
        matches!(self.state, State::Waiting)
    }

    /// What came of asking the node.
    pub fn handle_decision(&mut self, decision: Decision, now: Time) {
        debug_assert_eq!(self.state, State::Deciding, "the node was asked");
        let waits = matches!(
            decision,
            Decision::NotReady {
                is_parent_down: false
            }
        );
        let has_time = now < self.until() || planted::is(Bug::CallWaitsWithoutEnd);
        self.state = if waits && has_time {
            State::Waiting
        } else {
            State::Answering
        };
    }

    /// The parent has answered something.
    pub fn handle_parent_answered(&mut self, now: Time) {
        if self.is_waiting() {
            self.state = State::AskingAgain { at: now };
        }
    }

    /// Time has passed.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.is_waiting() && self.until() <= now && !planted::is(Bug::CallWaitsWithoutEnd) {
            self.state = State::Answering;
        }
    }

    /// What is to be done next.
    pub fn poll_action(&mut self) -> Option<Action> {
        match self.state {
            State::AskingAgain { at } => {
                self.state = State::Deciding;
                let waited = at.since(self.came_at);
                Some(Action::AskAgain { waited })
            }
            State::Answering => {
                self.state = State::Over;
                Some(Action::Answer)
            }
            State::Deciding | State::Waiting | State::Over => None,
        }
    }

    /// When to call [`WaitingCall::handle_timeout`] at the latest. Of calls that came later it is later.
    pub fn poll_timeout(&self) -> Option<Time> {
        let waits = self.is_waiting() && !planted::is(Bug::CallWaitsWithoutEnd);
        waits.then(|| self.until())
    }

    fn until(&self) -> Time {
        self.came_at + PARENT_WAIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOT_READY: Decision = Decision::NotReady {
        is_parent_down: false,
    };
    const PARENT_DOWN: Decision = Decision::NotReady {
        is_parent_down: true,
    };

    fn at(millis: u64) -> Time {
        Time::after_origin(Duration::from_millis(millis))
    }

    /// A call that came at 5 s, and what came of asking the node at once.
    fn call(decision: Decision) -> WaitingCall {
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
        assert_eq!(call.poll_action(), Some(Action::Answer));
        // Once, whatever happens.
        call.handle_parent_answered(at(5_700));
        call.handle_timeout(at(7_000));
        assert_eq!((call.poll_action(), call.poll_timeout()), (None, None));
    }

    #[test]
    fn a_call_that_is_decided_is_answered_at_once() {
        is_answered(call(Decision::Whole));
    }

    #[test]
    fn a_call_does_not_wait_for_a_parent_that_is_out_of_reach() {
        is_answered(call(PARENT_DOWN));
    }

    #[test]
    fn a_call_that_waits_is_tried_again_whenever_the_parent_answers() {
        let mut call = call(NOT_READY);
        for (answered, then) in [
            (5_100, NOT_READY),
            (5_400, NOT_READY),
            (5_401, Decision::Whole),
        ] {
            waits(&mut call);
            call.handle_parent_answered(at(answered));
            let waited = Duration::from_millis(answered - 5_000);
            assert_eq!(call.poll_action(), Some(Action::AskAgain { waited }));
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
    fn a_call_is_answered_as_it_is_a_second_after_it_came() {
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
