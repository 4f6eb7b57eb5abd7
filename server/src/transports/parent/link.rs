//! The connection to a server of the parent, with one request under way at a time.
//!
//! All state is kept between two waits, so a wait can be cancelled at any time.

use std::collections::VecDeque;
use std::time::Duration;

use doorward_engine::messages::GetServerCapacity;
use doorward_engine::node::mastership::Mastership;
use doorward_etcd::error::innermost;
use doorward_proto::doorman as wire;
use doorward_proto::doorman::capacity_client::CapacityClient;
use doorward_proto::doorward::v1::capacity_stream_client::CapacityStreamClient;
use doorward_replica::FromParent;
use doorward_session::address::Address;
use doorward_session::parent_session::Transport;
use doorward_tls::dialer::{Dialed as Channel, Dialer};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::BoxFuture;
use tonic::transport::Endpoint;
use tonic::{Response, Status as RpcStatus, Streaming};

use crate::clock;
use crate::otel::{self, Span};
use crate::rpc::MESSAGE_BYTES_MAX;
use crate::rpc::convert::server_capacity;

/// Largest answer to a Discovery, in bytes: an address and an epoch.
pub(super) const DISCOVERY_BYTES_MAX: usize = 4 * 1024;

/// Largest number of messages on their way into a stream. A request has more than one only if it is very large.
const OUTGOING_MAX: usize = 128;

/// Interval between two pings of a connection with a stream, and the timeout of the answer.
const PING: Duration = Duration::from_secs(5);

type Pending<T> = BoxFuture<Response<T>, RpcStatus>;
type Requests = mpsc::Sender<wire::GetServerCapacityRequest>;
type Answers = Streaming<wire::GetServerCapacityResponse>;

/// A connection.
#[derive(Default)]
pub(super) enum Link {
    /// No connection, or one without a request.
    #[default]
    Idle,
    /// The connection is being made.
    Connecting(BoxFuture<Channel, String>),
    /// The connection is made, and no request is under way.
    Connected(Channel),
    /// The server is asked for the master.
    Discovering(Channel, Pending<wire::DiscoveryResponse>),
    /// A stream is being opened.
    Opening(Requests, Pending<Answers>),
    /// A stream is open. Requests without an answer have their numbers and spans here.
    Streaming(Requests, Box<Answers>, Vec<(Option<u64>, Span)>),
    /// A call is under way.
    Calling(Channel, Box<Call>),
}

/// A request by calls: more than one if the request is very large.
pub(super) struct Call {
    pub(super) request: GetServerCapacity,
    /// Parts that remain to be sent.
    rest: VecDeque<wire::GetServerCapacityRequest>,
    under_way: Pending<wire::GetServerCapacityResponse>,
    whole: wire::GetServerCapacityResponse,
    sent_at: Duration,
}

/// End of a connection, or failure of the present request.
pub(super) enum LinkEnd {
    /// The connection could not be made, with the reason.
    Unreachable(String),
    /// The stream ended without an error.
    Ended,
    /// The present request failed.
    Failed(RpcStatus),
}

impl Link {
    /// Begins to connect. The session gives up after a timeout.
    pub(super) fn connect(
        dialer: &Dialer,
        to: &Address,
        way: Transport,
        timeout: Duration,
    ) -> Self {
        let dialer = dialer.clone();
        let uri = format!("http://{to}");
        Self::Connecting(Box::pin(async move {
            let endpoint = Endpoint::from_shared(uri).map_err(|error| error.to_string())?;
            let endpoint = endpoint.connect_timeout(timeout).tcp_nodelay(true);
            let endpoint = match way {
                Transport::Stream => endpoint
                    .http2_keep_alive_interval(PING)
                    .keep_alive_timeout(PING)
                    .keep_alive_while_idle(true),
                // No pings: each call has its own timeout, and Doorman servers end connections that ping them often.
                Transport::Calls => endpoint,
            };
            let connected = dialer.connect(&endpoint).await;
            connected.map_err(|error| innermost(&error))
        }))
    }

    fn take_channel(&mut self) -> Option<Channel> {
        match std::mem::take(self) {
            Self::Connected(channel) => Some(channel),
            other => {
                *self = other;
                None
            }
        }
    }

    /// Asks the server for the master.
    pub(super) fn discover(&mut self) {
        if let Some(channel) = self.take_channel() {
            let mut client =
                CapacityClient::new(channel.clone()).max_decoding_message_size(DISCOVERY_BYTES_MAX);
            let question = async move { client.discovery(wire::DiscoveryRequest {}).await };
            *self = Self::Discovering(channel, Box::pin(question));
        }
    }

    /// Opens a stream.
    pub(super) fn open(&mut self) {
        if let Some(channel) = self.take_channel() {
            let mut client = CapacityStreamClient::new(channel)
                .max_decoding_message_size(MESSAGE_BYTES_MAX)
                .max_encoding_message_size(MESSAGE_BYTES_MAX);
            let (requests, outgoing) = mpsc::channel(OUTGOING_MAX);
            let outgoing = ReceiverStream::new(outgoing);
            let opening = async move { client.stream_server_capacity(outgoing).await };
            *self = Self::Opening(requests, Box::pin(opening));
        }
    }

    /// Sends a request on the stream, as part of a trace or of a new one. Returns whether the stream accepts it.
    pub(super) fn send(&mut self, request: &GetServerCapacity, trace: Option<&str>) -> bool {
        let Self::Streaming(requests, _, spans) = self else {
            return false;
        };
        let (span, traceparent) = otel::asks(trace).unzip();
        spans.extend(span.map(|span| (request.sequence, span)));
        let messages = server_capacity::get_server_capacity_requests(request, clock::wall());
        messages.into_iter().all(|mut message| {
            message.traceparent.clone_from(&traceparent);
            requests.try_send(message).is_ok()
        })
    }

    /// Sends a request by calls. The session makes sure that no other request is under way.
    pub(super) fn call(&mut self, request: GetServerCapacity) {
        debug_assert!(matches!(self, Self::Connected(_)), "there is a connection");
        if let Some(channel) = self.take_channel() {
            let sent_at = clock::wall();
            let messages = server_capacity::get_server_capacity_requests(&request, sent_at);
            let mut rest = VecDeque::from(messages);
            if let Some(first) = rest.pop_front() {
                let under_way = calling(&channel, first);
                let call = Call {
                    request,
                    rest,
                    under_way,
                    whole: wire::GetServerCapacityResponse::default(),
                    sent_at,
                };
                *self = Self::Calling(channel, Box::new(call));
            }
        }
    }

    /// Waits for the next event. Cancel safe.
    pub(super) async fn next(&mut self) -> Result<FromParent, LinkEnd> {
        match self {
            Self::Idle | Self::Connected(_) => std::future::pending().await,
            Self::Connecting(pending) => match pending.await {
                Ok(channel) => {
                    *self = Self::Connected(channel);
                    Ok(FromParent::Connected)
                }
                Err(problem) => {
                    *self = Self::Idle;
                    Err(LinkEnd::Unreachable(problem))
                }
            },
            Self::Discovering(channel, pending) => {
                let answer = pending.await;
                *self = Self::Connected(channel.clone());
                let answer = answer.map_err(LinkEnd::Failed)?.into_inner();
                let master = mastership(answer.is_master, answer.mastership);
                Ok(FromParent::Discovered(master))
            }
            Self::Opening(requests, pending) => {
                let answers = pending.await.map_err(LinkEnd::Failed)?;
                let answers = Box::new(answers.into_inner());
                *self = Self::Streaming(requests.clone(), answers, Vec::new());
                Ok(FromParent::Opened)
            }
            Self::Streaming(_, answers, spans) => match answers.message().await {
                Ok(Some(response)) => {
                    // A lease names the newest request that it takes into account. Pushes have leases of older ones,
                    // so a message without leases is an answer.
                    let answered = response.response.iter().filter_map(|it| it.sequence).max();
                    spans.retain(|(asked, _)| answered.is_some() && *asked > answered);
                    Ok(match response.mastership {
                        Some(master) => not_master(None, master),
                        None => {
                            let answer = server_capacity::parents_answer(response, clock::wall());
                            reply(None, answer)
                        }
                    })
                }
                Ok(None) => Err(LinkEnd::Ended),
                Err(status) => Err(LinkEnd::Failed(status)),
            },
            Self::Calling(channel, call) => {
                let response = match (&mut call.under_way).await {
                    Ok(response) => response.into_inner(),
                    Err(status) => {
                        *self = Self::Connected(channel.clone());
                        return Err(LinkEnd::Failed(status));
                    }
                };
                let heard = call.hear(channel, response);
                if !matches!(heard, FromParent::Progress) {
                    *self = Self::Connected(channel.clone());
                }
                Ok(heard)
            }
        }
    }
}

fn calling(
    channel: &Channel,
    message: wire::GetServerCapacityRequest,
) -> Pending<wire::GetServerCapacityResponse> {
    let mut client = CapacityClient::new(channel.clone())
        .max_decoding_message_size(MESSAGE_BYTES_MAX)
        .max_encoding_message_size(MESSAGE_BYTES_MAX);
    Box::pin(async move { client.get_server_capacity(message).await })
}

impl Call {
    /// Takes the answer to a part. Sends the next part, or returns the whole answer.
    fn hear(&mut self, channel: &Channel, response: wire::GetServerCapacityResponse) -> FromParent {
        if let Some(mastership) = response.mastership {
            return not_master(Some(self.request.sequence.unwrap_or_default()), mastership);
        }
        self.whole.response.extend(response.response);
        self.whole.refused.extend(response.refused);
        self.whole.ancestor = response.ancestor;
        if let Some(next) = self.rest.pop_front() {
            self.under_way = calling(channel, next);
            return FromParent::Progress;
        }
        let whole = std::mem::take(&mut self.whole);
        let mut answer = server_capacity::parents_answer(whole, self.sent_at);
        server_capacity::refuse_unanswered(&self.request, &mut answer);
        reply(self.request.sequence, answer)
    }
}

/// Returns a server's statement about the mastership of its node.
fn mastership(is_master: bool, named: wire::Mastership) -> Mastership {
    let epoch = named.epoch;
    match named.master_address {
        _ if is_master => Mastership::Master { epoch },
        Some(master_address) => Mastership::Elsewhere {
            master_address,
            epoch,
        },
        None => Mastership::Unknown,
    }
}

fn not_master(call: Option<u64>, named: wire::Mastership) -> FromParent {
    let master = mastership(false, named);
    FromParent::NotMaster { call, master }
}

fn reply(call: Option<u64>, answer: server_capacity::ReadAnswer) -> FromParent {
    FromParent::Reply {
        call,
        reply: answer.reply,
        invalid: answer.nonsense,
    }
}
