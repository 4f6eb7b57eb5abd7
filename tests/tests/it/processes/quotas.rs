//! Streams of Envoy's quotas that break while the server stands still.

use std::fs;
use std::time::Duration;

use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_response::bucket_action::BucketAction;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_service_client::RateLimitQuotaServiceClient;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_usage_reports::BucketQuotaUsage;
use doorward_proto::envoy::rate_limit_quota::rate_limit_strategy::Strategy;
use doorward_proto::envoy::rate_limit_quota::{
    BucketId, RateLimitQuotaResponse, RateLimitQuotaUsageReports,
};
use doorward_tests::processes::Server;
use doorward_tests::proxy::Proxy;
use doorward_tests::template_file::TemplateFile;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;
use tonic::{Code, Streaming};

const RULES: &str = "
domain: api
descriptors:
- {key: user, scope: shared, rate_limit: {rate: 300/s, algorithm: token_bucket}}
";

const TEMPLATES: &str = "
resources:
- identifier_glob: shared/api/user=*
  capacity: 300
  algorithm: {kind: FAIR_SHARE, lease_length: 3s, refresh_interval: 1s, learning_mode_duration: 0s}
";

/// An Envoy with one bucket.
struct Envoy {
    reports: mpsc::Sender<RateLimitQuotaUsageReports>,
    answers: Streaming<RateLimitQuotaResponse>,
}

impl Envoy {
    /// Opens a stream.
    async fn open(address: &str) -> Self {
        let endpoint = Endpoint::new(format!("http://{address}")).unwrap();
        let mut client = RateLimitQuotaServiceClient::new(endpoint.connect().await.unwrap());
        loop {
            let (reports, receiver) = mpsc::channel(4);
            reports.send(report()).await.unwrap();
            let answers = client.stream_rate_limit_quotas(ReceiverStream::new(receiver));
            match answers.await {
                Ok(answers) => {
                    let answers = answers.into_inner();
                    return Self { reports, answers };
                }
                // The rules are not read yet.
                Err(status) => assert_eq!(status.code(), Code::Unavailable, "{status}"),
            }
        }
    }

    /// Returns the next rate of the bucket, in requests per second.
    async fn rate(&mut self) -> f64 {
        let answer = self.answers.message().await.unwrap().unwrap();
        let action = answer.bucket_action.into_iter().next().unwrap();
        let Some(BucketAction::QuotaAssignmentAction(action)) = action.bucket_action else {
            panic!("{action:?}");
        };
        match action.rate_limit_strategy.unwrap().strategy.unwrap() {
            Strategy::TokenBucket(bucket) => f64::from(bucket.tokens_per_fill.unwrap()) / 1_000.0,
            _ => 0.0,
        }
    }
}

fn report() -> RateLimitQuotaUsageReports {
    let usage = BucketQuotaUsage {
        bucket_id: Some(BucketId {
            bucket: [("user".to_owned(), "ann".to_owned())].into(),
        }),
        time_elapsed: Some(prost_types::Duration {
            seconds: 1,
            nanos: 0,
        }),
        num_requests_allowed: 0,
        num_requests_denied: 2_000,
    };
    RateLimitQuotaUsageReports {
        domain: "api".to_owned(),
        bucket_quota_usages: vec![usage],
    }
}

#[tokio::test]
async fn a_stream_that_broke_while_the_server_stood_still_keeps_nothing_reserved() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("api.yaml"), RULES).unwrap();
    let templates = TemplateFile::new(TEMPLATES);
    let rules = folder.path().display().to_string();
    let server = Server::start(&["--rules", &rules, "--templates", &templates.path]);
    let mut proxy = Proxy::to(&server.address);
    let mut one = Envoy::open(&proxy.address()).await;
    while one.rate().await != 300.0 {}

    server.freeze();
    one.reports.send(report()).await.unwrap();
    // Meanwhile all leases and assignments end.
    let on = async { while one.answers.message().await.unwrap().is_some() {} };
    assert!(timeout(Duration::from_secs(4), on).await.is_err());
    proxy.sever();
    server.thaw();

    // Until its identity has a lease again, it is told 0, and perhaps a half until the other stream has ended. An
    // assignment on a dead stream would stay reserved for longer than this.
    let mut other = Envoy::open(&server.address).await;
    let all = async { while other.rate().await != 300.0 {} };
    assert!(timeout(Duration::from_secs(10), all).await.is_ok());
}
