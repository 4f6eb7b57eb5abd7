//! Calls that wait for the parent. A server below the root that has no lease of a resource yet cannot grant
//! anything of it. The first caller would have to come back, so its call waits a moment instead.
//!
//! A call is answered at once if the node can decide all of it, or if the parent is known to be unreachable.
//! Otherwise it waits, at most [`PARENT_WAIT`] after the node was asked first. Whenever the parent answers, the node is asked
//! again for the undecided resources. When the time is over, the call is answered: resources that are still
//! undecided are refused as *not ready*.
//!
//! Each call has a small state machine of its own, so calls that do not wait cost nothing. The driver keeps the
//! answer, and merges later decisions into it.

use std::time::Duration;

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
    /// at least that much less by now.
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
        let has_time = now < self.until();
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
        if self.is_waiting() && self.until() <= now {
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
        let waits = self.is_waiting();
        waits.then(|| self.until())
    }

    fn until(&self) -> Time {
        self.came_at + PARENT_WAIT
    }
}

#[cfg(test)]
mod tests;
