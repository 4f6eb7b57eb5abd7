//! The examples, as a program runs them.

#![allow(dead_code, reason = "the main functions of the examples")]

use std::time::Duration;

use doorward_tower::client::Client;
use tokio::time::Instant;
use tower::ServiceExt as _;

#[path = "../../examples/api.rs"]
mod api;
#[path = "../../examples/grpc.rs"]
mod grpc;
#[path = "../../examples/llm_gateway.rs"]
mod llm_gateway;
#[path = "../../examples/worker.rs"]
mod worker;

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
async fn the_worker_keeps_to_its_lease() {
    let (client, server) = Client::fake("worker-1");
    server.set_capacity("example/fair", 10.0);
    let began = Instant::now();
    worker::work(&client, 50).await.unwrap();
    let took = began.elapsed().as_secs_f64();
    assert!((4.8..5.1).contains(&took), "{took}");
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
