//! Service of a child server's stream: `doorward.v1.CapacityStream`.
//!
//! The replica decides which child has a stream, when changes are pushed, and when and why a stream ends
//! ([`doorward_session::child_streams`]). This module carries messages. One task per stream reads a message, passes it
//! on, and sends what the replica has for the child. It reads the next message after the answer.

mod end_status;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;

use doorward_door::meter;
use doorward_engine::id::{Caller, HolderName, ID_BYTES_MAX};
use doorward_engine::messages::{Cycle, GetServerCapacity, Via};
use doorward_engine::node::asking::Answers;
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_proto::doorman as wire;
use doorward_proto::doorward::v1::capacity_stream_server::CapacityStream;
use doorward_replica::{ChildMessage, StreamEnd, ToChild};
use doorward_session::close_reason::CloseReason;
use doorward_tls::identity::Identity;
use tokio::sync::mpsc;
use tokio::task;
use tokio_stream::Stream;
use tonic::{Request, Response, Status as RpcStatus, Streaming};
use tracing::{info, warn};

use crate::caller;
use crate::clock;
use crate::otel::{self, Span};
use crate::rpc::bindings::Bindings;
use crate::rpc::child_outbox::{ChildOutbox, NotSent};
use crate::rpc::convert::server_capacity::{ReadRequest, get_server_capacity_response};
use crate::rpc::{CapacityService, child_outbox, client_stream, closed, convert, cycle};
use crate::status::ServerState;
use crate::status::model::count;

/// The stream of a child. The stream ends when this is dropped.
struct ChildStream {
    state: Arc<ServerState>,
    number: u64,
    /// Tasks of the replica for this stream.
    tasks: mpsc::UnboundedReceiver<ToChild>,
    /// Messages that the child has not read yet.
    outbox: ChildOutbox,
    /// Child that opened the stream, and the epoch of its mastership. Absent: its first message has not come.
    of: Option<(HolderName, Option<u64>)>,
    /// Whether a message was answered.
    is_open: bool,
    /// Whether a message found no room in the outbox.
    is_full: bool,
    /// Refusals for the answer that is due. Absent: no answer is due.
    refused: Option<Vec<wire::Refusal>>,
    /// Span of the message whose answer is due.
    span: Option<Span>,
}

impl ChildStream {
    fn open(state: Arc<ServerState>, outbox: ChildOutbox) -> Self {
        let (number, tasks) = state.node().open_stream();
        Self {
            state,
            number,
            tasks,
            outbox,
            of: None,
            is_open: false,
            is_full: false,
            refused: None,
            span: None,
        }
    }

    /// Serves the stream until either side ends it.
    async fn serve(
        &mut self,
        mut requests: Streaming<wire::GetServerCapacityRequest>,
        caller: Option<Caller>,
        (names, identity): (Arc<Bindings>, Option<Identity>),
    ) {
        loop {
            let task = tokio::select! {
                task = self.tasks.recv() => task,
                request = requests.message(), if self.refused.is_none() => {
                    if let Ok(Some(message)) = &request
                        && message.server_id.len() <= ID_BYTES_MAX
                        && let Err(status) = names.servers.claim(&message.server_id, identity.as_ref())
                    {
                        return self.end_with(CloseReason::AnotherIdentity, status);
                    }
                    if self.read(request, caller).await {
                        continue;
                    }
                    return;
                }
            };
            // The sender is gone once the replica has ended the stream.
            let Some(task) = task else {
                return;
            };
            if !self.send(task) {
                return;
            }
            // Many pushes must not keep other tasks from running.
            task::consume_budget().await;
        }
    }

    /// Reads a message, and passes it to the replica. Returns whether there was one.
    async fn read(
        &mut self,
        message: Result<Option<wire::GetServerCapacityRequest>, RpcStatus>,
        caller: Option<Caller>,
    ) -> bool {
        let message = match message {
            Ok(Some(message)) => message,
            Ok(None) => return false,
            Err(status) => {
                match meter::decode_failure(&status) {
                    // The child sent an invalid message.
                    Some(malformed) => self.end_with(CloseReason::Malformed, malformed),
                    // A child that still listens gets the status.
                    None => drop(self.outbox.end(status)),
                }
                return false;
            }
        };
        self.span = otel::answers(message.traceparent.as_deref());
        match parse(&self.state, &message, caller).await {
            Ok((request, refused)) => self.handle(request, refused).await,
            Err(status) => {
                self.end_with(CloseReason::Malformed, status);
                return false;
            }
        }
        true
    }

    /// Passes a request to the replica, which answers it or ends the stream.
    async fn handle(&mut self, request: GetServerCapacity, refused: Vec<wire::Refusal>) {
        self.of
            .get_or_insert_with(|| (request.server.clone(), request.epoch));
        self.refused = Some(refused);
        let resources = request.asks.iter().map(|ask| &ask.resource);
        self.state.note_lent(resources);
        let message = ChildMessage::Request(request);
        let node = self.state.node();
        node.input(|replica, now| replica.handle_stream_message(self.number, message, now));
        node.work_until(|replica| !replica.is_answering(self.number))
            .await;
    }

    /// Sends what the replica has for the child. Returns whether the stream goes on.
    fn send(&mut self, task: ToChild) -> bool {
        let (reply, wall, refused) = match task {
            // The replica ends the stream of a child that does not read.
            ToChild::Answer { .. } | ToChild::Push { .. } if self.is_full => return true,
            ToChild::Answer { reply, wall } => {
                self.note_open();
                self.span = None;
                (reply, wall, self.refused.take().unwrap_or_default())
            }
            ToChild::Push { reply, wall } => (reply, wall, Vec::new()),
            ToChild::End(end) => {
                self.end(end);
                return false;
            }
        };
        let message = get_server_capacity_response(reply, refused, wall);
        let sent = self.outbox.try_send(message);
        if sent == Err(NotSent::Full(())) {
            self.is_full = true;
            if let Some((child, _)) = &self.of {
                warn!(%child, "the child takes nothing from its stream, which is closed");
            }
            let (node, number) = (self.state.node(), self.number);
            node.input(|replica, _| replica.change_streams(|it| it.handle_full(number)));
        }
        sent != Err(NotSent::Closed(()))
    }

    fn note_open(&mut self) {
        if !std::mem::replace(&mut self.is_open, true)
            && let Some((child, _)) = &self.of
        {
            info!(%child, "a child server opened its stream");
        }
    }

    /// Ends the stream from this side, and sends its child the reason.
    fn end(&self, end: StreamEnd) {
        let reason = end.reason();
        let status = end_status::end_status(&self.state, self.of.as_ref(), &end);
        let is_first = self.outbox.end(closed::with_reason(reason, status));
        if let StreamEnd::NotMaster(mastership) = end
            && is_first
        {
            let _full_or_gone = self.outbox.try_send(redirection(&mastership));
        }
    }

    /// Ends the stream, because a message is invalid as a whole, or its sender may not use its name.
    fn end_with(&self, reason: CloseReason, status: RpcStatus) {
        self.outbox.end(closed::with_reason(reason, status));
        let number = self.number;
        self.state.node().input(|replica, now| {
            replica.handle_stream_message(number, ChildMessage::Malformed, now);
        });
    }

    /// Returns why the stream ended, as a text for people. None: the child ended it.
    fn why(&self) -> Option<String> {
        let status = self.outbox.ending()?;
        Some(format!("{:?}: {}", status.code(), status.message()))
    }
}

impl Drop for ChildStream {
    fn drop(&mut self) {
        self.state.node().close_stream(self.number);
        if let Some((child, _)) = self.of.as_ref().filter(|_| self.is_open) {
            info!(%child, why = self.why(), "the stream of a child server ended");
        }
    }
}

/// Answers a child server's request that came as a call of its own.
///
/// # Errors
///
/// `INVALID_ARGUMENT` if the request is invalid as a whole; `FAILED_PRECONDITION` if the child is an ancestor of this
/// server.
pub async fn answer(
    state: &ServerState,
    request: &wire::GetServerCapacityRequest,
    caller: Option<Caller>,
) -> Result<wire::GetServerCapacityResponse, RpcStatus> {
    let malformed = |status| closed::with_reason(CloseReason::Malformed, status);
    let parsed = parse(state, request, caller).await.map_err(malformed)?;
    let decided = decide(state, parsed).await;
    decided.map_err(|cycle| cycle::refusal(&cycle))
}

/// A request, and the refusals of its invalid resources.
type Parsed = (GetServerCapacity, Vec<wire::Refusal>);

/// Resources parsed between two yields to other tasks. Each may have dozens of points.
const RESOURCES_AT_ONCE: usize = 64;

async fn parse(
    state: &ServerState,
    message: &wire::GetServerCapacityRequest,
    caller: Option<Caller>,
) -> Result<Parsed, RpcStatus> {
    let wall = clock::wall();
    let mut read = ReadRequest::begin(message, caller)?;
    for (number, resources) in message.resource.chunks(RESOURCES_AT_ONCE).enumerate() {
        if number > 0 {
            task::yield_now().await;
        }
        read.read(resources, wall);
    }
    state.asks_malformed.inc_by(count(read.refused.len()));
    Ok((read.request, read.refused))
}

async fn decide(
    state: &ServerState,
    (request, refused): Parsed,
) -> Result<wire::GetServerCapacityResponse, Cycle> {
    // The wall clock is read before the decision, so leases end no later by it.
    let wall = clock::wall();
    state.note_lent(request.asks.iter().map(|ask| &ask.resource));
    let mut answers = Answers::to_child(&request);
    let decided = state
        .node()
        .finish(|node, now| node.answer_child_next(&request, Via::Poll, &mut answers, now));
    Ok(match decided.await? {
        Outcome::Served(reply) => get_server_capacity_response(reply, refused, wall),
        Outcome::NotMaster(mastership) => redirection(&mastership),
    })
}

fn redirection(mastership: &Mastership) -> wire::GetServerCapacityResponse {
    wire::GetServerCapacityResponse {
        mastership: Some(convert::redirection(mastership)),
        ..wire::GetServerCapacityResponse::default()
    }
}

#[tonic::async_trait]
impl CapacityStream for CapacityService {
    type StreamServerCapacityStream = child_outbox::Outgoing;

    async fn stream_server_capacity(
        &self,
        request: Request<Streaming<wire::GetServerCapacityRequest>>,
    ) -> Result<Response<Self::StreamServerCapacityStream>, RpcStatus> {
        let (outbox, outgoing) = child_outbox::channel();
        let (caller, identity) = (caller::of(&request), caller::identity(&request).cloned());
        let names = Arc::clone(&self.names);
        let requests = request.into_inner();
        let mut stream = ChildStream::open(Arc::clone(&self.state), outbox);
        // Each message has a name, and a stream has one child.
        let owner = (names, identity);
        tokio::spawn(async move { stream.serve(requests, caller, owner).await });
        Ok(Response::new(outgoing))
    }

    type StreamCapacityStream =
        Pin<Box<dyn Stream<Item = Result<wire::GetCapacityResponse, RpcStatus>> + Send>>;

    async fn stream_capacity(
        &self,
        request: Request<Streaming<wire::GetCapacityRequest>>,
    ) -> Result<Response<Self::StreamCapacityStream>, RpcStatus> {
        let (caller, identity) = (caller::of(&request), caller::identity(&request).cloned());
        let requests = request.into_inner();
        let answers = client_stream::serve(self.clone(), requests, caller, identity);
        Ok(Response::new(Box::pin(answers)))
    }
}
