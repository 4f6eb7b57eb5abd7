//! A child server that a test drives by hand, by calls or on a stream.

use std::time::Duration;

use doorward_proto::doorman::capacity_client::CapacityClient;
use doorward_proto::doorman::{
    GetServerCapacityRequest, GetServerCapacityResponse, Lease, PriorityBandAggregate,
    ServerCapacityResourceRequest, ServerCapacityResourceResponse,
};
use doorward_proto::doorward::v1::capacity_stream_client::CapacityStreamClient;
use doorward_server::app::Server;
use doorward_server::rpc::closed;
use doorward_session::close_reason::{CloseReason, ConnectionEnd};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use crate::running::channel;

/// Time limit for everything that does not have to wait for a timeout.
pub(crate) const PROMPT: Duration = Duration::from_secs(2);

/// Checks that the parent names why a stream or a call ended, in addition to the code.
#[track_caller]
pub(crate) fn says_why(status: &Status, closing: CloseReason) {
    let name = status.metadata().get("doorward-closed").expect("told");
    assert_eq!(name, closing.as_str(), "{status}");
    let end = ConnectionEnd::ByParent(closing);
    assert_eq!(closed::heard(status), end, "{status}");
}

/// A child server with a stream.
pub(crate) struct Child {
    pub(crate) requests: mpsc::Sender<GetServerCapacityRequest>,
    pub(crate) answers: Streaming<GetServerCapacityResponse>,
}

impl Child {
    pub(crate) async fn open(server: &Server) -> Self {
        Self::open_on(channel(server).await).await
    }

    pub(crate) async fn open_on(channel: Channel) -> Self {
        let (requests, outgoing) = mpsc::channel(16);
        let mut client = CapacityStreamClient::new(channel);
        let outgoing = ReceiverStream::new(outgoing);
        let opened = client.stream_server_capacity(outgoing).await;
        let answers = opened.expect("served").into_inner();
        Self { requests, answers }
    }

    pub(crate) async fn send(&self, request: GetServerCapacityRequest) {
        let sent = self.requests.send(request).await;
        sent.expect("the stream is open");
    }

    /// Returns the next message, or the end of the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<GetServerCapacityResponse>, Status> {
        let next = tokio::time::timeout(PROMPT, self.answers.message()).await;
        next.expect("something comes, or the stream ends")
    }

    /// Returns the next message. Panics if the stream ends instead.
    pub(crate) async fn told(&mut self) -> GetServerCapacityResponse {
        self.next().await.expect("in order").expect("not the end")
    }

    /// Asks, and returns the answer.
    pub(crate) async fn ask(
        &mut self,
        request: GetServerCapacityRequest,
    ) -> GetServerCapacityResponse {
        self.send(request).await;
        self.told().await
    }

    /// Asks for one resource, and returns what it gets.
    pub(crate) async fn gets(&mut self, request: GetServerCapacityRequest) -> f64 {
        the(&self.ask(request).await).gets.capacity
    }

    /// Skips all messages, and returns the status with which the stream ends, if it has one.
    pub(crate) async fn end(&mut self) -> Option<Status> {
        loop {
            match self.next().await {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(status) => return Some(status),
            }
        }
    }
}

/// Returns the demand of that many equal clients for one resource, with its curve.
pub(crate) fn wants(resource: &str, wants: f64, clients: i64) -> ServerCapacityResourceRequest {
    ServerCapacityResourceRequest {
        resource_id: resource.to_owned(),
        wants: vec![PriorityBandAggregate {
            priority: 0,
            num_clients: clients,
            wants,
            level: vec![wants / clients as f64],
            demand: vec![wants],
        }],
        outstanding: Some(0.0),
        ..ServerCapacityResourceRequest::default()
    }
}

pub(crate) fn has(
    capacity: f64,
    of: ServerCapacityResourceRequest,
) -> ServerCapacityResourceRequest {
    ServerCapacityResourceRequest {
        has: Some(Lease {
            capacity,
            expires_in_ms: Some(50_000),
            ..Lease::default()
        }),
        outstanding: Some(capacity),
        outstanding_for_ms: None,
        ..of
    }
}

/// Returns a demand as a Doorman server sends it.
pub(crate) fn old(of: ServerCapacityResourceRequest) -> ServerCapacityResourceRequest {
    let wants = of.wants.into_iter().map(|band| PriorityBandAggregate {
        level: Vec::new(),
        demand: Vec::new(),
        ..band
    });
    ServerCapacityResourceRequest {
        wants: wants.collect(),
        resource_id: of.resource_id,
        ..ServerCapacityResourceRequest::default()
    }
}

pub(crate) fn ask(
    child: &str,
    sequence: impl Into<Option<u64>>,
    resource: Vec<ServerCapacityResourceRequest>,
) -> GetServerCapacityRequest {
    let sequence = sequence.into();
    GetServerCapacityRequest {
        server_id: child.to_owned(),
        resource,
        height: sequence.map(|_| 1),
        sequence,
        ..GetServerCapacityRequest::default()
    }
}

pub(crate) async fn poll(
    client: &mut CapacityClient<Channel>,
    request: GetServerCapacityRequest,
) -> GetServerCapacityResponse {
    let answer = client.get_server_capacity(request).await;
    answer.expect("served").into_inner()
}

/// Returns the only lease of an answer.
#[track_caller]
pub(crate) fn the(response: &GetServerCapacityResponse) -> &ServerCapacityResourceResponse {
    assert_eq!(response.refused, []);
    match response.response.as_slice() {
        [only] => only,
        others => panic!("not one resource: {others:?}"),
    }
}

/// Asks for one resource by a call, and returns what it gets.
pub(crate) async fn poll_gets(
    client: &mut CapacityClient<Channel>,
    request: GetServerCapacityRequest,
) -> f64 {
    the(&poll(client, request).await).gets.capacity
}

/// Returns the refusals of an invalid request: of a call, and of a stream.
pub(crate) async fn refused_both_ways(
    server: &Server,
    request: GetServerCapacityRequest,
) -> [Status; 2] {
    let mut client = CapacityClient::new(channel(server).await);
    let called = client.get_server_capacity(request.clone()).await;
    let mut child = Child::open(server).await;
    child.send(request).await;
    let streamed = child.end().await.expect("refused");
    [called.expect_err("refused"), streamed]
}
