//! Clients' calls that wait at a server for its parent, driven by the production machine
//! ([`doorward_session::waiting_calls`]).

use std::collections::VecDeque;

use doorward_engine::messages::{GetCapacity, GetCapacityReply};
use doorward_engine::node::mastership::Outcome;
use doorward_engine::time::Time;
use doorward_session::waiting_calls::{CallAction, CallDecision, WaitingCall};

use crate::world::World;
use crate::world::message::{CLIENT_TIMEOUT, ServerId};

/// Client's call with a part that is not decided yet.
#[derive(Debug)]
pub(crate) struct UndecidedCall {
    call: WaitingCall,
    pub(crate) client: u32,
    request: GetCapacity,
    /// Decided part.
    reply: GetCapacityReply,
}

impl UndecidedCall {
    pub(crate) fn sequence(&self) -> u64 {
        self.request.sequence.unwrap_or_default()
    }
}

/// Returns the latest time for the first call's answer, by the server's clock. Calls are in order
/// of arrival.
pub(crate) fn due(calls: &VecDeque<UndecidedCall>) -> Option<Time> {
    calls.front()?.call.poll_timeout()
}

impl World<'_> {
    /// Starts the call of a client's request that a server has decided as far as it can.
    pub(super) fn start_call(
        &mut self,
        id: ServerId,
        client: u32,
        request: GetCapacity,
        reply: GetCapacityReply,
    ) {
        let now = self.now;
        let Some((server, local)) = self.server_at(id) else {
            return;
        };
        let mut call = WaitingCall::new(local);
        let decision = decision(&reply, server.is_parent_down());
        call.handle_decision(decision, local);
        let waiting = UndecidedCall {
            call,
            client,
            request,
            reply,
        };
        if waiting.call.is_waiting() {
            let sequence = waiting.sequence();
            // The client waits no longer than this, whatever happens to the server.
            self.fail_later(client, sequence, now + CLIENT_TIMEOUT);
            self.note_kept(client, sequence);
        }
        self.continue_call(id, waiting);
    }

    /// Continues waiting calls after the parent has answered or time has passed.
    pub(super) fn serve_waiting(&mut self, id: ServerId, parent_answered: bool) {
        let Some((server, local)) = self.server_at(id) else {
            return;
        };
        let is_due = |it: &UndecidedCall| it.call.poll_timeout() <= Some(local);
        let count = if parent_answered {
            server.waiting.len()
        } else {
            server.waiting.partition_point(is_due)
        };
        let calls: Vec<UndecidedCall> = server.waiting.drain(..count).collect();
        for mut waiting in calls {
            if parent_answered {
                waiting.call.handle_parent_answered(local);
            } else {
                waiting.call.handle_timeout(local);
            }
            self.continue_call(id, waiting);
        }
    }

    /// Performs the actions for a call until it is answered or waits again.
    fn continue_call(&mut self, id: ServerId, mut waiting: UndecidedCall) {
        let (client, sequence) = (waiting.client, waiting.sequence());
        while let Some(action) = waiting.call.poll_action() {
            match action {
                CallAction::Answer => {
                    let outcome = Outcome::Served(waiting.reply);
                    return self.answer(client, id, sequence, outcome);
                }
                CallAction::AskAgain { waited } => {
                    let Some((server, local)) = self.server_at(id) else {
                        return;
                    };
                    let again = waiting.request.again(&mut waiting.reply, waited);
                    let is_parent_down = server.is_parent_down();
                    let more = match server.node.handle_get_capacity(&again, local) {
                        Outcome::Served(more) => more,
                        not_master @ Outcome::NotMaster(_) => {
                            return self.answer(client, id, sequence, not_master);
                        }
                    };
                    self.note_decision(id, more.leases.iter().map(|lease| &lease.resource));
                    waiting.reply.add(more);
                    let decision = decision(&waiting.reply, is_parent_down);
                    waiting.call.handle_decision(decision, local);
                }
            }
        }
        if let Some((server, _)) = self.server_at(id) {
            server.waiting.push_back(waiting);
        }
    }
}

fn decision(reply: &GetCapacityReply, is_parent_down: bool) -> CallDecision {
    if reply.is_ready() {
        CallDecision::Complete
    } else {
        CallDecision::NotReady { is_parent_down }
    }
}
