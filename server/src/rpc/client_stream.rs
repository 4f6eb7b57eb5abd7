//! Service of a client's stream: `doorward.v1.CapacityStream/StreamCapacity`.
//!
//! A request is answered as a call is. In between, changes of leases are pushed. Nothing is read or made for a client
//! that does not read: the next message is made when the connection has room for it.
//!
//! A stream ends when the mastership in which it began ends, and its last message names the master.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::id::{Caller, HolderId, HolderName, Incarnation};
use doorward_engine::messages::GetCapacityReply;
use doorward_proto::doorman as wire;
use doorward_tls::identity::Identity;
use futures_util::stream::{self, FuturesUnordered, StreamExt};
use futures_util::{FutureExt, Stream};
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use tonic::{Status as RpcStatus, Streaming};

use crate::clock;
use crate::replica_handle::PushStream;
use crate::rpc::{Answer, CapacityService, convert};

/// Longest time until the first message.
const FIRST_MESSAGE_WITHIN: Duration = Duration::from_secs(10);

/// Largest number of clients on a stream.
const CLIENTS_MAX: usize = 100;

/// Largest number of requests that wait for the parent at the same time. Until then, no more is read.
const WAITING_MAX: usize = 4;

type Message = Result<wire::GetCapacityResponse, RpcStatus>;

/// A request whose answer is not complete.
type Waiting = futures_util::future::BoxFuture<'static, (Label, Message)>;

/// Client and number of a request.
type Label = (String, Option<u64>);

/// Stream of a client.
struct ClientStream {
    service: CapacityService,
    requests: Streaming<wire::GetCapacityRequest>,
    caller: Option<Caller>,
    identity: Option<Identity>,
    pushes: PushStream,
    waiting: FuturesUnordered<Waiting>,
    stop: CancellationToken,
    first_message_by: Instant,
}

/// Serves a stream.
pub(super) fn serve(
    service: CapacityService,
    requests: Streaming<wire::GetCapacityRequest>,
    caller: Option<Caller>,
    identity: Option<Identity>,
) -> impl Stream<Item = Message> + Send {
    let node = Arc::clone(service.state.node());
    let stream = ClientStream {
        stop: service.stop.clone(),
        service,
        requests,
        caller,
        identity,
        pushes: PushStream::open(node),
        waiting: FuturesUnordered::new(),
        first_message_by: Instant::now() + FIRST_MESSAGE_WITHIN,
    };
    stream::unfold(Some(stream), |stream| async move {
        let mut stream = stream?;
        let message = stream.next().await.transpose()?;
        let redirects = |answer: &wire::GetCapacityResponse| answer.mastership.is_some();
        let is_last = message.as_ref().map_or(true, redirects);
        Some((message, Some(stream).filter(|_| !is_last)))
    })
}

impl ClientStream {
    /// Returns the next message. None: the stream is over.
    async fn next(&mut self) -> Result<Option<wire::GetCapacityResponse>, RpcStatus> {
        loop {
            let is_silent = self.pushes.clients() == 0;
            tokio::select! {
                biased;
                () = self.stop.cancelled() => {
                    return Err(RpcStatus::unavailable("the server shuts down"));
                }
                push = self.pushes.next() => return Ok(Some(match push {
                    Ok((client, push)) => pushed(&client, push),
                    Err(master) => wire::GetCapacityResponse {
                        mastership: Some(convert::redirection(&master)),
                        ..wire::GetCapacityResponse::default()
                    },
                })),
                () = sleep_until(self.first_message_by), if is_silent => {
                    let problem = "the first message did not come within 10 s";
                    return Err(RpcStatus::deadline_exceeded(problem));
                }
                Some((label, answer)) = self.waiting.next() => {
                    return Ok(Some(labelled(answer?, label)));
                }
                request = self.requests.message(), if self.waiting.len() < WAITING_MAX => {
                    let Some(request) = request? else {
                        return Ok(None);
                    };
                    if let Some(answer) = self.handle(request)? {
                        return Ok(Some(answer));
                    }
                }
            }
        }
    }

    /// Handles a request. None: its answer comes later.
    fn handle(
        &mut self,
        request: wire::GetCapacityRequest,
    ) -> Result<Option<wire::GetCapacityResponse>, RpcStatus> {
        let label = (request.client_id.clone(), request.sequence);
        if request.sequence.is_none() {
            let problem = "a request on a stream has no sequence; number the requests";
            return Err(RpcStatus::invalid_argument(problem));
        }
        let identity = self.identity.as_ref();
        if let Ok(name) = HolderName::new(&request.client_id) {
            let incarnation = request.incarnation.and_then(Incarnation::new);
            self.service.names.clients.claim(name.as_str(), identity)?;
            self.pushes.claim(HolderId::client(name, incarnation));
        }
        if self.pushes.clients() > CLIENTS_MAX {
            let problem = "a stream has at most 100 clients; open another one";
            return Err(RpcStatus::resource_exhausted(problem));
        }
        match self.service.answer(request, self.caller, identity)? {
            Answer::Ready(answer) => Ok(Some(labelled(answer, label))),
            Answer::Later(answer) => {
                self.waiting.push(answer.map(|it| (label, it)).boxed());
                Ok(None)
            }
        }
    }
}

fn labelled(
    mut answer: wire::GetCapacityResponse,
    (client, sequence): Label,
) -> wire::GetCapacityResponse {
    answer.client_id = Some(client);
    answer.sequence = sequence;
    answer
}

fn pushed(client: &HolderId, push: GetCapacityReply) -> wire::GetCapacityResponse {
    let sequences: Vec<_> = push.leases.iter().map(|lease| lease.sequence).collect();
    let mut message = convert::get_capacity_response(push, Vec::new(), clock::wall());
    for (lease, sequence) in message.response.iter_mut().zip(sequences) {
        lease.sequence = sequence;
    }
    labelled(message, (client.name.to_string(), None))
}
