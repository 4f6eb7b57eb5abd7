//! A parent's side of the streams from its child servers: `doorward.v1.CapacityStream`.
//!
//! A child's messages are answered one by one. What changes for it otherwise is gathered in rounds
//! by [`Pushes::run`] and sent on the same stream. A child has one stream; a newer one replaces it.
//! A stream whose child does not take what it is sent is closed: the child opens a new one, or
//! polls.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use doorward_engine::id::HolderName;
use doorward_engine::node::Node;
use doorward_engine::node::mastership::Outcome;
use doorward_engine::request::server::Via;
use doorward_proto::doorman as wire;
use doorward_proto::doorward::v1::capacity_stream_server::CapacityStream;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status as RpcStatus, Streaming};
use tracing::{debug, info, warn};

use crate::clock;
use crate::metrics::Metrics;
use crate::node_handle::NodeHandle;
use crate::rpc::convert;
use crate::status::Board;

/// Messages to a child that it has not taken yet. More, and its stream is closed.
const BACKLOG_MAX: usize = 64;

/// How long the first message of a stream may take.
const FIRST_MESSAGE_TIMEOUT: Duration = Duration::from_secs(10);

type Answers = mpsc::Sender<Result<wire::GetServerCapacityResponse, RpcStatus>>;

/// The streams that are open, by the name of the child's node.
#[derive(Debug, Default)]
pub struct Pushes {
    streams: Mutex<Streams>,
}

#[derive(Debug, Default)]
struct Streams {
    /// Numbers streams, to tell a child's newest from those before.
    opened: u64,
    by_child: BTreeMap<HolderName, (u64, Answers)>,
}

impl Pushes {
    /// Tells child servers what changes for them, in rounds. Runs for ever: spawn it.
    pub async fn run(self: Arc<Self>, node: Arc<NodeHandle>, round: Duration) {
        loop {
            node.unsettled().await;
            tokio::time::sleep(round).await;
            let replies = node.change(Node::poll_pushes);
            for (child, reply) in replies {
                let response =
                    convert::tree::get_server_capacity_response(reply, Vec::new(), clock::wall());
                if !self.send(&child, response) {
                    warn!(%child, "the child takes nothing from its stream, which is closed");
                    self.close(&child, None, &node);
                }
            }
        }
    }

    /// Whether the message is on its way, or there is no stream.
    fn send(&self, child: &HolderName, response: wire::GetServerCapacityResponse) -> bool {
        let streams = self.streams();
        let stream = streams.by_child.get(child);
        stream.is_none_or(|(_, answers)| answers.try_send(Ok(response)).is_ok())
    }

    fn open(&self, child: &HolderName, answers: Answers, node: &NodeHandle) -> u64 {
        let number = {
            let mut streams = self.streams();
            streams.opened += 1;
            let number = streams.opened;
            // Dropping what was there ends that stream.
            streams.by_child.insert(child.clone(), (number, answers));
            number
        };
        node.change(|node, _| node.handle_subscription(child, true));
        number
    }

    /// Closes a child's stream: the one of that number, or whichever it is.
    fn close(&self, child: &HolderName, number: Option<u64>, node: &NodeHandle) {
        let closed = {
            let mut streams = self.streams();
            let current = streams.by_child.get(child).map(|(number, _)| *number);
            let is_current = current.is_some() && (number.is_none() || number == current);
            if is_current {
                streams.by_child.remove(child);
            }
            is_current
        };
        if closed {
            node.change(|node, _| node.handle_subscription(child, false));
        }
    }

    fn is_current(&self, child: &HolderName, number: u64) -> bool {
        let streams = self.streams();
        streams
            .by_child
            .get(child)
            .is_some_and(|(current, _)| *current == number)
    }

    fn streams(&self) -> std::sync::MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
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

    async fn serve(
        self,
        mut requests: Streaming<wire::GetServerCapacityRequest>,
        answers: Answers,
    ) {
        let first = tokio::time::timeout(FIRST_MESSAGE_TIMEOUT, requests.message()).await;
        let Ok(Ok(Some(first))) = first else {
            return;
        };
        let child = match convert::tree::server_id(&first) {
            Ok(child) => child,
            Err(status) => {
                let _gone = answers.send(Err(status)).await;
                return;
            }
        };
        let node = Arc::clone(self.board.node());
        let number = self.pushes.open(&child, answers.clone(), &node);
        info!(%child, "a child server opened its stream");
        let mut next = Some(first);
        while let Some(request) = next {
            let answer = self.answer(&child, request);
            let ends = answer
                .as_ref()
                .map_or(true, |answer| answer.mastership.is_some());
            if answers.send(answer).await.is_err() || ends {
                break;
            }
            next = tokio::select! {
                request = requests.message() => request.unwrap_or_else(|status| {
                    debug!(%child, %status, "the stream of a child server broke");
                    None
                }),
                () = self.stopping.cancelled() => None,
            };
            if !self.pushes.is_current(&child, number) {
                break;
            }
        }
        self.pushes.close(&child, Some(number), &node);
        info!(%child, "the stream of a child server ended");
    }

    fn answer(
        &self,
        child: &HolderName,
        request: wire::GetServerCapacityRequest,
    ) -> Result<wire::GetServerCapacityResponse, RpcStatus> {
        if request.server_id != child.as_str() {
            return Err(RpcStatus::invalid_argument(format!(
                "this stream is {child}'s; open another one for {}",
                request.server_id
            )));
        }
        answer(&self.board, &self.metrics, &request, Via::Stream)
    }
}

/// What a child server's request is answered, however it came.
///
/// # Errors
///
/// `INVALID_ARGUMENT` for what is wrong with the whole request; `FAILED_PRECONDITION` if the child
/// is an ancestor of this server.
pub fn answer(
    board: &Board,
    metrics: &Metrics,
    request: &wire::GetServerCapacityRequest,
    via: Via,
) -> Result<wire::GetServerCapacityResponse, RpcStatus> {
    let (request, refused) = convert::tree::get_server_capacity(request, clock::wall())?;
    metrics.count_malformed(refused.len());
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
        Err(cycle) => Err(RpcStatus::failed_precondition(cycle.to_string())),
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
        let (answers, outgoing) = mpsc::channel(BACKLOG_MAX);
        let service = self.clone();
        let requests = request.into_inner();
        tokio::spawn(async move { service.serve(requests, answers).await });
        Ok(Response::new(Box::pin(ReceiverStream::new(outgoing))))
    }
}
