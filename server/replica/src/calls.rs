//! Clients' calls that wait for the parent.
//!
//! A server below the root without a lease of a resource cannot grant anything of it yet. Whenever the parent answers,
//! the node is asked again for what was not ready ([`doorward_session::waiting_calls`]).

use std::collections::{BTreeMap, VecDeque};
use std::task::Poll;

use doorward_engine::messages::{ClientLease, GetCapacity, GetCapacityReply};
use doorward_engine::node::Node;
use doorward_engine::node::asking::Answers;
use doorward_engine::node::mastership::Outcome;
use doorward_engine::time::Time;
use doorward_session::waiting_calls::{CallAction, CallDecision, WaitingCall};

use crate::output::{CallNumber, Output};

/// The calls that wait.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// In the order in which they came, which is the order of their timeouts.
    waiting: BTreeMap<CallNumber, ClientCall>,
    last: CallNumber,
    /// Calls that have not heard of the parent's last answer.
    unheard: VecDeque<CallNumber>,
    /// Request that the node is asked again.
    again: Option<(CallNumber, GetCapacity, Answers<ClientLease>)>,
}

#[derive(Debug)]
struct ClientCall {
    call: WaitingCall,
    request: GetCapacity,
    /// The decided part.
    reply: GetCapacityReply,
}

impl Calls {
    /// Keeps a call whose reply is not ready. Returns its number, or the reply if it is useless to wait.
    pub(crate) fn keep(
        &mut self,
        request: &GetCapacity,
        reply: GetCapacityReply,
        is_parent_down: bool,
        now: Time,
    ) -> Result<CallNumber, GetCapacityReply> {
        let mut call = WaitingCall::new(now);
        call.handle_decision(decision(&reply, is_parent_down), now);
        if !call.is_waiting() {
            return Err(reply);
        }
        self.last.0 += 1;
        let call = ClientCall {
            call,
            request: request.clone(),
            reply,
        };
        // The parent may have answered between the decisions about several resources.
        if request.asks.len() > 1 {
            self.unheard.push_back(self.last);
        }
        self.waiting.insert(self.last, call);
        Ok(self.last)
    }

    /// Forgets all calls. Their numbers do not come again.
    pub(crate) fn forget_all(&mut self) {
        *self = Self {
            last: self.last,
            ..Self::default()
        };
    }

    /// Forgets a call whose client has left.
    pub(crate) fn forget(&mut self, number: CallNumber) {
        self.waiting.remove(&number);
    }

    /// Notes an answer of the parent.
    pub(crate) fn handle_parent_answered(&mut self) {
        self.unheard = self.waiting.keys().copied().collect();
    }

    /// Returns when the first call is answered, whatever is decided.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.waiting.values().find_map(|it| it.call.poll_timeout())
    }

    /// Does the next step of the work that is due. Ready: nothing is due.
    pub(crate) fn advance(
        &mut self,
        node: &mut Node,
        is_parent_down: bool,
        outputs: &mut VecDeque<Output>,
        now: Time,
    ) -> Poll<()> {
        if let Some((number, request, answers)) = &mut self.again {
            let number = *number;
            if let Poll::Ready(outcome) = node.answer_client_next(request, answers, now) {
                self.again = None;
                self.handle_decided(number, outcome, is_parent_down, outputs, now);
            }
            return Poll::Pending;
        }
        if let Some(number) = self.unheard.pop_front() {
            if let Some(waiting) = self.waiting.get_mut(&number) {
                waiting.call.handle_parent_answered(now);
                self.act(number, outputs);
            }
            return Poll::Pending;
        }
        let mut all = self.waiting.iter_mut();
        let Some((number, waiting)) = all.find(|(_, it)| it.call.is_waiting()) else {
            return Poll::Ready(());
        };
        if waiting.call.poll_timeout().is_none_or(|at| now < at) {
            return Poll::Ready(());
        }
        waiting.call.handle_timeout(now);
        let number = *number;
        self.act(number, outputs);
        Poll::Pending
    }

    fn handle_decided(
        &mut self,
        number: CallNumber,
        outcome: Outcome<GetCapacityReply>,
        is_parent_down: bool,
        outputs: &mut VecDeque<Output>,
        now: Time,
    ) {
        // The client may have left.
        let Some(waiting) = self.waiting.get_mut(&number) else {
            return;
        };
        match outcome {
            Outcome::Served(more) => {
                waiting.reply.add(more);
                let decision = decision(&waiting.reply, is_parent_down);
                waiting.call.handle_decision(decision, now);
                self.act(number, outputs);
            }
            not_master @ Outcome::NotMaster(_) => {
                self.waiting.remove(&number);
                outputs.push_back(Output::Call(number, not_master));
            }
        }
    }

    /// Performs the action of a call, if it has one.
    fn act(&mut self, number: CallNumber, outputs: &mut VecDeque<Output>) {
        let Some(waiting) = self.waiting.get_mut(&number) else {
            return;
        };
        match waiting.call.poll_action() {
            None => {}
            Some(CallAction::AskAgain { waited }) => {
                let again = waiting.request.again(&mut waiting.reply, waited);
                let answers = Answers::to_client(&again);
                self.again = Some((number, again, answers));
            }
            Some(CallAction::Answer) => {
                if let Some(answered) = self.waiting.remove(&number) {
                    let outcome = Outcome::Served(answered.reply);
                    outputs.push_back(Output::Call(number, outcome));
                }
            }
        }
    }
}

fn decision(reply: &GetCapacityReply, is_parent_down: bool) -> CallDecision {
    match reply.is_ready() {
        true => CallDecision::Complete,
        false => CallDecision::NotReady { is_parent_down },
    }
}
