//! Calls of gRPC behind rules.

use axum::http::header::CONTENT_TYPE;
use tonic::{Code, Status};
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
