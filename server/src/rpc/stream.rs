//! A parent's side of the streams from its child servers: `doorward.v1.CapacityStream`.
//!
//! A child's messages are answered one by one. What changes for it otherwise is gathered in rounds
//! by [`Pushes::run`] and sent on the same stream. A child has one stream; a newer one replaces it.
//! A stream whose child does not take what it is sent is closed: the child opens a new one, or
//! polls.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use doorward_engine::id::{Caller, HolderName, Incarnation};
use doorward_engine::node::Node;
use doorward_engine::node::children::Cycle;
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::request::server::{GetServerCapacity, Via};
use doorward_engine::time::Time;
use doorward_proto::doorman as wire;
use doorward_proto::doorward::v1::capacity_stream_server::CapacityStream;
use tokio_stream::Stream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status as RpcStatus, Streaming};
use tracing::{info, warn};

use crate::clock;
use crate::limits::Limit;
use crate::metrics::Metrics;
use crate::node_handle::NodeHandle;
use crate::rpc::answers::{self, Answers, NotSent, Place};
use crate::rpc::{caller, convert, cycle, meter, overload};
use crate::status::Board;

pub use crate::rpc::closed::REPLACED;

/// How long the first message of a stream may take.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);

/// The streams that are open, by the name of the child's node.
#[derive(Debug, Default)]
pub struct Pushes {
    /// Locked before the node, where both are: what a child is sent is decided and put on its stream
    /// under this lock, so that it arrives in the order in which it was decided.
    streams: Mutex<Streams>,
    /// Cancelled when nobody pushes any more, which ends all streams.
    over: CancellationToken,
}

#[derive(Debug, Default)]
struct Streams {
    /// Numbers streams, to tell a child's newest from those before.
    opened: u64,
    by_child: BTreeMap<HolderName, ChildStream>,
}

#[derive(Debug)]
struct ChildStream {
    number: u64,
    /// Of the mastership by which the child's server speaks for its node.
    epoch: Option<u64>,
    /// Where it comes from.
    caller: Option<Caller>,
    /// Which process of the child's node it is.
    incarnation: Option<Incarnation>,
    /// The how manieth mastership of this node it was opened in.
    opened_in: u64,
    answers: Answers,
    /// Cancelled when another stream takes its place, or the child takes nothing from this one.
    over: CancellationToken,
}

impl Streams {
    /// Whether another child server may have a stream. Those that have one and ask for nothing count, too.
    fn check_room(&self, caller: Option<Caller>, board: &Board) -> Result<(), RpcStatus> {
        let of_caller = || {
            let streams = self.by_child.values();
            streams.filter(|stream| stream.caller == caller).count()
        };
        let limits = board.limits();
        let is_full = |limit, streams| limits.max(limit).is_some_and(|max| streams >= max);
        let limit = if is_full(Limit::ChildServers, self.by_child.len()) {
            Limit::ChildServers
        } else if caller.is_some() && is_full(Limit::ChildServersPerAddress, of_caller()) {
            Limit::ChildServersPerAddress
        } else {
            return Ok(());
        };
        let now = board.node().clock().now().since(Time::ZERO);
        let number = limits.refuse(limit, now);
        Err(overload::exhausted(limit, number))
    }
}

impl Pushes {
    /// Tells child servers what changes for them, in rounds. Runs for ever: spawn it.
    pub async fn run(self: Arc<Self>, node: Arc<NodeHandle>, round: Duration) {
        // A server that is dropped stops this task. Streams would outlive it, with nobody to push.
        let _over = self.over.clone().drop_guard();
        loop {
            node.unsettled().await;
            tokio::time::sleep(round).await;
            self.push(&node);
        }
    }

    fn push(&self, node: &NodeHandle) {
        let mut streams = self.streams();
        let replies = node.change(Node::poll_pushes);
        for (child, reply) in replies {
            let Some(stream) = streams.by_child.get(&child) else {
                continue;
            };
            let response =
                convert::tree::get_server_capacity_response(reply, Vec::new(), clock::wall());
            // One that is gone is about to notice it by itself.
            if stream.answers.try_send(Ok(response)) == Err(NotSent::Full) {
                warn!(%child, "the child takes nothing from its stream, which is closed");
                stream.over.cancel();
                streams.by_child.remove(&child);
                node.change(|node, _| node.handle_subscription(&child, false));
            }
        }
    }

    /// Opens the stream of a child's server, in the place of the one before it.
    ///
    /// # Errors
    ///
    /// `ABORTED` if that is of a newer master of the child's node; `ALREADY_EXISTS` if it is of another
    /// live process, which was there first; `RESOURCE_EXHAUSTED` if there are as many child servers as there
    /// may be.
    fn open(
        self: &Arc<Self>,
        child: HolderName,
        epoch: Option<u64>,
        incarnation: Option<Incarnation>,
        caller: Option<Caller>,
        answers: Answers,
        board: &Board,
    ) -> Result<Opened, RpcStatus> {
        let node = board.node();
        let mut streams = self.streams();
        let before = streams.by_child.get(&child);
        if before.is_none() {
            streams.check_room(caller, board)?;
        }
        let is_others = before.is_some_and(|stream| stream.incarnation != incarnation);
        if is_others && node.read(|node, now| node.is_refused(&child, incarnation, now)) {
            return Err(RpcStatus::already_exists(format!(
                "another live process asks as {child}, and is connected: two servers have the same --node"
            )));
        }
        let known = before.and_then(|stream| stream.epoch);
        if let (Some(epoch), Some(known)) = (epoch, known)
            && epoch < known
        {
            return Err(RpcStatus::aborted(format!(
                "{REPLACED} master of {child} is connected, of epoch {known}; this one is of {epoch}"
            )));
        }
        streams.opened += 1;
        let number = streams.opened;
        let over = self.over.child_token();
        let stream = ChildStream {
            number,
            epoch,
            caller,
            incarnation,
            opened_in: node.masterships_count(),
            answers,
            over: over.clone(),
        };
        if let Some(before) = streams.by_child.insert(child.clone(), stream) {
            let _full_or_gone = before.answers.try_send(Err(RpcStatus::aborted(format!(
                "{REPLACED} stream of {child} took the place of this one; if that happens again and \
                 again, two servers have the same --node"
            ))));
            before.over.cancel();
        }
        node.change(|node, _| node.handle_subscription(&child, true));
        Ok(Opened {
            pushes: Arc::clone(self),
            node: Arc::clone(node),
            child,
            number,
            over,
        })
    }

    /// Another mastership has begun, the how manieth is said: streams of those before it are ended,
    /// with where the master is, if that is known.
    pub fn end_older(&self, begun: u64, mastership: &Mastership, node: &NodeHandle) {
        // Held to the end: a child that comes back meanwhile opens its stream after all this.
        let mut streams = self.streams();
        let older: Vec<HolderName> = streams
            .by_child
            .iter()
            .filter(|(_, stream)| stream.opened_in < begun)
            .map(|(child, _)| child.clone())
            .collect();
        for child in older {
            let Some(stream) = streams.by_child.remove(&child) else {
                continue;
            };
            let response = wire::GetServerCapacityResponse {
                mastership: Some(convert::redirection(mastership)),
                ..wire::GetServerCapacityResponse::default()
            };
            let _full_or_gone = stream.answers.try_send(Ok(response));
            stream.over.cancel();
            node.change(|node, _| node.handle_subscription(&child, false));
        }
    }

    /// Ends the streams of child servers that turn out to be ancestors, and says so: one that has
    /// nothing to ask would not hear of it. Runs for ever: spawn it.
    pub async fn end_cycles(self: Arc<Self>, board: Arc<Board>) {
        let mut answers = board.node().answers();
        let mut known = Vec::new();
        while answers.changed().await.is_ok() {
            let ancestors = board.node().read(|node, _| node.ancestors().to_vec());
            if ancestors != known {
                self.end_ancestors(&ancestors, &board);
                known = ancestors;
            }
        }
    }

    fn end_ancestors(&self, ancestors: &[String], board: &Board) {
        let mut streams = self.streams();
        for (position, ancestor) in ancestors.iter().enumerate() {
            let Some(stream) = HolderName::new(ancestor)
                .ok()
                .and_then(|child| streams.by_child.remove_entry(&child))
            else {
                continue;
            };
            let (child, stream) = stream;
            let above = ancestors.iter().take(position + 1).cloned();
            let node = board.node_name().to_owned();
            let cycle = Cycle {
                child: child.to_string(),
                path: std::iter::once(node.clone()).chain(above).collect(),
                node,
            };
            let _full_or_gone = stream.answers.try_send(Err(cycle::refusal(&cycle)));
            stream.over.cancel();
            board
                .node()
                .change(|node, _| node.handle_subscription(&child, false));
        }
    }

    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream as the task that serves it knows it. Closed when dropped.
struct Opened {
    pushes: Arc<Pushes>,
    node: Arc<NodeHandle>,
    child: HolderName,
    number: u64,
    over: CancellationToken,
}

impl Opened {
    /// Decides on an answer and sends it, unless another stream took the place of this one.
    /// Returns whether the stream goes on.
    fn answer(
        &self,
        place: Place<'_>,
        decide: impl FnOnce() -> Result<wire::GetServerCapacityResponse, RpcStatus>,
    ) -> bool {
        let streams = self.pushes.streams();
        if !self.is_current(&streams) {
            return false;
        }
        let answer = decide();
        let ends = answer
            .as_ref()
            .map_or(true, |answer| answer.mastership.is_some());
        place.send(answer);
        !ends
    }

    fn is_current(&self, streams: &Streams) -> bool {
        streams
            .by_child
            .get(&self.child)
            .is_some_and(|stream| stream.number == self.number)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let mut streams = self.pushes.streams();
        if self.is_current(&streams) {
            streams.by_child.remove(&self.child);
            self.node
                .change(|node, _| node.handle_subscription(&self.child, false));
        }
    }
}

/// The streaming twins of Doorman's calls.
#[derive(Clone, Debug)]
pub struct CapacityStreamService {
    board: Arc<Board>,
    metrics: Arc<Metrics>,
    pushes: Arc<Pushes>,
    stopping: CancellationToken,
}

impl CapacityStreamService {
    /// A service whose streams end when `stopping` is cancelled.
    pub fn new(
        board: Arc<Board>,
        metrics: Arc<Metrics>,
        pushes: Arc<Pushes>,
        stopping: CancellationToken,
    ) -> Self {
        Self {
            board,
            metrics,
            pushes,
            stopping,
        }
    }

    /// Serves a stream until either side ends it.
    ///
    /// # Errors
    ///
    /// What the child is to be told of the end.
    async fn serve(
        &self,
        mut requests: Streaming<wire::GetServerCapacityRequest>,
        caller: Option<Caller>,
        answers: &Answers,
    ) -> Result<(), RpcStatus> {
        let first = tokio::time::timeout(FIRST_MESSAGE_TIMEOUT, requests.message());
        let first = tokio::select! {
            first = first => first.unwrap_or_else(|_| {
                Err(RpcStatus::deadline_exceeded(format!(
                    "no message within {FIRST_MESSAGE_TIMEOUT:?}"
                )))
            }),
            status = self.over(&self.pushes.over) => return Err(status),
        };
        let Some(first) = first.map_err(set_right)? else {
            return Ok(());
        };
        let child = convert::tree::server_id(&first)?;
        // Before the first answer: what changes after it is pushed.
        let opened = self.pushes.open(
            child.clone(),
            first.epoch,
            first.incarnation.and_then(Incarnation::new),
            caller,
            answers.clone(),
            &self.board,
        )?;
        info!(%child, "a child server opened its stream");
        let ended = self
            .converse(&opened, first, requests, caller, answers)
            .await;
        let why = ended.as_ref().err();
        let why = why.map(|status| format!("{:?}: {}", status.code(), status.message()));
        info!(%child, why, "the stream of a child server ended");
        ended
    }

    async fn converse(
        &self,
        opened: &Opened,
        first: wire::GetServerCapacityRequest,
        mut requests: Streaming<wire::GetServerCapacityRequest>,
        caller: Option<Caller>,
        answers: &Answers,
    ) -> Result<(), RpcStatus> {
        let mut next = Some(first);
        while let Some(request) = next {
            if request.server_id != opened.child.as_str() {
                return Err(RpcStatus::invalid_argument(format!(
                    "this stream is {}'s; open another one for {}",
                    opened.child, request.server_id
                )));
            }
            let request = parse(&self.metrics, &request, caller)?;
            let place = tokio::select! {
                place = answers.reserve() => place,
                status = self.over(&opened.over) => return Err(status),
            };
            let place = match place {
                Ok(place) => place,
                Err(NotSent::Closed) => return Ok(()),
                Err(NotSent::Full) => {
                    return Err(RpcStatus::resource_exhausted("the child takes nothing"));
                }
            };
            if !opened.answer(place, || decide(&self.board, request, Via::Stream)) {
                return Ok(());
            }
            next = tokio::select! {
                request = requests.message() => request.map_err(set_right)?,
                status = self.over(&opened.over) => return Err(status),
            };
        }
        Ok(())
    }

    /// Waits until a stream has to end, and says why.
    async fn over(&self, over: &CancellationToken) -> RpcStatus {
        tokio::select! {
            () = self.stopping.cancelled() => RpcStatus::unavailable("the server is shutting down"),
            () = over.cancelled() => RpcStatus::aborted("the stream was closed"),
        }
    }
}

/// A stream that breaks because of a message that cannot be read is the child's mistake.
fn set_right(status: RpcStatus) -> RpcStatus {
    meter::decode_failure(&status).unwrap_or(status)
}

/// What a child server's request is answered that came by a call of its own.
///
/// # Errors
///
/// `INVALID_ARGUMENT` for what is wrong with the whole request; `FAILED_PRECONDITION` if the child
/// is an ancestor of this server.
pub fn answer(
    board: &Board,
    metrics: &Metrics,
    request: &wire::GetServerCapacityRequest,
    caller: Option<Caller>,
) -> Result<wire::GetServerCapacityResponse, RpcStatus> {
    decide(board, parse(metrics, request, caller)?, Via::Poll)
}

/// A request, and what of it was refused at the door.
type Parsed = (GetServerCapacity, Vec<wire::Refusal>);

fn parse(
    metrics: &Metrics,
    request: &wire::GetServerCapacityRequest,
    caller: Option<Caller>,
) -> Result<Parsed, RpcStatus> {
    let (request, refused) = convert::tree::get_server_capacity(request, caller, clock::wall())?;
    metrics.count_malformed(refused.len());
    Ok((request, refused))
}

fn decide(
    board: &Board,
    (request, refused): Parsed,
    via: Via,
) -> Result<wire::GetServerCapacityResponse, RpcStatus> {
    let outcome = board
        .node()
        .change(|node, now| node.handle_get_server_capacity(&request, via, now));
    match outcome {
        Ok(Outcome::Served(reply)) => Ok(convert::tree::get_server_capacity_response(
            reply,
            refused,
            clock::wall(),
        )),
        Ok(Outcome::NotMaster(mastership)) => Ok(wire::GetServerCapacityResponse {
            mastership: Some(convert::redirection(&mastership)),
            ..wire::GetServerCapacityResponse::default()
        }),
        Err(cycle) => Err(cycle::refusal(&cycle)),
    }
}

#[tonic::async_trait]
impl CapacityStream for CapacityStreamService {
    type StreamServerCapacityStream =
        Pin<Box<dyn Stream<Item = Result<wire::GetServerCapacityResponse, RpcStatus>> + Send>>;

    async fn stream_server_capacity(
        &self,
        request: Request<Streaming<wire::GetServerCapacityRequest>>,
    ) -> Result<Response<Self::StreamServerCapacityStream>, RpcStatus> {
        let (answers, outgoing) = answers::channel();
        let service = self.clone();
        let caller = caller::of(&request);
        let requests = request.into_inner();
        tokio::spawn(async move {
            if let Err(status) = service.serve(requests, caller, &answers).await {
                let _full_or_gone = answers.try_send(Err(status));
            }
        });
        Ok(Response::new(Box::pin(outgoing)))
    }
}
