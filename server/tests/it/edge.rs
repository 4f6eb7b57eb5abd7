//! Envoy's services and the HTTP doors of a running server: they decide by its rules, with leases of its node.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use doorward_engine::templates::{AlgorithmKind, Templates};
use doorward_proto::envoy::rate_limit_quota as rlqs;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_response::bucket_action::BucketAction;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_service_client::RateLimitQuotaServiceClient;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_usage_reports::BucketQuotaUsage;
use doorward_proto::envoy::rate_limit_quota::rate_limit_strategy::Strategy;
use doorward_proto::envoy::ratelimit as rls;
use doorward_proto::envoy::ratelimit::rate_limit_response::Code;
use doorward_proto::envoy::ratelimit::rate_limit_service_client::RateLimitServiceClient;
use doorward_server::app::{Server, ServerConfig};
use doorward_server::edge::EdgeDoors;
use doorward_server::rules::store::RulesPlace;
use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::running::{channel, config, eventually, page, started, template};

/// Interval between two reads of the rules.
const POLL: Duration = Duration::from_millis(20);

const RULES: &str = "
domain: api
descriptors:
- key: user
  rate_limit: {rate: 2/day}
- key: tenant
  scope: shared
  max_wait: 10s
  rate_limit: {rate: 1000/s, algorithm: token_bucket}
";

/// An agent that is the root of its tree, with the rules of a file.
async fn agent(rules: &str) -> (TempDir, Server, RateLimitServiceClient<Channel>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limits.yaml");
    fs::write(&path, rules).unwrap();
    let globs = ["shared/api/tenant=*", "shared/api/api_key==*"];
    let shared = globs.map(|glob| template(glob, AlgorithmKind::FairShare, 100.0));
    let server = started(ServerConfig {
        rules: Some(RulesPlace::File(path, POLL)),
        templates: Templates::parse(&shared).unwrap(),
        doors: EdgeDoors {
            has_http: true,
            ..EdgeDoors::default()
        },
        ..config()
    })
    .await;
    let mut client = RateLimitServiceClient::new(channel(&server).await);
    let mut is_limited = async || {
        let answer = client.should_rate_limit(asked("user", "nobody", "")).await;
        answer.is_ok_and(|it| it.into_inner().statuses[0].current_limit.is_some())
    };
    eventually("the rules are in force", &mut is_limited).await;
    (folder, server, client)
}

/// Returns a request of a caller with one descriptor.
fn asked(key: &str, value: &str, caller: &'static str) -> Request<rls::RateLimitRequest> {
    let entry = rls::rate_limit_descriptor::Entry {
        key: key.to_owned(),
        value: value.to_owned(),
    };
    let mut request = Request::new(rls::RateLimitRequest {
        domain: "api".to_owned(),
        descriptors: vec![rls::RateLimitDescriptor {
            entries: vec![entry],
            ..rls::RateLimitDescriptor::default()
        }],
        hits_addend: 0,
    });
    if !caller.is_empty() {
        let name = caller.parse().unwrap();
        request.metadata_mut().insert("x-doorward-client", name);
    }
    request
}

fn is_ok(answer: &rls::RateLimitResponse) -> bool {
    answer.overall_code() == Code::Ok
}

#[tokio::test]
async fn rls_and_http_count_the_same_limit() {
    let (_folder, server, mut client) = agent(RULES).await;
    let first = client.should_rate_limit(asked("user", "ann", "")).await;
    let first = first.unwrap().into_inner();
    assert!(is_ok(&first));
    assert_eq!(first.statuses[0].limit_remaining, 1);
    let limit = first.statuses[0].current_limit.as_ref().unwrap();
    assert_eq!(limit.requests_per_unit, 2);

    assert_eq!(check(&server, "ann").await, "200");

    let third = client.should_rate_limit(asked("user", "ann", "")).await;
    let third = third.unwrap().into_inner();
    assert!(!is_ok(&third));
    let headers = third.response_headers_to_add.iter();
    let mut names: Vec<&str> = headers.map(|it| it.key.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["RateLimit", "RateLimit-Policy", "Retry-After"]);
    assert_eq!(check(&server, "ann").await, "429");
}

/// Returns the status of `/v1/check` for a user.
async fn check(server: &Server, user: &str) -> String {
    let body = format!(r#"{{"domain": "api", "entries": {{"user": "{user}"}}}}"#);
    post(server, "/v1/check", &body).await
}

/// Returns the status of a request with a body.
async fn post(server: &Server, path: &str, body: &str) -> String {
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(server.http_address().unwrap())
        .await
        .unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer[9..12].to_owned()
}

#[tokio::test]
async fn an_identity_of_callers_of_a_shared_rule_is_a_holder_of_the_node() {
    let (_folder, server, mut client) = agent(RULES).await;
    for caller in ["envoy-1", "envoy-2"] {
        let answer = client
            .should_rate_limit(asked("tenant", "acme", caller))
            .await;
        assert!(is_ok(&answer.unwrap().into_inner()), "{caller}");
    }
    let path = "/status?id=shared/api/tenant=acme&leases=9";
    let (_, _, status) = page(&server, path).await;
    assert!(status.contains("caller:127.0.0.1"), "{status}");
}

#[tokio::test]
async fn an_invalid_request_says_what_is_missing() {
    let (_folder, server, mut client) = agent(RULES).await;
    let mut request = asked("user", "ann", "");
    request.get_mut().domain.clear();
    let refused = client.should_rate_limit(request).await.unwrap_err();
    assert!(
        refused.message().starts_with("domain: is empty"),
        "{refused}"
    );
    let mut request = asked("user", "ann", "");
    request.get_mut().descriptors.clear();
    let refused = client.should_rate_limit(request).await.unwrap_err();
    assert!(
        refused.message().starts_with("descriptors: is empty"),
        "{refused}"
    );

    // A stream keeps its domain.
    for domain in ["", &"x".repeat(2_000)] {
        let (_reports, mut answers) = quotas(&server, domain).await;
        let refused: Status = answers.message().await.unwrap_err();
        assert!(
            refused
                .message()
                .starts_with("domain: is empty or too long"),
            "{refused}"
        );
    }
}

#[tokio::test]
async fn each_door_counts_for_the_rule_and_all_looks_show_it() {
    let rules = RULES.replace("2/day", "1/day").replace(
        "- key: tenant",
        "- key: team\n  rate_limit: {rate: 1/s}\n- key: tenant",
    );
    let (_folder, server, mut client) = agent(&rules).await;
    assert_eq!(check(&server, "ann").await, "200");
    assert_eq!(check(&server, "ann").await, "429");
    let refused = client.should_rate_limit(asked("user", "ann", "")).await;
    assert!(!is_ok(&refused.unwrap().into_inner()));
    // The bucket reports 10 denied requests.
    let (_reports, mut answers) = quotas(&server, "api").await;
    answers.message().await.unwrap();
    let (_, _, status) = page(&server, "/status").await;
    let status: Value = serde_json::from_str(&status).unwrap();
    let decisions = status["rule_decisions"].as_array().unwrap();
    let rules = decisions.iter().map(|it| {
        (
            it["rule"].as_str().unwrap(),
            it["refused_count"].as_u64().unwrap(),
        )
    });
    assert_eq!(
        rules.collect::<Vec<_>>(),
        [("api.tenant", 10), ("api.user", 2)]
    );
    assert_eq!(decisions[1]["domain"], "api");
    assert!(decisions[1]["refused_age_ms"].is_number(), "{status}");
    let (_, _, metrics) = page(&server, "/metrics").await;
    for line in [
        r#"rule="api.user",outcome="refused"} 2"#,
        r#"rule="api.tenant",outcome="refused"} 10"#,
        r#"rule="api.team",outcome="refused"} 0"#,
    ] {
        assert!(
            metrics.contains(&format!(r#"domain="api",{line}"#)),
            "{metrics}"
        );
    }
}

/// A key by a header is nowhere in clear, whichever door it came by, and all doors have one lease.
#[tokio::test]
async fn a_hashed_value_of_each_door_is_shown_nowhere() {
    let rules = format!(
        "{RULES}- {{key: api_key, hash: true, scope: shared, max_wait: 10s, rate_limit: {{rate: 5/s}}}}\n"
    );
    let (_folder, server, mut client) = agent(&rules).await;
    let asked = asked("api_key", "sk-live-1", "envoy");
    client.should_rate_limit(asked).await.unwrap();
    post(
        &server,
        "/v1/check",
        r#"{"domain": "api", "entries": {"api_key": "sk-live-1"}, "client": "job"}"#,
    )
    .await;
    let entry = r#"{"key": "api_key", "value": "sk-live-1"}"#;
    let body = format!(r#"{{"domain": "api", "descriptors": [{{"entries": [{entry}]}}]}}"#);
    post(&server, "/json", &body).await;
    let (_reports, mut answers) = reports(&server, "api", "api_key", "sk-live-1").await;
    answers.message().await.unwrap();
    // `printf 'api_key\\0sk-live-1' | sha256sum | head -c 32`
    let resource = "shared/api/api_key==42b13d4b489581ca068d4528b06bb6eb";
    let tree = format!("/tree?id={}", resource.replace('=', "%3D"));
    for path in ["/status?leases=9", &tree, "/metrics"] {
        let (_, _, text) = page(&server, path).await;
        assert!(!text.contains("sk-live-1"), "{path}: {text}");
        assert!(text.contains(resource), "{path}: {text}");
    }
    let (_, _, status) = page(&server, "/status?leases=9").await;
    let status: Value = serde_json::from_str(&status).unwrap();
    let resources = status["resources"].as_array().unwrap();
    assert_eq!(resources.len(), 1, "{status}");
    let holders = resources[0]["leases"].as_array().unwrap().len();
    assert_eq!(holders, 1, "all are of one address: {status}");
}

/// Opens a stream that reports a bucket of 10 requests.
async fn quotas(
    server: &Server,
    domain: &str,
) -> (
    mpsc::Sender<rlqs::RateLimitQuotaUsageReports>,
    tonic::Streaming<rlqs::RateLimitQuotaResponse>,
) {
    reports(server, domain, "tenant", "acme").await
}

async fn reports(
    server: &Server,
    domain: &str,
    key: &str,
    value: &str,
) -> (
    mpsc::Sender<rlqs::RateLimitQuotaUsageReports>,
    tonic::Streaming<rlqs::RateLimitQuotaResponse>,
) {
    let (reports, receiver) = mpsc::channel(4);
    let bucket = BTreeMap::from([(key.to_owned(), value.to_owned())]);
    let usage = BucketQuotaUsage {
        bucket_id: Some(rlqs::BucketId { bucket }),
        time_elapsed: None,
        num_requests_allowed: 0,
        num_requests_denied: 10,
    };
    let report = rlqs::RateLimitQuotaUsageReports {
        domain: domain.to_owned(),
        bucket_quota_usages: vec![usage],
    };
    reports.send(report).await.unwrap();
    let mut client = RateLimitQuotaServiceClient::new(channel(server).await);
    let answers = client.stream_rate_limit_quotas(ReceiverStream::new(receiver));
    (reports, answers.await.unwrap().into_inner())
}

#[tokio::test]
async fn nothing_is_decided_before_rules_are_read() {
    let server = started(ServerConfig {
        rules: Some(RulesPlace::File("/nowhere/limits.yaml".into(), POLL)),
        doors: EdgeDoors {
            has_http: true,
            ..EdgeDoors::default()
        },
        ..config()
    })
    .await;
    let mut client = RateLimitServiceClient::new(channel(&server).await);
    let refused = client.should_rate_limit(asked("user", "ann", "")).await;
    assert_eq!(refused.unwrap_err().code(), tonic::Code::Unavailable);
    assert_eq!(check(&server, "ann").await, "503");
    let mut client = RateLimitQuotaServiceClient::new(channel(&server).await);
    let refused = client.stream_rate_limit_quotas(tokio_stream::empty()).await;
    assert_eq!(refused.unwrap_err().code(), tonic::Code::Unavailable);
}

#[tokio::test]
async fn a_nested_rule_has_a_template_of_its_own() {
    let rules = "
domain: api
descriptors:
- key: user
  rate_limit: {rate: 300/s, algorithm: token_bucket}
  descriptors:
  - key: path
    rate_limit: {rate: 10/s, algorithm: token_bucket}
- key: user
  value: ann
  rate_limit: {rate: 20/s, algorithm: token_bucket}
- key: token
  value: '*a'
  rate_limit: {rate: 2/s}
- key: token
  hash: true
  rate_limit: {rate: 1/s}
- key: tenant
  scope: budget
  rate_limit: {rate: 1000/h}
";
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limits.yaml");
    fs::write(&path, rules).unwrap();
    let server = started(ServerConfig {
        rules: Some(RulesPlace::File(path, POLL)),
        doors: EdgeDoors {
            makes_templates: true,
            ..EdgeDoors::default()
        },
        ..config()
    })
    .await;
    let templates = || {
        server.state().node().read(|node, _| {
            let all = node.active_templates().templates().iter();
            let all = all.map(|it| (it.identifier_glob.to_string(), it.capacity.get()));
            all.collect::<Vec<_>>()
        })
    };
    let mut are_in_force = async || templates().len() == 6;
    eventually("templates are in force", &mut are_in_force).await;
    // The first one that matches counts.
    let expected = [
        ("shared/api/user=*,path=*", 10.0),
        ("shared/api/user=ann", 20.0),
        // No hash counts by the star, whatever its end.
        ("shared/api/token==*", 1.0),
        ("shared/api/token=*a", 2.0),
        ("shared/api/user=*", 300.0),
        // An amount, and no rate.
        ("shared/api/tenant=*", 1_000.0),
    ];
    assert_eq!(
        templates(),
        expected.map(|(glob, rate)| (glob.to_owned(), rate))
    );
}

#[tokio::test]
async fn a_bucket_gets_a_lease_of_the_node_as_its_rate() {
    let (_folder, server, _client) = agent(RULES).await;
    let (_reports, mut answers) = quotas(&server, "api").await;
    let answer = answers.message().await.unwrap().unwrap();
    let action = answer.bucket_action[0].bucket_action.as_ref().unwrap();
    let BucketAction::QuotaAssignmentAction(action) = action else {
        panic!("{action:?}");
    };
    let strategy = action.rate_limit_strategy.as_ref().unwrap();
    let Some(Strategy::TokenBucket(bucket)) = &strategy.strategy else {
        panic!("{strategy:?}");
    };
    // A new bucket wants a tenth of the rule's rate, and has all of it.
    assert_eq!(bucket.tokens_per_fill, Some(100_000));
}

#[tokio::test]
async fn a_changed_file_is_in_force_and_an_invalid_one_changes_nothing() {
    let (folder, _server, mut client) = agent(RULES).await;
    let path = folder.path().join("limits.yaml");
    let invalid = "domain: api\ndescriptors: [{key: user, rate_limit: {rate: much}}]\n";
    fs::write(&path, invalid).unwrap();
    fs::write(&path, RULES.replace("2/day", "7/day")).unwrap();
    let mut is_new = async || {
        let answer = client.should_rate_limit(asked("user", "nobody", "")).await;
        let limit = answer.unwrap().into_inner().statuses[0]
            .current_limit
            .clone();
        let rate = limit.expect("a limit is always in force").requests_per_unit;
        assert!([2, 7].contains(&rate), "{rate}");
        rate == 7
    };
    eventually("the new rate is in force", &mut is_new).await;
}
