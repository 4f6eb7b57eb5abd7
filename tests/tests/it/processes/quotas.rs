//! Streams of Envoy's quotas that break while the server stands still, or because an agent is killed.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_response::bucket_action::BucketAction;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_service_client::RateLimitQuotaServiceClient;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_usage_reports::BucketQuotaUsage;
use doorward_proto::envoy::rate_limit_quota::rate_limit_strategy::Strategy;
use doorward_proto::envoy::rate_limit_quota::{
    BucketId, RateLimitQuotaResponse, RateLimitQuotaUsageReports,
};
use doorward_tests::processes::{Server, doorward_server, stderr};
use doorward_tests::proxy::Proxy;
use doorward_tests::template_file::TemplateFile;
use serde_json::Value;
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;
use tonic::{Code, Request, Streaming};

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
    /// Opens a stream, as an Envoy that wants more than there is.
    async fn open(address: &str) -> Self {
        Self::named("", address, [0, 2_000]).await
    }

    /// Opens a stream with a name, and reports a second in which so many requests were allowed and denied.
    async fn named(name: &str, address: &str, requests: [u64; 2]) -> Self {
        let endpoint = Endpoint::new(format!("http://{address}")).unwrap();
        let mut client = RateLimitQuotaServiceClient::new(endpoint.connect().await.unwrap());
        loop {
            let (reports, receiver) = mpsc::channel(4);
            reports.send(report(requests)).await.unwrap();
            let mut request = Request::new(ReceiverStream::new(receiver));
            let named = request.metadata_mut();
            named.insert("x-doorward-client", name.parse().unwrap());
            match client.stream_rate_limit_quotas(request).await {
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

fn report([allowed, denied]: [u64; 2]) -> RateLimitQuotaUsageReports {
    let usage = BucketQuotaUsage {
        bucket_id: Some(BucketId {
            bucket: [("user".to_owned(), "ann".to_owned())].into(),
        }),
        time_elapsed: Some(prost_types::Duration {
            seconds: 1,
            nanos: 0,
        }),
        num_requests_allowed: allowed,
        num_requests_denied: denied,
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
    one.reports.send(report([0, 2_000])).await.unwrap();
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

/// An agent with a state directory that says that nothing is in use. It can be killed and started again.
struct Agent {
    server: Server,
    flags: Vec<String>,
    _folders: [TempDir; 2],
}

impl Agent {
    fn start(more: &[&str]) -> Self {
        let folders = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let [rules, state] = folders.each_ref().map(|it| it.path().display().to_string());
        fs::write(folders[0].path().join("api.yaml"), RULES).unwrap();
        let made = doorward_server(&["state", "init", &state, "--node", "here/agent"]);
        assert!(made.status.success(), "{}", stderr(&made));
        let flags = ["--node", "here/agent", "--http-listen", "127.0.0.1:0"];
        let flags = [
            &flags[..],
            &["--rules", &rules, "--state-dir", &state],
            more,
        ]
        .concat();
        Self {
            server: Server::agent("127.0.0.1:0", &flags),
            flags: flags.into_iter().map(str::to_owned).collect(),
            _folders: folders,
        }
    }

    fn kill_and_start(mut self) -> Self {
        let address = self.server.address.clone();
        self.server.kill();
        let flags: Vec<&str> = self.flags.iter().map(String::as_str).collect();
        self.server = Server::agent(&address, &flags);
        self
    }

    async fn envoy(&self, name: &str, requests: [u64; 2]) -> Envoy {
        Envoy::named(name, &self.server.address, requests).await
    }

    /// Returns status and body of the answer to a request by HTTP.
    fn post(&mut self, path: &str, body: &str) -> (String, String) {
        let mut connection = TcpStream::connect(self.server.pages()).unwrap();
        let length = body.len();
        write!(
            connection,
            "POST {path} HTTP/1.0\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        connection.read_to_string(&mut answer).unwrap();
        (answer[9..12].to_owned(), answer)
    }

    /// Returns the lease of a program, once the agent has its rules.
    fn lease(&mut self, client: &str, wants: u32, has: u32) -> f64 {
        let has = format!(r#"{{"capacity": {has}, "expires_in_seconds": 10}}"#);
        let resource = "shared/api/user=ann";
        let body = format!(
            r#"{{"client": "{client}", "resource": "{resource}", "wants": {wants}, "has": {has}}}"#
        );
        loop {
            let (status, said) = self.post("/v1/lease", &body);
            if status == "200" {
                let lease: Value =
                    serde_json::from_str(said.split("\r\n\r\n").nth(1).unwrap()).unwrap();
                return lease["capacity"].as_f64().unwrap();
            }
        }
    }

    /// Returns the number of requests that the agent passes in a second, from the moment on in which it has its rules.
    fn passes_in_a_second(&mut self) -> u32 {
        let check = r#"{"domain": "api", "entries": {"user": "ann"}}"#;
        let (mut passed, mut began) = (0, None);
        while began.is_none_or(|began: Instant| began.elapsed() < Duration::from_secs(1)) {
            let (status, _) = self.post("/v1/check", check);
            if status != "503" {
                began.get_or_insert_with(Instant::now);
            }
            passed += u32::from(status == "200");
        }
        passed
    }
}

#[tokio::test]
async fn a_killed_agent_with_a_directory_goes_on_at_once_and_envoys_have_their_assignments_again() {
    let mut agent = Agent::start(&[]);
    // The first keeps its stream: a smaller assignment on the way to it would be its own after that.
    let [mut one, mut two] = [
        agent.envoy("one", [90, 0]).await,
        agent.envoy("two", [90, 0]).await,
    ];
    while two.rate().await < 91.8 {}
    while one.rate().await < 91.8 {}
    for _ in 0..2 {
        agent = agent.kill_and_start();
        // The Envoys use 91.8 each. A tenth of a second may pass at once. A busy machine asks for less.
        let passed = agent.passes_in_a_second();
        assert!((5..=117 + 13).contains(&passed), "{passed}");
        for name in ["one", "two"] {
            // It has just begun to count. A part of its share may be used by the agent's callers for a moment.
            let mut envoy = agent.envoy(name, [0, 0]).await;
            while envoy.rate().await != 91.8 {}
        }
    }
    let mut other = agent.envoy("three", [0, 2_000]).await;
    assert!(other.rate().await <= 116.4);
}

#[tokio::test]
async fn leases_of_programs_and_assignments_of_envoys_stay_reserved_beside_each_other() {
    let mut agent = Agent::start(&[]);
    let mut envoy = agent.envoy("one", [90, 0]).await;
    while envoy.rate().await < 91.8 {}
    assert_eq!(agent.lease("job", 50, 0), 50.0);

    agent = agent.kill_and_start();
    // The amount that programs have is unknown, so any may be in use.
    assert_eq!(agent.lease("other", 50, 0), 0.0);
    assert_eq!(agent.lease("job", 50, 50), 50.0);
    let mut envoy = agent.envoy("one", [0, 0]).await;
    assert_eq!(envoy.rate().await, 91.8);
}

#[tokio::test]
async fn an_envoy_of_a_killed_agent_with_a_parent_goes_on_too() {
    let templates = TemplateFile::new(&TEMPLATES.replace("3s", "16s"));
    let root = Server::start(&["--templates", &templates.path]);
    let mut agent = Agent::start(&["--parent", &root.address]);
    let mut envoy = agent.envoy("one", [90, 0]).await;
    while envoy.rate().await < 91.8 {}
    agent = agent.kill_and_start();
    let mut envoy = agent.envoy("one", [0, 0]).await;
    assert_eq!(envoy.rate().await, 91.8);
}
