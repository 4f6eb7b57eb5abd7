//! Calls of gRPC behind rules.

use axum::http::header::CONTENT_TYPE;
use doorward::layer::{LimitLayer, Limits};
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Endpoint, Server};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tonic_types::StatusExt as _;

use crate::stand::{app, limits, request, send};

const ONE: &str = "- key: user\n  rate_limit: {rate: 1/h, algorithm: token_bucket, burst: 1}\n";

#[track_caller]
fn check(refused: &Status) {
    assert_eq!(refused.code(), Code::ResourceExhausted);
    assert_eq!(refused.message(), "over the limit");
    let retry = refused
        .get_details_retry_info()
        .unwrap()
        .retry_delay
        .unwrap();
    assert!((3_599..=3_601).contains(&retry.as_secs()), "{retry:?}");
    let quota = refused.get_details_quota_failure().unwrap();
    assert_eq!(quota.violations[0].subject, "api.user");
    assert!(refused.metadata().get("ratelimit").is_some());
}

#[tokio::test]
async fn the_layer_answers_a_call_with_a_status_and_its_details() {
    let app = app(&limits(ONE));
    let call = || {
        let mut request = request("ann");
        let kind = "application/grpc+proto".parse().unwrap();
        request.headers_mut().insert(CONTENT_TYPE, kind);
        request
    };
    send(&app, call()).await;
    let refused = send(&app, call()).await;
    assert_eq!(refused.status(), 200);
    check(&Status::from_header_map(refused.headers()).unwrap());
}

/// Starts a service behind the interceptor, and behind the layer too if that is so.
async fn serve(limits: &Limits, has_layer: bool) -> Endpoint {
    let (_reporter, health) = tonic_health::server::health_reporter();
    let service = InterceptedService::new(health, limits.interceptor());
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    if has_layer {
        let layer = LimitLayer::new(limits.clone());
        let server = Server::builder().layer(layer).add_service(service);
        tokio::spawn(server.serve(address));
    } else {
        tokio::spawn(Server::builder().add_service(service).serve(address));
    }
    Endpoint::from_shared(format!("http://{address}")).unwrap()
}

/// Calls a service as a user until it answers at all.
async fn call(to: &Endpoint, user: &'static str) -> Result<(), Status> {
    let channel = loop {
        if let Ok(channel) = to.connect().await {
            break channel;
        }
        tokio::task::yield_now().await;
    };
    let mut request = Request::new(HealthCheckRequest::default());
    let user = user.parse().unwrap();
    request.metadata_mut().insert("x-user", user);
    HealthClient::new(channel).check(request).await.map(drop)
}

#[tokio::test]
async fn the_interceptor_answers_as_the_layer_and_both_count_a_call_once() {
    let by_address =
        "- key: remote_address\n  rate_limit: {rate: 2/h, algorithm: token_bucket, burst: 2}\n";
    for has_layer in [false, true] {
        let server = serve(&limits(&format!("{ONE}{by_address}")), has_layer).await;
        call(&server, "ann").await.unwrap();
        check(&call(&server, "ann").await.unwrap_err());
        call(&server, "bob").await.unwrap();
        // The refused call counted nothing, so the address has had two.
        let refused = call(&server, "eve").await.unwrap_err();
        let quota = refused.get_details_quota_failure().unwrap();
        assert_eq!(quota.violations[0].subject, "api.remote_address");
    }
}

#[tokio::test]
async fn the_interceptor_refuses_a_call_that_would_wait_and_counts_nothing_of_it() {
    for rule in [
        "{rate: 2/min, algorithm: token_bucket, burst: 1}\n  action: wait",
        "{rate: 2/min, algorithm: leaky_queue}",
    ] {
        let rules = format!("- key: user\n  max_wait: 60s\n  rate_limit: {rule}\n");
        let server = serve(&limits(&rules), false).await;
        call(&server, "ann").await.unwrap();
        for _ in 0..3 {
            let refused = call(&server, "ann").await.unwrap_err();
            assert_eq!(refused.code(), Code::ResourceExhausted);
            let retry = refused.get_details_retry_info().unwrap().retry_delay;
            let seconds = retry.unwrap().as_secs();
            // The refused ones do not add to it.
            assert!((20..=31).contains(&seconds), "{rule}: {seconds}");
        }
    }
}
