//! Service of a child server's stream: `doorward.v1.CapacityStream`.
//!
//! It reads, decides and answers the messages of one child one by one.
//! The [streams of all children](crate::rpc::streams_handle) do the rest, such as pushes and the end of a stream.

use std::pin::Pin;
use std::sync::Arc;

use doorward_door::meter;
use doorward_engine::id::Caller;
use doorward_engine::messages::{Cycle, GetServerCapacity, Via};
use doorward_engine::node::Node;
use doorward_engine::node::asking::Answers;
use doorward_engine::node::mastership::Outcome;
use doorward_proto::doorman as wire;
use doorward_proto::doorward::v1::capacity_stream_server::CapacityStream;
use doorward_session::close_reason::CloseReason;
use tokio::task;
use tokio_stream::Stream;
use tonic::{Request, Response, Status as RpcStatus, Streaming};

use crate::clock;
use crate::metrics::Metrics;
use crate::rpc::convert::server_capacity::ReadRequest;
use crate::rpc::streams_handle::{Connected, StreamsHandle};
use crate::rpc::{caller, child_outbox, closed, convert, cycle};
use crate::status::Board;

/// The service of the streams.
#[derive(Clone, Debug)]
pub struct CapacityStreamService {
    board: Arc<Board>,
    metrics: Arc<Metrics>,
    streams: Arc<StreamsHandle>,
}

impl CapacityStreamService {
    /// Makes the service of these streams.
    pub fn new(board: Arc<Board>, metrics: Arc<Metrics>, streams: Arc<StreamsHandle>) -> Self {
        Self {
            board,
            metrics,
            streams,
        }
    }

    /// Serves a stream until either side ends it.
    ///
    /// # Errors
    ///
    /// If a message is invalid as a whole.
    async fn serve(
        &self,
        mut requests: Streaming<wire::GetServerCapacityRequest>,
        caller: Option<Caller>,
        stream: &mut Connected,
    ) -> Result<(), RpcStatus> {
        let mut is_first = true;
        loop {
            let request = tokio::select! {
                request = requests.message() => request,
                () = stream.over() => return Ok(()),
            };
            let request = match request {
                Ok(Some(request)) => request,
                Ok(None) => return Ok(()),
                Err(status) => match meter::decode_failure(&status) {
                    // The child sent an invalid message.
                    Some(malformed) => return Err(malformed),
                    None => {
                        stream.note_broken(status);
                        return Ok(());
                    }
                },
            };
            let child = convert::server_capacity::server_id(&request)?;
            if std::mem::take(&mut is_first) {
                // The greeting comes before the first answer, so later changes are pushed.
                stream.greet(&child, &request, caller);
            }
            let parsed = parse(&self.metrics, &request, caller).await?;
            let place = tokio::select! {
                place = stream.place() => place,
                () = stream.over() => return Ok(()),
            };
            let Some(place) = place else {
                return Ok(());
            };
            let decide = decide(&self.board, parsed, Via::Stream);
            stream.answer(child.as_str(), place, decide).await;
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
    board: &Board,
    metrics: &Metrics,
    request: &wire::GetServerCapacityRequest,
    caller: Option<Caller>,
) -> Result<wire::GetServerCapacityResponse, RpcStatus> {
    let malformed = |status| closed::with_reason(CloseReason::Malformed, status);
    let parsed = parse(metrics, request, caller).await.map_err(malformed)?;
    let decided = decide(board, parsed, Via::Poll).await;
    decided.map_err(|cycle| cycle::refusal(&cycle))
}

/// A request, and the refusals of its invalid resources.
pub(super) type Parsed = (GetServerCapacity, Vec<wire::Refusal>);

/// Resources parsed between two yields to other tasks. Each may have dozens of points.
const RESOURCES_AT_ONCE: usize = 64;

pub(super) async fn parse(
    metrics: &Metrics,
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
    let ReadRequest {
        request, refused, ..
    } = read;
    metrics.count_malformed(refused.len());
    Ok((request, refused))
}

pub(super) async fn decide(
    board: &Board,
    (request, refused): Parsed,
    via: Via,
) -> Result<wire::GetServerCapacityResponse, Cycle> {
    // The wall clock is read before the decision, so leases end no later by it.
    let wall = clock::wall();
    let mut answers = Answers::to_child(&request);
    let next = |node: &mut Node, now| node.answer_child_next(&request, via, &mut answers, now);
    Ok(match board.node().finish(next).await? {
        Outcome::Served(reply) => {
            convert::server_capacity::get_server_capacity_response(reply, refused, wall)
        }
        Outcome::NotMaster(mastership) => wire::GetServerCapacityResponse {
            mastership: Some(convert::redirection(&mastership)),
            ..wire::GetServerCapacityResponse::default()
        },
    })
}

#[tonic::async_trait]
impl CapacityStream for CapacityStreamService {
    type StreamServerCapacityStream =
        Pin<Box<dyn Stream<Item = Result<wire::GetServerCapacityResponse, RpcStatus>> + Send>>;

    async fn stream_server_capacity(
        &self,
        request: Request<Streaming<wire::GetServerCapacityRequest>>,
    ) -> Result<Response<Self::StreamServerCapacityStream>, RpcStatus> {
        let (answers, outgoing) = child_outbox::channel();
        let service = self.clone();
        let caller = caller::of(&request);
        let requests = request.into_inner();
        let mut stream = self.streams.connect(answers);
        tokio::spawn(async move {
            if let Err(malformed) = service.serve(requests, caller, &mut stream).await {
                stream.refuse(malformed);
            }
        });
        Ok(Response::new(Box::pin(outgoing)))
    }
}
