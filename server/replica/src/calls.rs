//! Clients' calls that wait for the parent, or for a mark in etcd.
//!
//! A server below the root without a lease of a resource cannot grant anything of it yet, and a root grants nothing
//! above its mark. A client that is refused would ask again only at its next refresh. So the call waits, at most
//! [`WAIT_MAX`]. Whenever the parent answers, or etcd confirms marks, the node is asked again for what was not ready.
//! A call does not wait for an unreachable parent.

use std::collections::{BTreeMap, VecDeque};
use std::task::Poll;
use std::time::Duration;

use doorward_engine::messages::{ClientLease, GetCapacity, GetCapacityReply};
use doorward_engine::node::Node;
use doorward_engine::node::asking::Answers;
use doorward_engine::node::mastership::Outcome;
use doorward_engine::time::Time;

use crate::output::{CallNumber, Output};

/// Longest wait of a call.
const WAIT_MAX: Duration = Duration::from_secs(1);

/// The calls that wait.
#[derive(Debug, Default)]
pub(crate) struct Calls {
    /// In the order in which they came, which is the order of their timeouts.
    waiting: BTreeMap<CallNumber, WaitingCall>,
    last: CallNumber,
    /// Calls that have not heard of the last news.
    unheard: VecDeque<CallNumber>,
    /// Request that the node is asked again.
    again: Option<(CallNumber, GetCapacity, Answers<ClientLease>)>,
}

#[derive(Debug)]
struct WaitingCall {
    came_at: Time,
    request: GetCapacity,
    /// The decided part.
    reply: GetCapacityReply,
}

impl WaitingCall {
    fn until(&self) -> Time {
        self.came_at + WAIT_MAX
    }
}

impl Calls {
    /// Keeps a call whose reply is not ready. Returns its number.
    pub(crate) fn keep(
        &mut self,
        request: &GetCapacity,
        reply: GetCapacityReply,
        now: Time,
    ) -> CallNumber {
        self.last.0 += 1;
        let call = WaitingCall {
            came_at: now,
            request: request.clone(),
            reply,
        };
        // The parent may have answered between the decisions about several resources.
        if request.asks.len() > 1 {
            self.unheard.push_back(self.last);
        }
        self.waiting.insert(self.last, call);
        self.last
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

    /// Notes that the parent has answered, or that marks are in etcd.
    pub(crate) fn handle_news(&mut self) {
        self.unheard = self.waiting.keys().copied().collect();
    }

    /// Returns when the first call is answered, whatever is decided.
    pub(crate) fn poll_timeout(&self) -> Option<Time> {
        self.waiting.values().next().map(WaitingCall::until)
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
            if let Some(call) = self.waiting.get_mut(&number) {
                // The client reported its lease when the call came, so the lease lasts that much less by now.
                let waited = now.since(call.came_at);
                let again = call.request.again(&mut call.reply, waited);
                let answers = Answers::to_client(&again);
                self.again = Some((number, again, answers));
            }
            return Poll::Pending;
        }
        match self.waiting.first_entry() {
            Some(first) if first.get().until() <= now => {
                let (number, call) = first.remove_entry();
                outputs.push_back(Output::Call(number, Outcome::Served(call.reply)));
                Poll::Pending
            }
            _ => Poll::Ready(()),
        }
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
        let Some(mut call) = self.waiting.remove(&number) else {
            return;
        };
        let outcome = match outcome {
            Outcome::Served(more) => {
                call.reply.add(more);
                if !call.reply.is_ready() && !is_parent_down && now < call.until() {
                    self.waiting.insert(number, call);
                    return;
                }
                Outcome::Served(call.reply)
            }
            not_master @ Outcome::NotMaster(_) => not_master,
        };
        outputs.push_back(Output::Call(number, outcome));
    }
}
