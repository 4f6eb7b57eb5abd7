//! The parent's side of the streams from its child servers: which child has one, when changes are pushed, and
//! when and why a stream is closed.
//!
//! A child's node has one stream. A newer stream replaces the open one, with two exceptions. First, a stream of an
//! older mastership of that node (a lower epoch) is refused; without an epoch nothing is compared. Second, a stream of
//! a later live process is refused. The node detects one kind of second process. This module detects the other kind: if
//! a process returns after its stream was replaced, both processes live, and the one that returned was first. Without
//! this rule, the two would replace each other's streams forever, with longer and longer gaps.
//!
//! Changes for children are gathered in *rounds*: the first change begins a round, and at its end all changes are
//! pushed. A child that does not read is disconnected: it opens a new stream, or polls.
//!
//! Numbers identify streams, and the names of their nodes identify children. The driver owns the streams, and closes
//! them on request. It answers the requests of a child one after the other. It decides and sends a push while it is not
//! answering the child. So a child receives decisions in the order in which they were made.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use smol_str::SmolStr;

use crate::close_reason::CloseReason;
use crate::time::Time;

mod stream_actions;
#[cfg(test)]
mod tests;

pub use stream_actions::{Hello, StreamAction, StreamLimits, StreamState, StreamsSnapshot};

/// Longest time until the first message of a stream.
pub const FIRST_MESSAGE_WITHIN: Duration = Duration::from_secs(10);

/// The open stream of a child.
#[derive(Clone, Debug)]
struct OpenStream {
    hello: Hello,
    order: ProcessOrder,
}

/// Order of the processes of a child's node, as far as replaced streams show it.
#[derive(Clone, Copy, Debug, Default)]
struct ProcessOrder {
    /// Process whose stream this one replaced.
    replaced: Option<u64>,
    /// Process that had replaced this one, before this one came back. Both live, and that process is the later.
    later: Option<u64>,
}

impl OpenStream {
    /// Returns the order after a stream of that process replaces this one.
    fn order_after(&self, process: Option<u64>) -> ProcessOrder {
        if process == self.hello.incarnation {
            return self.order;
        }
        let has_returned = process.is_some() && process == self.order.replaced;
        ProcessOrder {
            replaced: self.hello.incarnation.filter(|_| !has_returned),
            later: self.hello.incarnation.filter(|_| has_returned),
        }
    }
}

/// The streams of a server's children.
#[derive(Clone, Debug, Default)]
pub struct ChildStreams {
    /// Length of a round.
    round_length: Duration,
    /// Number of the newest stream. Numbers grow.
    connected: u64,
    /// Streams without a first message yet, and its latest time. All may wait equally long, so the first is due first.
    opening: BTreeMap<u64, Time>,
    open: BTreeMap<u64, OpenStream>,
    /// Open stream of each child.
    by_child: BTreeMap<SmolStr, u64>,
    /// End of the open round. None: no change since the last round.
    round_until: Option<Time>,
    is_stopping: bool,
    closed: [u64; CloseReason::ALL.len()],
    actions: VecDeque<StreamAction>,
}

impl ChildStreams {
    /// Returns a state without streams. Changes are gathered for `round_length` before they are pushed.
    pub fn new(round_length: Duration) -> Self {
        Self {
            round_length,
            ..Self::default()
        }
    }

    /// Returns the state of a stream. None: it is closed, or never existed.
    pub fn state(&self, number: u64) -> Option<StreamState> {
        if self.opening.contains_key(&number) {
            Some(StreamState::Opening)
        } else {
            self.open.get(&number).map(|_| StreamState::Open)
        }
    }

    /// Returns the number of a child's stream.
    pub fn stream_of(&self, child: &str) -> Option<u64> {
        self.by_child.get(child).copied()
    }

    /// Returns the epoch that a child sent when it opened its stream.
    pub fn epoch_of(&self, child: &str) -> Option<u64> {
        self.open_of(child)?.hello.epoch
    }

    /// Whether a round is open. Then a change begins no other.
    pub const fn is_gathering(&self) -> bool {
        self.round_until.is_some()
    }

    /// Returns the numbers for status pages. It reads counters, and never scans.
    pub fn snapshot(&self) -> StreamsSnapshot {
        StreamsSnapshot {
            streams: vec![
                (StreamState::Opening, self.opening.len()),
                (StreamState::Open, self.by_child.len()),
            ],
            closed: CloseReason::ALL.into_iter().zip(self.closed).collect(),
        }
    }

    fn open_of(&self, child: &str) -> Option<&OpenStream> {
        self.open.get(self.by_child.get(child)?)
    }

    // Events.

    /// Notes a new stream. Returns its number. Its first message says which child it belongs to.
    pub fn handle_connected(&mut self, now: Time) -> u64 {
        self.connected += 1;
        let number = self.connected;
        if self.is_stopping {
            self.close(number, CloseReason::Stopping);
            return number;
        }
        self.opening.insert(number, now + FIRST_MESSAGE_WITHIN);
        number
    }

    /// Handles the first message of a stream. The stream becomes that of its child, or is refused.
    pub fn handle_hello(&mut self, number: u64, hello: Hello) {
        if self.state(number) != Some(StreamState::Opening) {
            return;
        }
        let before = self.open_of(&hello.child);
        let refusal = match before {
            None => self.exceeded_limit(hello.limits, hello.caller),
            Some(before) if before.hello.incarnation != hello.incarnation && hello.is_refused => {
                Some(CloseReason::AnotherProcess)
            }
            Some(before) if is_older(hello.epoch, before.hello.epoch) => {
                Some(CloseReason::OlderMaster)
            }
            Some(before) if is_later(&hello, before) => Some(CloseReason::AnotherProcess),
            Some(_) => None,
        };
        let order = before.map(|before| before.order_after(hello.incarnation));
        if let Some(closing) = refusal {
            self.close_of(number, closing, Some(hello.child));
            return;
        }
        if let Some(before) = self.stream_of(&hello.child) {
            self.close(before, CloseReason::Replaced);
        }
        let child = hello.child.clone();
        self.opening.remove(&number);
        let order = order.unwrap_or_default();
        self.open.insert(number, OpenStream { hello, order });
        self.by_child.insert(child.clone(), number);
        self.actions.push_back(StreamAction::Subscribe(child));
        self.check();
    }

    /// Handles a message from that child on a stream, the first one included. Returns whether to answer it: yes if the
    /// stream belongs to this child. If other events come before the answer, the driver asks again.
    pub fn handle_message(&mut self, number: u64, child: &str) -> bool {
        let is_of_child = self.stream_of(child) == Some(number);
        if !is_of_child {
            self.handle_refused(number, CloseReason::OtherChild);
        }
        is_of_child
    }

    /// Handles a full stream: its child does not read.
    pub fn handle_full(&mut self, number: u64) {
        self.handle_refused(number, CloseReason::Full);
    }

    /// Handles a message that was refused as a whole, or answered with the master's address: the stream is closed.
    pub fn handle_refused(&mut self, number: u64, closing: CloseReason) {
        if self.state(number).is_some() {
            self.close(number, closing);
        }
    }

    /// Notes that the child closed a stream, or that it broke.
    pub fn handle_gone(&mut self, number: u64) {
        self.forget(number, true);
    }

    /// Notes a possible change for children with a stream.
    pub fn handle_change(&mut self, now: Time) {
        self.round_until.get_or_insert(now + self.round_length);
    }

    /// Notes that a mastership of the parent's node has begun: streams of earlier masterships are closed.
    pub fn handle_mastership(&mut self, begun: u64) {
        let is_older = |number: &u64| {
            let open = self.open.get(number);
            open.is_some_and(|open| open.hello.mastership < begun)
        };
        let older: Vec<u64> = self.by_child.values().copied().filter(is_older).collect();
        for number in older {
            self.close(number, CloseReason::NotMaster);
        }
    }

    /// Notes the ancestors of the parent's node. A child among them would be its own ancestor.
    pub fn handle_ancestors<'a>(&mut self, ancestors: impl IntoIterator<Item = &'a str>) {
        for ancestor in ancestors {
            if let Some(number) = self.stream_of(ancestor) {
                self.close(number, CloseReason::Cycle);
            }
        }
    }

    /// Shuts down: all streams are closed, and new ones refused.
    pub fn handle_stopping(&mut self) {
        self.is_stopping = true;
        let all = self.open.keys().chain(self.opening.keys());
        for number in all.copied().collect::<Vec<_>>() {
            self.close(number, CloseReason::Stopping);
        }
    }

    /// Handles rounds and timeouts that are due.
    pub fn handle_timeout(&mut self, now: Time) {
        while let Some((&number, &until)) = self.opening.first_key_value()
            && until <= now
        {
            self.close(number, CloseReason::Late);
        }
        if self.round_until.take_if(|until| *until <= now).is_some() {
            self.actions.push_back(StreamAction::Push);
        }
    }

    // Actions and timeouts.

    /// Returns the next action.
    pub fn poll_action(&mut self) -> Option<StreamAction> {
        self.actions.pop_front()
    }

    /// Returns the latest time to call [`ChildStreams::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Time> {
        let first_message_due = self.opening.values().next().copied();
        self.round_until.into_iter().chain(first_message_due).min()
    }

    /// Returns the limit that one more child would exceed. Children with an idle stream count, too.
    fn exceeded_limit(&self, limits: StreamLimits, caller: Option<u128>) -> Option<CloseReason> {
        let is_full = |max: Option<usize>, used: usize| max.is_some_and(|max| used >= max);
        if is_full(limits.children_max, self.by_child.len()) {
            return Some(CloseReason::TooMany);
        }
        let from_there = |open: &&OpenStream| open.hello.caller == caller;
        let of_caller = || self.open.values().filter(from_there).count();
        let is_bounded = caller.is_some() && limits.children_of_caller_max.is_some();
        (is_bounded && is_full(limits.children_of_caller_max, of_caller()))
            .then_some(CloseReason::TooManyOfAddress)
    }

    /// Closes a stream.
    fn close(&mut self, number: u64, closing: CloseReason) {
        let child = self.open.get(&number).map(|open| open.hello.child.clone());
        self.close_of(number, closing, child);
    }

    fn close_of(&mut self, number: u64, closing: CloseReason, child: Option<SmolStr>) {
        // A replaced child has another stream at once, so the node keeps pushing to it.
        self.forget(number, closing != CloseReason::Replaced);
        if let Some(count) = self.closed.get_mut(closing as usize) {
            *count += 1;
        }
        self.actions.push_back(StreamAction::Close {
            number,
            closing,
            child,
        });
    }

    fn forget(&mut self, number: u64, unsubscribes: bool) {
        self.opening.remove(&number);
        if let Some(open) = self.open.remove(&number) {
            self.by_child.remove(&open.hello.child);
            if unsubscribes {
                self.actions
                    .push_back(StreamAction::Unsubscribe(open.hello.child));
            }
        }
        self.check();
    }

    /// Asserts that each open stream is its child's only one.
    fn check(&self) {
        debug_assert_eq!(self.open.len(), self.by_child.len());
        let mut children = self.by_child.keys();
        debug_assert!(children.all(|child| self.open_of(child).is_some()));
    }
}

/// Whether the first message comes from a live process that is later than the one with the stream, in the same
/// mastership.
fn is_later(hello: &Hello, open: &OpenStream) -> bool {
    let is_known = hello.incarnation.is_some() && hello.incarnation == open.order.later;
    is_known && hello.epoch == open.hello.epoch
}

/// Whether a mastership is older than the known one. An absent epoch is neither older nor newer.
fn is_older(epoch: Option<u64>, known: Option<u64>) -> bool {
    matches!((epoch, known), (Some(epoch), Some(known)) if epoch < known)
}
