//! The streams of child servers, behind a lock, on the real clock.
//!
//! The session decides which child has a stream, when changes go out, and when and why a stream ends
//! ([`doorward_session::child_streams`]). This module applies these decisions to the node and the streams.
//!
//! A child hears all decisions in their order. The requests of one child are answered one after the other. A push is
//! decided, and put on the streams, while no child is being answered. Calls of clients go first in between, so answers
//! and pushes await their turn. The lock over the streams is held only for moments, and no task awaits under it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use doorward_engine::id::{Caller, HolderName, Incarnation};
use doorward_engine::messages::Cycle;
use doorward_engine::node::children::Pushes;
use doorward_proto::doorman as wire;
use doorward_session::child_streams::{
    ChildStreams, Hello, StreamAction, StreamLimits, StreamState,
};
use doorward_session::close_reason::CloseReason;
use doorward_session::time::Time;
use tokio::sync::{Notify, RwLock};
use tokio::task;
use tokio_util::sync::CancellationToken;
use tonic::Status as RpcStatus;
use tracing::{info, warn};

use crate::clock;
use crate::limits::ServerLimit;
use crate::rpc::child_outbox::{ChildOutbox, NotSent, OutboxPlace, StreamEnding};
use crate::rpc::{closed, convert, cycle};
use crate::status::Board;

mod end_status;
#[cfg(test)]
mod tests;

/// Leases converted between two yields to other tasks. They take some hundred microseconds.
const CONVERTED_AT_ONCE: usize = 256;

/// The streams of child servers.
#[derive(Debug)]
pub struct StreamsHandle {
    board: Arc<Board>,
    /// Read lock: answers to children. Write lock: a push. Taken before `held`.
    turns: RwLock<()>,
    /// Locked before the node, by a task that locks both.
    held: Mutex<HeldStreams>,
    /// Signals that a push is due.
    push_due: Notify,
    /// Signals a new stream, whose first message has not come. Its deadline may be the earliest.
    connected: Notify,
}

#[derive(Debug)]
struct HeldStreams {
    streams: ChildStreams,
    lines: BTreeMap<u64, Line>,
}

/// One stream of a child.
#[derive(Debug)]
struct Line {
    answers: ChildOutbox,
    /// Cancelled when this side ends the stream.
    over: CancellationToken,
    /// Child that the stream belongs to, and the epoch of its mastership. Set by the first message.
    of: Option<(HolderName, Option<u64>)>,
}

impl StreamsHandle {
    /// Makes a handle without streams. Changes go out in rounds of length `round`.
    pub fn new(board: Arc<Board>, round: Duration) -> Self {
        let streams = ChildStreams::new(round);
        board.sessions().post_child_streams(streams.snapshot());
        let lines = BTreeMap::new();
        Self {
            turns: RwLock::new(()),
            held: Mutex::new(HeldStreams { streams, lines }),
            push_due: Notify::new(),
            connected: Notify::new(),
            board,
        }
    }

    /// Does all due work until the server stops: spawn it. All streams end with it, because without it no child would
    /// hear of changes.
    pub async fn run(self: Arc<Self>, stopping: CancellationToken) {
        let _ends_all = EndsAll(Arc::clone(&self));
        let node = Arc::clone(self.board.node());
        let clock = node.clock();
        loop {
            let (due, is_gathering) = {
                let held = self.lock();
                (held.streams.poll_timeout(), held.streams.is_gathering())
            };
            tokio::select! {
                () = stopping.cancelled() => return,
                () = clock.sleep_until_due(due) => {
                    self.change(ChildStreams::handle_timeout);
                }
                // Within a round, changes need not wake this task.
                () = node.unsettled(), if !is_gathering => self.change(ChildStreams::handle_change),
                () = self.push_due.notified() => self.push().await,
                () = self.connected.notified() => {}
            }
        }
    }

    /// Ends the streams of child servers that turn out to be ancestors, with that reason: a child that has nothing to
    /// ask would not learn of it. Runs forever: spawn it.
    pub async fn end_cycles(self: Arc<Self>) {
        let node = self.board.node();
        let mut answers = node.answers();
        let mut known = Vec::new();
        while answers.changed().await.is_ok() {
            let ancestors = node.read(|node, _| node.ancestors().to_vec());
            if ancestors != known {
                self.change(|streams, _| {
                    streams.handle_ancestors(ancestors.iter().map(String::as_str));
                });
                known = ancestors;
            }
        }
    }

    /// Notes that mastership number `begun` has begun. Ends the streams of earlier ones, and names the master if it is
    /// known.
    pub fn end_older(&self, begun: u64) {
        self.change(|streams, _| streams.handle_mastership(begun));
    }

    /// Adds a new stream of a child. `answers` is its queue.
    pub(super) fn connect(self: &Arc<Self>, answers: ChildOutbox) -> Connected {
        let over = CancellationToken::new();
        let line = Line {
            answers: answers.clone(),
            over: over.clone(),
            of: None,
        };
        let mut held = self.lock();
        let number = held.streams.handle_connected(self.now());
        held.lines.insert(number, line);
        self.settle(&mut held);
        self.connected.notify_one();
        Connected {
            streams: Arc::clone(self),
            number,
            answers,
            over,
            known: None,
        }
    }

    fn change(&self, change: impl FnOnce(&mut ChildStreams, Time)) {
        let mut held = self.lock();
        change(&mut held.streams, self.now());
        self.settle(&mut held);
    }

    /// Does the due actions, and publishes the state of the streams.
    fn settle(&self, held: &mut HeldStreams) {
        self.drain(held);
        self.post(held);
    }

    /// Does the due actions. Returns whether there were any.
    fn drain(&self, held: &mut HeldStreams) -> bool {
        let mut has_acted = false;
        while let Some(action) = held.streams.poll_action() {
            has_acted = true;
            match action {
                StreamAction::Subscribe(child) => self.subscribe(&child, true),
                StreamAction::Unsubscribe(child) => self.subscribe(&child, false),
                StreamAction::Push => self.push_due.notify_one(),
                StreamAction::Close { number, closing } => self.close(held, number, closing),
            }
        }
        has_acted
    }

    fn post(&self, held: &HeldStreams) {
        let snapshot = held.streams.snapshot();
        let is_open = |it: &&(StreamState, usize)| it.0 == StreamState::Open;
        let open = snapshot.streams.iter().find(is_open).map_or(0, |it| it.1);
        let open = u64::try_from(open).unwrap_or(u64::MAX);
        self.board
            .limits()
            .set_used(ServerLimit::ChildServers, open);
        self.board.sessions().post_child_streams(snapshot);
    }

    fn subscribe(&self, child: &str, open: bool) {
        // The name was valid when its first message was read.
        let Ok(child) = HolderName::new(child) else {
            return;
        };
        let node = self.board.node();
        node.change(|node, _| node.handle_subscription(&child, open));
    }

    /// Pushes changes to child servers.
    async fn push(&self) {
        let _alone = self.turns.write().await;
        let wall = clock::wall();
        let mut pushes = Pushes::default();
        let node = self.board.node();
        let replies = node.finish(|node, now| node.push_next(&mut pushes, now));
        let mut converted = 0;
        for (child, reply) in replies.await {
            converted += reply.leases.len();
            let response =
                convert::server_capacity::get_server_capacity_response(reply, Vec::new(), wall);
            self.push_to(&child, response);
            // A yield after each child would be too often: on a busy server this task then runs after all other tasks,
            // and no child is answered meanwhile.
            if converted >= CONVERTED_AT_ONCE {
                converted = 0;
                task::yield_now().await;
            }
        }
        self.settle(&mut self.lock());
    }

    fn push_to(&self, child: &HolderName, response: wire::GetServerCapacityResponse) {
        let mut held = self.lock();
        let number = held.streams.stream_of(child.as_str());
        let line = number.and_then(|number| Some((number, held.lines.get(&number)?)));
        let Some((number, line)) = line else {
            return;
        };
        // The task of a closed stream notices the end by itself.
        if line.answers.try_send(response) == Err(NotSent::Full) {
            warn!(%child, "the child takes nothing from its stream, which is closed");
            held.streams.handle_full(number);
        }
    }

    /// Ends a stream from this side, and sends its child the reason.
    fn close(&self, held: &mut HeldStreams, number: u64, closing: CloseReason) {
        let Some(line) = held.lines.remove(&number) else {
            return;
        };
        let of = line
            .of
            .as_ref()
            .map(|(child, epoch)| (child.as_str(), *epoch));
        let status = end_status::end_status(&self.board, &held.streams, of, closing);
        let is_first = line.answers.end(Err(closed::with_reason(closing, status)));
        if closing == CloseReason::NotMaster && is_first {
            // The child did not ask. A child that asks learns the master from its answer.
            let node = self.board.node();
            let mastership = node.read(|node, now| node.mastership(now).clone());
            let _full_or_gone = line.answers.try_send(wire::GetServerCapacityResponse {
                mastership: Some(convert::redirection(&mastership)),
                ..wire::GetServerCapacityResponse::default()
            });
        }
        line.over.cancel();
    }

    fn now(&self) -> Time {
        self.board.node().clock().session_now()
    }

    fn lock(&self) -> MutexGuard<'_, HeldStreams> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends all streams when dropped, and accepts no more.
struct EndsAll(Arc<StreamsHandle>);

impl Drop for EndsAll {
    fn drop(&mut self) {
        self.0.change(|streams, _| streams.handle_stopping());
    }
}

/// The stream of a child, for the task that serves it. The stream ends when this is dropped.
pub(super) struct Connected {
    streams: Arc<StreamsHandle>,
    number: u64,
    answers: ChildOutbox,
    over: CancellationToken,
    /// Child that opened the stream, once it is known.
    known: Option<HolderName>,
}

impl Connected {
    /// Waits until this side ends the stream. Cancel safe.
    pub(super) async fn over(&self) {
        self.over.cancelled().await;
    }

    /// Handles the first message. It opens the stream for a child, or ends it. It takes no turn: with many children, a
    /// turn may take longer than the time limit for a first message.
    pub(super) fn greet(
        &mut self,
        child: &HolderName,
        first: &wire::GetServerCapacityRequest,
        caller: Option<Caller>,
    ) {
        let (node, limits) = (self.streams.board.node(), self.streams.board.limits());
        let incarnation = first.incarnation.and_then(Incarnation::new);
        let mut held = self.streams.lock();
        if let Some(line) = held.lines.get_mut(&self.number) {
            line.of = Some((child.clone(), first.epoch));
        }
        let hello = Hello {
            child: child.as_str().into(),
            epoch: first.epoch,
            incarnation: incarnation.map(Incarnation::get),
            caller: caller.map(Caller::get),
            is_refused: node.read(|node, now| node.is_refused(child, incarnation, now)),
            mastership: node.masterships_count(),
            limits: StreamLimits {
                children_max: limits.max(ServerLimit::ChildServers),
                children_of_caller_max: limits.max(ServerLimit::ChildServersPerAddress),
            },
        };
        held.streams.handle_hello(self.number, hello);
        let is_open = held.streams.state(self.number) == Some(StreamState::Open);
        self.streams.settle(&mut held);
        if is_open {
            info!(%child, "a child server opened its stream");
            self.known = Some(child.clone());
        }
    }

    /// Waits for a place for an answer. None: the child has left, or takes nothing. Cancel safe.
    pub(super) async fn place(&self) -> Option<OutboxPlace<'_>> {
        match self.answers.reserve().await {
            Ok(place) => Some(place),
            Err(NotSent::Closed) => None,
            Err(NotSent::Full) => {
                let number = self.number;
                self.streams
                    .change(|streams, _| streams.handle_full(number));
                None
            }
        }
    }

    /// Decides about a child's request and answers it, unless the stream no longer belongs to the child.
    pub(super) async fn answer(
        &self,
        child: &str,
        place: OutboxPlace<'_>,
        decide: impl Future<Output = Result<wire::GetServerCapacityResponse, Cycle>>,
    ) {
        let _unpushed = self.streams.turns.read().await;
        let is_its = |held: &mut HeldStreams| held.streams.handle_message(self.number, child);
        {
            let mut held = self.streams.lock();
            if !is_its(&mut held) {
                self.streams.settle(&mut held);
                return;
            }
        }
        let decided = decide.await;
        let mut held = self.streams.lock();
        let mut is_refused = false;
        // The stream may have ended meanwhile. Then the answer is dropped.
        if is_its(&mut held) {
            match decided {
                Ok(answer) => {
                    is_refused = answer.mastership.is_some();
                    place.send(answer);
                    if is_refused {
                        self.answers.end(Ok(()));
                        held.streams
                            .handle_refused(self.number, CloseReason::NotMaster);
                    }
                }
                Err(cycle) => {
                    is_refused = true;
                    self.answers.end(Err(cycle::refusal(&cycle)));
                    held.streams.handle_refused(self.number, CloseReason::Cycle);
                }
            }
        }
        // Most messages do not change the state of the streams.
        if self.streams.drain(&mut held) || is_refused {
            self.streams.post(&held);
        }
    }

    /// Ends the stream, because a message is invalid as a whole.
    pub(super) fn refuse(&self, status: RpcStatus) {
        self.answers
            .end(Err(closed::with_reason(CloseReason::Malformed, status)));
        let number = self.number;
        self.streams
            .change(|streams, _| streams.handle_refused(number, CloseReason::Malformed));
    }

    /// Notes that the stream broke. A child that still listens gets `status`.
    pub(super) fn note_broken(&self, status: RpcStatus) {
        self.answers.end(Err(status));
    }

    /// Returns why the stream ended, as a text for people. None: the child ended it.
    fn why(&self) -> Option<String> {
        let ending: Option<&StreamEnding> = self.answers.ending();
        let status = ending?.as_ref().err()?;
        Some(format!("{:?}: {}", status.code(), status.message()))
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        let mut held = self.streams.lock();
        held.lines.remove(&self.number);
        held.streams.handle_gone(self.number);
        self.streams.settle(&mut held);
        drop(held);
        if let Some(child) = &self.known {
            info!(%child, why = self.why(), "the stream of a child server ended");
        }
    }
}
