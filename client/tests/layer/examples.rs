//! The examples, as a program runs them.

#![allow(dead_code, reason = "the main functions of the examples")]

use std::time::Duration;

use doorward::Client;
use tokio::time::Instant;
use tower::ServiceExt as _;

#[path = "../../examples/api.rs"]
mod api;
#[path = "../../examples/grpc.rs"]
mod grpc;
#[path = "../../examples/llm_gateway.rs"]
mod llm_gateway;
#[path = "../../examples/overload.rs"]
mod overload;

#[tokio::test]
async fn the_api_limits_each_user() {
    let app = api::app().unwrap().into_service::<axum::body::Body>();
    let mut answers = Vec::new();
    for user in ["ann", "ann", "ann", "ann", "ann", "ann", "bob"] {
        let mut request = crate::stand::request(user);
        *request.uri_mut() = "/orders".parse().unwrap();
        let response = app.clone().oneshot(request).await.unwrap();
        answers.push(response.status().as_u16());
    }
    assert_eq!(answers, [200, 200, 200, 200, 200, 429, 200]);
}

#[tokio::test]
async fn the_service_of_grpc_has_its_limits() {
    grpc::limits().unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_gateway_settles_what_its_requests_used() {
    let (client, server) = Client::fake("gateway-1");
    server.set_capacity("llm/requests", 1.0);
    let gateway = llm_gateway::Gateway::open(&client).unwrap();
    let began = Instant::now();
    for _ in 0..100 {
        let answer = gateway.complete("acme", "leases").await.unwrap();
        assert_eq!(answer, "about leases");
    }
    // By estimates alone it would take a minute: 50,000 tokens at 1,000 a second. It used 2,150.
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
}

/// Requests of a class, and those that were answered.
#[derive(Default)]
struct Answered {
    sent: u32,
    ok: u32,
}

/// The service works on four requests at once, and 60 clients have one each. Six of them are critical.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_overloaded_service_answers_critical_requests() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = overload::app(4);
    let app = app.into_make_service_with_connect_info::<std::net::SocketAddr>();
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    // Each client has one request at a time, so the load follows the speed of this machine.
    let clients = (0..60u32).map(|number| {
        tokio::spawn(async move {
            let tier = ["CRITICAL", "LOW"][usize::from(number % 10 != 0)];
            let mut answered = Answered::default();
            for _ in 0..50 {
                let status = get(address, "/search", tier).await;
                answered.sent += 1;
                answered.ok += u32::from(status == 200);
            }
            (tier, answered)
        })
    });
    let clients: Vec<_> = clients.collect();
    let mut shares = std::collections::BTreeMap::<&str, Answered>::new();
    for client in clients {
        let (tier, answered) = client.await.unwrap();
        let share = shares.entry(tier).or_default();
        share.sent += answered.sent;
        share.ok += answered.ok;
    }
    server.abort();
    let share = |tier| f64::from(shares[tier].ok) / f64::from(shares[tier].sent);
    assert!(share("CRITICAL") >= 0.95, "{}", share("CRITICAL"));
    assert!(share("LOW") < 0.9, "{}: this is no overload", share("LOW"));
}

/// Sends one request on a connection of its own, and returns the status.
async fn get(address: std::net::SocketAddr, path: &str, tier: &str) -> u16 {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\nx-doorward-criticality: {tier}\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response.split(' ').nth(1).unwrap().parse().unwrap()
}
