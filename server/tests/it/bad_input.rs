//! Bad input at the door: the caller gets a clear error, and the server loses nothing.

use doorward_proto::doorman::{GetCapacityRequest, refusal};
use doorward_server::app::Server;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Code, Request, Status};
use tonic_prost::ProstCodec;

use crate::running::{
    asked, asked_with, capacity, channel, get, gets, metrics, request, start, status_of,
};

/// Sends a request that the server refuses as a whole, and returns the error.
async fn refused_as_a_whole(server: &Server, request: GetCapacityRequest) -> Status {
    let mut client = capacity(server).await;
    let error = client.get_capacity(request).await.expect_err("refused");
    assert_eq!(error.code(), Code::InvalidArgument, "{error:?}");
    let status = status_of(server.state(), None, 0);
    assert_eq!(status.resources, [], "it must change nothing");
    error
}

#[tokio::test]
async fn a_malformed_client_id_is_refused() {
    let server = start().await;
    let error = refused_as_a_whole(&server, request("", vec![asked("fair/x", 1.0)])).await;
    assert!(error.message().contains("client_id is empty"), "{error:?}");
}

#[tokio::test]
async fn a_thousand_resources_in_one_request_are_served_and_more_are_refused() {
    let server = start().await;
    let asks = |count| (0..count).map(|n| asked(&format!("fair/{n}"), 1.0));
    let error = refused_as_a_whole(&server, request("a", asks(10_000).collect())).await;
    assert!(error.message().contains("names 10000 resources"));
    assert!(error.message().contains("split it"));
    let mut client = capacity(&server).await;
    let response = get(&mut client, "a", asks(1_000).collect()).await;
    assert_eq!(response.response.len(), 1_000);
}

/// A request like those above, whose texts may be any bytes.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RawRequest {
    #[prost(bytes = "vec", tag = "1")]
    pub(crate) client_id: Vec<u8>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) resource: Vec<RawResource>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RawResource {
    #[prost(bytes = "vec", tag = "1")]
    resource_id: Vec<u8>,
}

#[tokio::test]
async fn texts_that_are_not_utf_8_are_the_callers_mistake() {
    let server = start().await;
    let bad = vec![0xff, 0xfe];
    let resource = RawResource {
        resource_id: bad.clone(),
    };
    for (client_id, resource) in [(bad, Vec::new()), (b"a".to_vec(), vec![resource])] {
        let raw = RawRequest {
            client_id,
            resource,
        };
        let mut grpc = Grpc::new(channel(&server).await);
        grpc.ready().await.expect("connected");
        let path = PathAndQuery::from_static("/doorman.Capacity/GetCapacity");
        let codec = ProstCodec::<RawRequest, GetCapacityRequest>::default();
        let answer = grpc.unary(Request::new(raw), path, codec).await;
        let error = answer.expect_err("refused");
        assert_eq!(error.code(), Code::InvalidArgument, "{error:?}");
        assert!(error.message().contains("UTF-8"), "{error:?}");
    }
}

#[tokio::test]
async fn a_resource_twice_in_one_request_counts_once_and_says_so() {
    let server = start().await;
    let mut client = capacity(&server).await;
    let asks = vec![asked("fair/x", 10.0), asked("fair/x", 20.0)];
    let response = get(&mut client, "a", asks).await;
    assert_eq!(response.response.len(), 1);
    assert_eq!(response.response[0].gets.capacity, 10.0);
    let [refused] = response.refused.as_slice() else {
        panic!("{response:?}");
    };
    assert_eq!(refused.reason(), refusal::Reason::InvalidRequest);
    assert!(refused.message().contains("more than once"));
}

#[tokio::test]
async fn claiming_to_have_what_was_never_granted_takes_nothing_from_others() {
    let server = start().await;
    let mut client = capacity(&server).await;
    get(&mut client, "honest", vec![asked("fair/x", 60.0)]).await;
    let liar = gets(&mut client, "liar", asked_with("fair/x", 60.0, 1e9)).await;
    assert!(liar <= 40.0 + 1e-9);
    let status = status_of(server.state(), None, 0);
    assert!(status.resources[0].granted <= 100.0 + 1e-9, "{status:?}");
}

#[tokio::test]
async fn priorities_at_the_ends_of_their_range_are_served_in_order() {
    let server = start().await;
    let mut client = capacity(&server).await;
    for (id, priority, expected) in [("high", i64::MAX, 70.0), ("low", i64::MIN, 30.0)] {
        let mut ask = asked("bands", 70.0);
        ask.priority = priority;
        assert_eq!(gets(&mut client, id, ask).await, expected, "{id}");
    }
}

#[tokio::test]
async fn a_message_above_the_limit_is_refused_and_the_server_goes_on() {
    let server = start().await;
    let mut client = capacity(&server).await;
    let huge = request(&"x".repeat(5 * 1024 * 1024), Vec::new());
    let error = client.get_capacity(huge).await.expect_err("too large");
    assert_eq!(error.code(), Code::OutOfRange, "{error:?}");
    get(&mut client, "a", vec![asked("fair/x", 1.0)]).await;
}

#[tokio::test]
async fn a_method_that_does_not_exist_is_unimplemented() {
    let server = start().await;
    let mut grpc = Grpc::new(channel(&server).await);
    grpc.ready().await.expect("connected");
    let path = PathAndQuery::from_static("/doorman.Capacity/GiveMeAll");
    let codec = ProstCodec::<GetCapacityRequest, GetCapacityRequest>::default();
    let answer = grpc.unary(Request::new(request("a", vec![])), path, codec);
    assert_eq!(answer.await.expect_err("no").code(), Code::Unimplemented);
    // Names that callers make up do not become time series.
    assert!(!metrics(&server).await.contains("GiveMeAll"));
}

#[tokio::test]
async fn noise_on_the_grpc_port_is_harmless() {
    let server = start().await;
    let noises: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        b"",
        &[0; 100_000],
    ];
    for noise in noises {
        let mut stream = TcpStream::connect(server.grpc_address()).await.unwrap();
        // The server may close the connection before all bytes are sent.
        let _ = stream.write_all(noise).await;
        let _ = stream.shutdown().await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
    }
    let mut client = capacity(&server).await;
    assert_eq!(gets(&mut client, "a", asked("fair/x", 1.0)).await, 1.0);
}
