//! Start on a taken port, and shutdown without loss of calls in flight.

use std::time::Duration;

use doorward_server::app::{Server, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_stream::StreamExt;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;

use crate::running::{asked, capacity, channel, config, get, page, start};

#[tokio::test]
async fn a_taken_port_is_named_with_what_to_do() {
    let first = start().await;
    let config = ServerConfig {
        listen: first.grpc_address().into(),
        ..config()
    };
    let error = Server::start(config).await.expect_err("taken").to_string();
    assert!(error.contains(&first.grpc_address().to_string()), "{error}");
    assert!(error.contains("--listen"), "{error}");
}

#[tokio::test]
async fn an_idle_connection_does_not_hold_up_a_shutdown() {
    let server = start().await;
    let address = server.grpc_address();
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("fair/x", 1.0)]).await;
    assert!(server.shutdown().await);
    TcpStream::connect(address)
        .await
        .expect_err("nobody listens any more");
}

#[tokio::test]
async fn connections_that_say_nothing_do_not_hold_up_a_shutdown() {
    let server = start().await;
    let http = server.http_address().expect("pages are on");
    let silent_grpc = TcpStream::connect(server.grpc_address()).await;
    let silent_http = TcpStream::connect(http).await;
    // Once the server serves a later connection, it has accepted the earlier ones.
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("fair/x", 1.0)]).await;
    assert_eq!(page(&server, "/healthz").await.0, 200);
    assert!(server.shutdown().await);
    drop((silent_grpc, silent_http));
}

#[tokio::test]
async fn a_health_watch_is_told_of_a_shutdown_and_ends() {
    let server = start().await;
    let mut health = HealthClient::new(channel(&server).await);
    let request = HealthCheckRequest {
        service: "doorman.Capacity".to_owned(),
    };
    let mut watch = health.watch(request).await.expect("served").into_inner();
    let first = watch.next().await.expect("a status").expect("no error");
    assert_eq!(first.status(), ServingStatus::Serving);
    assert!(server.shutdown().await);
    let mut last = ServingStatus::Serving;
    while let Some(Ok(answer)) = watch.next().await {
        last = answer.status();
    }
    assert_eq!(last, ServingStatus::NotServing);
}

/// Starts a raw GetCapacity call over HTTP/2, and sends only its headers.
async fn call_in_flight(server: &Server) -> h2::client::SendRequest<bytes::Bytes> {
    let stream = TcpStream::connect(server.grpc_address())
        .await
        .expect("it listens");
    let (send, connection) = h2::client::handshake(stream).await.expect("HTTP/2");
    tokio::spawn(connection);
    send.ready().await.expect("ready")
}

fn headers(server: &Server) -> tonic::codegen::http::Request<()> {
    tonic::codegen::http::Request::builder()
        .method("POST")
        .uri(format!(
            "http://{}/doorman.Capacity/Discovery",
            server.grpc_address()
        ))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(())
        .expect("a request")
}

#[tokio::test]
async fn a_call_in_flight_is_finished_before_the_server_ends() {
    let server = start().await;
    let mut send = call_in_flight(&server).await;
    let (answer, mut body) = send.send_request(headers(&server), false).expect("sent");
    // Once the server answers another call, it has the headers of the first.
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("fair/x", 1.0)]).await;
    let mut probe = send.clone().ready().await.expect("ready");
    let (probed, mut probe_body) = probe.send_request(headers(&server), false).expect("sent");
    probe_body
        .send_data(bytes::Bytes::from_static(&[0; 5]), true)
        .expect("sent");
    probed.await.expect("answered");

    let http = server.http_address().expect("pages are on");
    let ending = tokio::spawn(server.shutdown());
    // The pages last as long as calls are in flight, and say that the server takes no more.
    let mut page = TcpStream::connect(http).await.expect("it listens");
    loop {
        page.write_all(b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .expect("sent");
        let mut head = [0; 1024];
        let read = page.read(&mut head).await.expect("answered");
        if head[..read].starts_with(b"HTTP/1.1 503") {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert!(!ending.is_finished());
    body.send_data(bytes::Bytes::from_static(&[0; 5]), true)
        .expect("sent");
    let answer = answer.await.expect("answered");
    assert_eq!(answer.status(), 200);
    assert!(answer.headers().get("grpc-status").is_none_or(|s| s == "0"));
    drop((send, probe, page));
    assert!(ending.await.expect("no panic"));
}

#[tokio::test]
async fn a_call_that_never_finishes_is_cut_off_when_the_grace_is_over() {
    let config = ServerConfig {
        shutdown_grace: Duration::from_millis(50),
        ..config()
    };
    let server = Server::start(config).await.expect("free ports");
    let mut send = call_in_flight(&server).await;
    let (_answer, _body) = send.send_request(headers(&server), false).expect("sent");
    let mut probe = send.clone().ready().await.expect("ready");
    let (probed, mut probe_body) = probe.send_request(headers(&server), false).expect("sent");
    probe_body
        .send_data(bytes::Bytes::from_static(&[0; 5]), true)
        .expect("sent");
    probed.await.expect("answered");
    assert!(!server.shutdown().await);
}
