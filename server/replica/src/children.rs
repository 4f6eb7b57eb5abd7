//! The streams of child servers: what the session says about them ([`doorward_session::child_streams`]), applied to the
//! node, and the answers and pushes of the node.
//!
//! Requests and pushes are handled one after the other, in the order in which they came. So a child gets all decisions
//! about it in the order in which they were made.

use std::collections::{BTreeSet, VecDeque};
use std::task::Poll;
use std::time::Duration;

use doorward_engine::id::{Caller, HolderName, Incarnation};
use doorward_engine::messages::{
    Cycle, GetServerCapacity, GetServerCapacityReply, ServerLease, Via,
};
use doorward_engine::node::Node;
use doorward_engine::node::asking::Answers;
use doorward_engine::node::children::{Pushed, Pushes};
use doorward_engine::node::mastership::Outcome;
use doorward_engine::time::Time;
use doorward_session::child_streams::{
    ChildStreams, Hello, StreamAction, StreamLimits, StreamState,
};
use doorward_session::close_reason::CloseReason;

use crate::output::{Output, StreamEnd, ToChild};

/// A message on the stream of a child server.
#[derive(Clone, Debug)]
pub enum ChildMessage {
    /// A request. It is answered, or the stream ends.
    Request(GetServerCapacity),
    /// A message that is invalid as a whole: the stream ends.
    Malformed,
}

/// The streams, and the work for them.
#[derive(Debug, Default)]
pub(crate) struct Children {
    name: String,
    limits: StreamLimits,
    pub(crate) streams: ChildStreams,
    work: VecDeque<Work>,
    /// Streams with a request among the work.
    answering: BTreeSet<u64>,
    /// Whether a push is among the work.
    is_pushing: bool,
    /// Wall clock when the first work began.
    began: Option<Duration>,
}

#[derive(Debug)]
enum Work {
    Answer(Box<StreamRequest>),
    Push(Pushes),
}

/// A request on a stream, with the answers so far.
#[derive(Debug)]
struct StreamRequest {
    number: u64,
    request: GetServerCapacity,
    answers: Answers<ServerLease>,
}

impl Children {
    /// Returns the state without streams, for the node of that name.
    pub(crate) fn new(name: String, streams: ChildStreams, limits: StreamLimits) -> Self {
        Self {
            name,
            limits,
            streams,
            ..Self::default()
        }
    }

    /// Handles a message on a stream.
    pub(crate) fn handle_message(
        &mut self,
        number: u64,
        message: ChildMessage,
        node: &Node,
        mastership: u64,
        now: Time,
    ) {
        let ChildMessage::Request(request) = message else {
            return self.streams.handle_refused(number, CloseReason::Malformed);
        };
        let child = request.server.as_str();
        if self.streams.state(number) == Some(StreamState::Opening) {
            let hello = Hello {
                child: child.into(),
                epoch: request.epoch,
                incarnation: request.incarnation.map(Incarnation::get),
                caller: request.caller.map(Caller::get),
                is_refused: node.is_refused(&request.server, request.incarnation, now),
                mastership,
                limits: self.limits,
            };
            self.streams.handle_hello(number, hello);
        }
        // A closed stream gets no answer.
        if self.streams.state(number).is_some() && self.streams.handle_message(number, child) {
            let answers = Answers::to_child(&request);
            self.answering.insert(number);
            self.work.push_back(Work::Answer(Box::new(StreamRequest {
                number,
                request,
                answers,
            })));
        }
    }

    /// Forgets the work for a former node. Its streams end.
    pub(crate) fn forget_work(&mut self) {
        self.work.clear();
        self.answering.clear();
        self.is_pushing = false;
        self.began = None;
    }

    /// Whether a message on a stream is not answered yet.
    pub(crate) fn is_answering(&self, stream: u64) -> bool {
        self.answering.contains(&stream)
    }

    /// Notes that something of the node has changed.
    pub(crate) fn handle_change(&mut self, node: &Node, now: Time) {
        // Within a round nothing is to be noted, and a push looks for more itself.
        if node.has_pushes() && !self.streams.is_gathering() && !self.is_pushing {
            self.streams.handle_change(now);
        }
    }

    /// Does the next step of the work that is due. Ready: nothing is due.
    pub(crate) fn advance(
        &mut self,
        node: &mut Node,
        outputs: &mut VecDeque<Output>,
        now: Time,
        wall: Duration,
    ) -> Poll<()> {
        if self.streams.poll_timeout().is_some_and(|at| at <= now) {
            self.streams.handle_timeout(now);
        }
        while let Some(action) = self.streams.poll_action() {
            self.act(action, node, outputs, now);
        }
        // By the wall clock before the decision, leases end no later.
        let wall = *self.began.get_or_insert(wall);
        match self.work.front_mut() {
            None => {
                self.began = None;
                return Poll::Ready(());
            }
            Some(Work::Answer(asked)) => {
                let StreamRequest {
                    number,
                    request,
                    answers,
                } = &mut **asked;
                let decided = node.answer_child_next(request, Via::Stream, answers, now);
                if let Poll::Ready(decided) = decided {
                    let (number, child) = (*number, request.server.clone());
                    self.finish_first();
                    self.answering.remove(&number);
                    self.answer(number, &child, decided, wall, outputs);
                }
            }
            Some(Work::Push(pushes)) => {
                if let Poll::Ready(pushed) = node.push_next(pushes, now) {
                    self.finish_first();
                    self.is_pushing = false;
                    self.push(pushed, wall, outputs);
                    match node.is_in_round() {
                        true => self.act(StreamAction::Push, node, outputs, now),
                        false => self.handle_change(node, now),
                    }
                }
            }
        }
        Poll::Pending
    }

    fn finish_first(&mut self) {
        self.work.pop_front();
        self.began = None;
    }

    /// Answers a request, if its stream still is that of the child.
    fn answer(
        &mut self,
        number: u64,
        child: &HolderName,
        decided: Result<Outcome<GetServerCapacityReply>, Cycle>,
        wall: Duration,
        outputs: &mut VecDeque<Output>,
    ) {
        if self.streams.stream_of(child.as_str()) != Some(number) {
            return;
        }
        match decided {
            Ok(Outcome::Served(reply)) => {
                outputs.push_back(Output::Child(number, ToChild::Answer { reply, wall }));
            }
            // The end of the stream says so.
            Ok(Outcome::NotMaster(_)) => {
                self.streams.handle_refused(number, CloseReason::NotMaster);
            }
            Err(_) => self.streams.handle_refused(number, CloseReason::Cycle),
        }
    }

    fn push(&self, pushed: Pushed, wall: Duration, outputs: &mut VecDeque<Output>) {
        for (child, reply) in pushed.children {
            if let Some(number) = self.streams.stream_of(child.as_str()) {
                outputs.push_back(Output::Child(number, ToChild::Push { reply, wall }));
            }
        }
        let clients = pushed.clients.into_iter();
        outputs.extend(clients.map(|(client, reply)| Output::Client(client, reply)));
    }

    /// Performs an action of the session.
    fn act(
        &mut self,
        action: StreamAction,
        node: &mut Node,
        outputs: &mut VecDeque<Output>,
        now: Time,
    ) {
        match action {
            StreamAction::Subscribe(child) => subscribe(node, &child, true, now),
            StreamAction::Unsubscribe(child) => subscribe(node, &child, false, now),
            StreamAction::Push => {
                self.is_pushing = true;
                self.work.push_back(Work::Push(Pushes::default()));
            }
            StreamAction::Close {
                number,
                closing,
                child,
            } => {
                let end = self.end(closing, child.as_deref().unwrap_or_default(), node, now);
                outputs.push_back(Output::Child(number, ToChild::End(end)));
            }
        }
    }

    /// Returns what a child is told about the end of its stream.
    fn end(&self, closing: CloseReason, child: &str, node: &Node, now: Time) -> StreamEnd {
        match closing {
            CloseReason::NotMaster => StreamEnd::NotMaster(node.mastership(now).clone()),
            CloseReason::Cycle => StreamEnd::Cycle(self.cycle_of(child, node)),
            CloseReason::OlderMaster => StreamEnd::OlderMaster {
                newer: self.streams.epoch_of(child).unwrap_or_default(),
            },
            other => StreamEnd::Other(other),
        }
    }

    /// Returns the nodes from this one up to a child that is its ancestor.
    fn cycle_of(&self, child: &str, node: &Node) -> Cycle {
        let ancestors = node.ancestors();
        let above = ancestors.iter().position(|ancestor| ancestor == child);
        let count = above.map_or(0, |position| position + 1);
        let above = ancestors.iter().take(count);
        Cycle {
            child: child.to_owned(),
            node: self.name.clone(),
            path: std::iter::once(&self.name).chain(above).cloned().collect(),
        }
    }
}

fn subscribe(node: &mut Node, child: &str, open: bool, now: Time) {
    // The name was valid when its first message was read.
    if let Ok(child) = HolderName::new(child) {
        node.handle_subscription(&child, open, now);
    }
}
