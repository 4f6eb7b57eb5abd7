//! Calls that wait for the parent. A server below the root without a lease of a resource cannot grant anything of it
//! yet. The call of the first client waits a moment, so that the client need not return.
//!
//! A call is answered at once if the node can decide all of it, or if the parent is known to be unreachable. Otherwise
//! it waits, at most [`PARENT_WAIT`] after the node's first decision. Whenever the parent answers, the driver asks the
//! node again for the undecided resources. When the time is over, the call is answered: resources that are still
//! undecided are refused as *not ready*.
//!
//! Each call has a small state machine of its own, so calls that do not wait cost nothing. The driver keeps the answer,
//! and merges later decisions into it.

use std::time::Duration;

use crate::time::Time;

/// Longest wait of a call for the parent.
pub const PARENT_WAIT: Duration = Duration::from_secs(1);

/// Decision of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallDecision {
    /// All of the call is decided, or refused for good.
    Complete,
    /// Some of it is not ready, because the parent has not answered.
    NotReady {
        /// Whether the parent is known to be unreachable, so that waiting is useless.
        is_parent_down: bool,
    },
}

/// A task for the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallAction {
    /// Answer the call with the decisions.
    Answer,
    /// Ask the node again for the resources that are not ready. The client reported its lease when the call came, so
    /// the lease lasts at least that much less by now.
    AskAgain {
        /// Time that the call has waited.
        waited: Duration,
    },
}

/// The state of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallState {
    /// The driver asks the node.
    Deciding,
    /// The call waits for the parent.
    Waiting,
    /// The parent has answered, and the driver must ask the node again.
    AskingAgain { at: Time },
    /// The driver must answer the call.
    Answering,
    /// The call was answered.
    Over,
}

/// A call.
#[derive(Clone, Copy, Debug)]
pub struct WaitingCall {
    came_at: Time,
    state: CallState,
}

impl WaitingCall {
    /// Returns a call that comes now. The driver asks the node at once.
    pub const fn new(now: Time) -> Self {
        Self {
            came_at: now,
            state: CallState::Deciding,
        }
    }

    /// Whether the call waits for the parent.
    pub const fn is_waiting(&self) -> bool {
        matches!(self.state, CallState::Waiting)
    }

    /// Handles the decision of the node.
    pub fn handle_decision(&mut self, decision: CallDecision, now: Time) {
        debug_assert_eq!(self.state, CallState::Deciding, "the node was asked");
        let has_time = now < self.until();
        self.state = match decision {
            CallDecision::NotReady { is_parent_down } if has_time && !is_parent_down => {
                CallState::Waiting
            }
            CallDecision::NotReady { .. } | CallDecision::Complete => CallState::Answering,
        };
    }

    /// Handles an answer of the parent.
    pub fn handle_parent_answered(&mut self, now: Time) {
        if self.is_waiting() {
            self.state = CallState::AskingAgain { at: now };
        }
    }

    /// Ends the wait if its time is over.
    pub fn handle_timeout(&mut self, now: Time) {
        if self.is_waiting() && self.until() <= now {
            self.state = CallState::Answering;
        }
    }

    /// Returns the next action.
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

    /// Returns the latest time to call [`WaitingCall::handle_timeout`]. Later calls have a later one.
    pub fn poll_timeout(&self) -> Option<Time> {
        self.is_waiting().then(|| self.until())
    }

    fn until(&self) -> Time {
        self.came_at + PARENT_WAIT
    }
}

#[cfg(test)]
mod tests;
