//! A server with as many calls in progress as there may be.

use std::num::NonZeroUsize;
use std::time::Duration;

use bytes::Bytes;
use doorward_proto::doorman::{DiscoveryRequest, GetCapacityRequest, ReleaseCapacityRequest};
use doorward_server::app::{Config, Server};
use doorward_server::rpc::overload::{PUSHBACK, PUSHBACK_SPREAD};
use h2::client::SendRequest;
use prost::Message;
use tokio::net::TcpStream;
use tonic::codegen::http::Request;
use tonic::{Code, Status};

use crate::running::{admin, asked, capacity, config, get, only, page, request};

/// The bytes of a call's message, as gRPC frames it.
fn framed(message: &GetCapacityRequest) -> Bytes {
    let message = message.encode_to_vec();
    let length = u32::try_from(message.len()).unwrap();
    [&[0][..], &length.to_be_bytes(), &message].concat().into()
}

fn headers(server: &Server) -> Request<()> {
    let address = server.grpc_address();
    Request::builder()
        .method("POST")
        .uri(format!("http://{address}/doorman.Capacity/GetCapacity"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .unwrap()
}

async fn connect(server: &Server) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(server.grpc_address()).await.unwrap();
    let (send, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    send.ready().await.unwrap()
}

/// After how long the caller is to come back.
fn pushback(status: &Status) -> Duration {
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    let told = status.metadata().get(PUSHBACK).expect("a time");
    Duration::from_millis(told.to_str().unwrap().parse().unwrap())
}

#[tokio::test]
async fn a_call_too_many_is_told_when_to_come_back_and_served_when_there_is_room() {
    let config = Config {
        calls_max: NonZeroUsize::MIN,
        ..config()
    };
    let server = Server::start(config).await.unwrap();
    // One call of which only the headers have come.
    let mut send = connect(&server).await;
    let (held_up, mut body) = send.send_request(headers(&server), false).unwrap();
    // What comes on the same connection comes after it.
    let mut send = send.ready().await.unwrap();
    let (refused, _) = send.send_request(headers(&server), true).unwrap();
    let refused = refused.await.unwrap();
    let first = Status::from_header_map(refused.headers()).expect("refused");

    let mut client = capacity(&server).await;
    let asks = || request("a", vec![asked("fair/x", 10.0)]);
    let second = client.get_capacity(asks()).await.unwrap_err();
    let (least, most) = PUSHBACK_SPREAD;
    let (first, second) = (pushback(&first), pushback(&second));
    assert!((least..most).contains(&first), "{first:?}");
    assert!((least..most).contains(&second), "{second:?}");
    assert_ne!(first, second, "they do not come back together");

    // Whatever else is called is served.
    client.discovery(DiscoveryRequest {}).await.unwrap();
    let release = ReleaseCapacityRequest {
        client_id: "a".to_owned(),
        resource_id: vec!["fair/x".to_owned()],
        ..ReleaseCapacityRequest::default()
    };
    client.release_capacity(release).await.unwrap();
    let status = doorward_proto::admin::v1::GetStatusRequest::default();
    admin(&server).await.get_status(status).await.unwrap();
    let (_, _, metrics) = page(&server, "/metrics").await;
    for line in [
        "doorward_calls_refused_total 2\n",
        "doorward_limit_refused_total{limit=\"calls\"} 2\n",
        "doorward_limit_max{limit=\"calls\"} 1.0\n",
        "doorward_limit_used{limit=\"calls\"} 1.0\n",
    ] {
        assert!(metrics.contains(line), "{line}{metrics}");
    }

    body.send_data(framed(&asks()), true).unwrap();
    let answer = held_up.await.unwrap();
    assert_eq!(answer.status(), 200);
    let mut answer = answer.into_body();
    while answer.data().await.is_some() {}
    let response = get(&mut client, "b", vec![asked("fair/x", 10.0)]).await;
    assert_eq!(only(&response).gets.capacity, 10.0);
}

/// A server that takes one call at once, and is busy with one of which only the headers have come.
struct Busy {
    server: Server,
    held_up: h2::client::ResponseFuture,
    body: h2::SendStream<Bytes>,
}

impl Busy {
    async fn start() -> Self {
        let config = Config {
            calls_max: NonZeroUsize::MIN,
            ..config()
        };
        let server = Server::start(config).await.unwrap();
        let mut send = connect(&server).await;
        let (held_up, body) = send.send_request(headers(&server), false).unwrap();
        let busy = Self {
            server,
            held_up,
            body,
        };
        busy.until_has_room(false).await;
        busy
    }

    async fn until_has_room(&self, has_room: bool) {
        let mut client = capacity(&self.server).await;
        crate::running::eventually(&format!("has room: {has_room}"), async || {
            client.get_capacity(asks()).await.is_ok() == has_room
        })
        .await;
    }
}

fn asks() -> GetCapacityRequest {
    request("a", vec![asked("fair/x", 10.0)])
}

#[tokio::test]
async fn a_caller_that_goes_makes_room() {
    let mut busy = Busy::start().await;
    busy.body.send_reset(h2::Reason::CANCEL);
    busy.until_has_room(true).await;
}

#[tokio::test]
async fn a_call_that_never_comes_does_not_keep_others_away() {
    let mut busy = Busy::start().await;
    busy.until_has_room(true).await;
    // It is answered all the same, should it come.
    busy.body.send_data(framed(&asks()), true).unwrap();
    assert_eq!(busy.held_up.await.unwrap().status(), 200);
}
