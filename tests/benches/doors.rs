//! Floods at the doors of an agent and of a root with little memory, beside an honest Envoy that asks by RLS.
//!
//! `cargo bench -p doorward-tests --bench doors [-- NAME …]` takes about 75 s for each flood and program. It fails if an
//! honest request fails or is refused, if the 99th percentile is above ten times that without a flood, or if an agent
//! needs more than 256 MiB, or a root more than 512 MiB. `cargo test -p doorward-tests --bench doors` does the same with
//! programs of the profile `dev`.

use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use doorward_proto::admin::v1::rules_client::RulesClient;
use doorward_proto::admin::v1::{CheckRulesRequest, WatchRulesRequest};
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_service_client::RateLimitQuotaServiceClient;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_usage_reports::BucketQuotaUsage;
use doorward_proto::envoy::rate_limit_quota::{BucketId, RateLimitQuotaUsageReports};
use doorward_proto::envoy::ratelimit::rate_limit_descriptor::Entry;
use doorward_proto::envoy::ratelimit::rate_limit_response::Code;
use doorward_proto::envoy::ratelimit::rate_limit_service_client::RateLimitServiceClient;
use doorward_proto::envoy::ratelimit::{RateLimitDescriptor, RateLimitRequest};
use doorward_tests::attacker::attacker;
use doorward_tests::figures::memory;
use doorward_tests::honest::Served;
use doorward_tests::processes::{PATIENCE, Server};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::net::TcpSocket;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_stream::StreamExt as _;
use tonic::Request;
use tonic::transport::{Channel, Endpoint};

const RULES: &str = "
domain: api
descriptors:
- {key: user, scope: shared, max_wait: 1s, rate_limit: {rate: 300/s, algorithm: token_bucket}}
- {key: path, value: '*a*b*c*', rate_limit: {rate: 300/s}}
";

const ALONE: Duration = Duration::from_secs(10);
const BESIDE_FLOOD: Duration = Duration::from_secs(60);
/// Time between two honest requests: a third of the limit.
const PACE: Duration = Duration::from_millis(10);
/// Programs, with their memory and `--memory-max`.
const PROGRAMS: [(&str, u64, &str); 2] = [
    ("doorward-agent", 256 << 20, "128MiB"),
    ("doorward-server", 512 << 20, "256MiB"),
];
/// Template of the root for the rule.
const TEMPLATES: &str = "
resources:
- identifier_glob: shared/api/*
  capacity: 300
  algorithm: {kind: FAIR_SHARE, lease_length: 16s, refresh_interval: 1s, learning_mode_duration: 0s}
";
/// Callers or connections of a flood that has no other number.
const CALLERS: u64 = 64;
/// Least 99th percentile that counts as one.
const P99_MIN: Duration = Duration::from_millis(2);

/// A flood by name.
const FLOODS: [(&str, &str); 10] = [
    (
        "buckets",
        "40 quota streams with 20,000 buckets of 1 kB each, of a domain without rules",
    ),
    (
        "reports",
        "4 quota streams of one Envoy report 10^18 denied requests each second",
    ),
    (
        "empty-reports",
        "4 quota streams send messages of two million empty reports",
    ),
    (
        "names",
        "64 callers ask by RLS with a new name for each request",
    ),
    (
        "keys",
        "64 callers ask by RLS with a new name and a new key for each request",
    ),
    ("values", "64 callers ask by RLS with values of 60 kB"),
    (
        "checks",
        "64 callers check rules 31 at a time: 240 kB of small maps, and aliases of aliases",
    ),
    ("watches", "600 watches of rules of a megabyte are not read"),
    (
        "handshakes",
        "64 callers make TLS connections to a key of RSA, which is dear",
    ),
    ("tokens", "64 callers guess tokens"),
];

fn channel(address: &str, from: IpAddr) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    endpoint
        .local_address(Some(from))
        .timeout(PATIENCE)
        .connect_lazy()
}

fn request(key: &str, value: &str) -> RateLimitRequest {
    let entries = vec![Entry {
        key: key.to_owned(),
        value: value.to_owned(),
    }];
    RateLimitRequest {
        domain: "api".to_owned(),
        descriptors: vec![RateLimitDescriptor {
            entries,
            ..RateLimitDescriptor::default()
        }],
        hits_addend: 0,
    }
}

/// Asks at a steady pace for a time, without waiting for answers.
async fn honest(address: &str, lasts: Duration) -> Served {
    let client = RateLimitServiceClient::new(channel(address, [127, 0, 0, 1].into()));
    let mut turns = interval(PACE);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = Instant::now() + lasts;
    let mut calls = JoinSet::new();
    while Instant::now() < end {
        turns.tick().await;
        let mut client = client.clone();
        calls.spawn(async move {
            let began = Instant::now();
            let answer = client.should_rate_limit(request("user", "ann")).await;
            let problem = match answer {
                Ok(answer) if answer.get_ref().overall_code() == Code::Ok => None,
                Ok(_) => Some("refused".to_owned()),
                Err(status) => Some(status.to_string()),
            };
            (began.elapsed(), problem)
        });
    }
    let mut served = Served::default();
    for (took, problem) in calls.join_all().await {
        served.took.push(took);
        served.failed += u64::from(problem.is_some());
        served.failures.extend(problem);
    }
    served
}

async fn flood(name: &'static str, address: String) {
    let from = attacker(0);
    let mut all = JoinSet::new();
    let channel = || channel(&address, from);
    match name {
        "names" | "keys" | "values" | "tokens" => {
            for caller in 0..CALLERS {
                all.spawn(call(channel(), name, caller));
            }
        }
        "checks" => {
            for caller in 0..CALLERS {
                let channel = channel();
                for text in check_texts(caller) {
                    all.spawn(check(channel.clone(), text));
                }
            }
        }
        "watches" => {
            for caller in 0..12 {
                let channel = channel();
                for watch in 0..50 {
                    all.spawn(watch_unread(channel.clone(), format!("{caller}-{watch}")));
                }
            }
        }
        "handshakes" => {
            for _ in 0..CALLERS {
                all.spawn(shake_hands(address.clone(), from));
            }
        }
        _ => {
            for _ in 0..if name == "buckets" { 40 } else { 4 } {
                all.spawn(report(channel(), name));
            }
        }
    }
    all.join_all().await;
}

async fn call(channel: Channel, flood: &'static str, caller: u64) {
    let mut client = RateLimitServiceClient::new(channel);
    let long = "a-".repeat(30_000);
    for number in 0_u64.. {
        let name = format!("{caller}-{number}");
        let mut asked = Request::new(match flood {
            "keys" => request("user", &name),
            "values" => request("path", &long),
            _ => request("user", "ann"),
        });
        let (header, value) = match flood {
            "tokens" => ("authorization", format!("Bearer {name}")),
            _ => ("x-doorward-client", name),
        };
        let (metadata, value) = (asked.metadata_mut(), value.parse().unwrap());
        metadata.insert(header, value);
        let _ = client.should_rate_limit(asked).await;
    }
}

/// Returns documents of up to 256 KiB that take much memory: 30 of many small maps, and one with aliases of aliases.
fn check_texts(caller: u64) -> Vec<String> {
    let many = vec!["{}"; 80_000].join(",");
    let mut texts = vec![format!("domain: a\ndescriptors: [{many}] # {caller}"); 30];
    let mut aliases = "domain: a\ndescriptors:\n- &a0 {key: k}\n".to_owned();
    for level in 1..10 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        aliases += &format!("- &a{level} {{key: k{level}, descriptors: [{below}]}}\n");
    }
    texts.push(aliases);
    texts
}

async fn check(channel: Channel, text: String) {
    let domain = "a".to_owned();
    let asked = CheckRulesRequest { domain, text };
    loop {
        let _ = RulesClient::new(channel.clone()).check(asked.clone()).await;
    }
}

async fn watch_unread(channel: Channel, instance: String) {
    loop {
        let first = WatchRulesRequest {
            instance: instance.clone(),
            ..WatchRulesRequest::default()
        };
        let requests = tokio_stream::iter([first]).chain(tokio_stream::pending());
        let watch = RulesClient::new(channel.clone()).watch(requests).await;
        sleep(Duration::from_secs(5)).await;
        drop(watch);
    }
}

/// Makes TLS connections. The server signs before this sees that its certificate is not trusted.
async fn shake_hands(address: String, from: IpAddr) {
    let config = ClientConfig::builder()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let name = ServerName::try_from("localhost").unwrap();
    loop {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind((from, 0).into()).unwrap();
        if let Ok(socket) = socket.connect(address.parse().unwrap()).await {
            let _ = connector.connect(name.clone(), socket).await;
        }
    }
}

fn usage(key: &str, value: String, denied: u64) -> BucketQuotaUsage {
    BucketQuotaUsage {
        bucket_id: Some(BucketId {
            bucket: BTreeMap::from([(key.to_owned(), value)]),
        }),
        num_requests_denied: denied,
        ..BucketQuotaUsage::default()
    }
}

/// Returns the messages of a stream, one after the other.
fn messages(name: &'static str) -> Vec<RateLimitQuotaUsageReports> {
    let message = |domain: &str, bucket_quota_usages| RateLimitQuotaUsageReports {
        domain: domain.to_owned(),
        bucket_quota_usages,
    };
    match name {
        "buckets" => {
            let of = |part: u32| {
                let ids = part * 2_000..(part + 1) * 2_000;
                let usages = ids.map(|id| usage("id", format!("{id:01000}"), 1));
                message("unknown", usages.collect())
            };
            (0..10).map(of).collect()
        }
        "reports" => {
            let denied = 1_000_000_000_000_000_000;
            vec![message(
                "api",
                vec![usage("user", "ann".to_owned(), denied)],
            )]
        }
        _ => {
            // Less than 4 MiB.
            vec![message("api", vec![BucketQuotaUsage::default(); 2_000_000])]
        }
    }
}

async fn report(channel: Channel, name: &'static str) {
    loop {
        let mut client = RateLimitQuotaServiceClient::new(channel.clone());
        let pause = Duration::from_millis(if name == "reports" { 1_000 } else { 100 });
        let reports = async_stream(messages(name), pause);
        if let Ok(answers) = client.stream_rate_limit_quotas(reports).await {
            let mut answers = answers.into_inner();
            while let Ok(Some(_)) = answers.message().await {}
        }
        sleep(Duration::from_millis(100)).await;
    }
}

/// Repeats messages with pauses.
fn async_stream(
    messages: Vec<RateLimitQuotaUsageReports>,
    pause: Duration,
) -> impl tokio_stream::Stream<Item = RateLimitQuotaUsageReports> {
    let (sender, receiver) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        for message in messages.iter().cycle() {
            if sender.send(message.clone()).await.is_err() {
                return;
            }
            sleep(pause).await;
        }
    });
    tokio_stream::wrappers::ReceiverStream::new(receiver)
}

/// Files of a program.
struct Files {
    folder: TempDir,
}

impl Files {
    fn new() -> Self {
        let files = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        fs::create_dir(files.folder.path().join("rules")).unwrap();
        files.write("rules/api.yaml", RULES);
        let large = format!("domain: large\nempty: true\n#{}\n", "x".repeat(1 << 20));
        files.write("rules/large.yaml", &large);
        files.write("templates.yaml", TEMPLATES);
        files.write("tokens.yaml", "tokens: []\nempty: true\n");
        files
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.folder.path().join(name), text).unwrap();
    }

    /// Starts an agent or a root.
    fn start(&self, program: &str, memory: &str) -> Server {
        let path = |name: &str| self.folder.path().join(name).display().to_string();
        let pair = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tls/testdata/rsa2048.pem");
        let pair = pair.display().to_string();
        let (rules, tokens, templates) =
            (path("rules"), path("tokens.yaml"), path("templates.yaml"));
        let mut flags = vec!["--rules", &rules, "--memory-max", memory];
        flags.extend(["--http-listen", "127.0.0.1:0", "--accept-plaintext"]);
        flags.extend(["--tls-cert", &pair, "--tls-key", &pair, "--tokens", &tokens]);
        match program {
            "doorward-agent" => Server::agent("127.0.0.1:0", &flags),
            _ => Server::start(&[&flags[..], &["--templates", &templates]].concat()),
        }
    }
}

/// Measures one flood at a program, and prints it. Returns the problems.
async fn measure(
    name: &'static str,
    (program, memory_max, flag): (&str, u64, &str),
    attacker: &Runtime,
) -> Vec<String> {
    let files = Files::new();
    let mut server = files.start(program, flag);
    let address = server.address.clone();
    // An agent learns for a lease length.
    let until_ready = async { while honest(&address, Duration::from_secs(1)).await.failed > 0 {} };
    timeout(PATIENCE, until_ready).await.unwrap();
    let alone = honest(&address, ALONE).await;
    println!(" {program}\n  alone             {alone}");
    let flooding = attacker.spawn(flood(name, address.clone()));
    let beside = honest(&address, BESIDE_FLOOD).await;
    flooding.abort();
    let peak = memory(server.process()).peak;
    println!(
        "  beside the flood  {beside}\n  memory at its worst: {} MiB",
        peak >> 20
    );
    let mut problems = Vec::new();
    if !server.is_running() {
        problems.push("it is gone".to_owned());
    }
    if let Some(failure) = beside.failures.first() {
        problems.push(format!(
            "{} honest requests failed: {failure}",
            beside.failed
        ));
    }
    let (p99, most) = (
        beside.quantile(0.99),
        10 * alone.quantile(0.99).max(P99_MIN),
    );
    if p99 > most {
        problems.push(format!("p99 {p99:.2?}, of at most {most:.2?}"));
    }
    if peak > memory_max {
        problems.push(format!("{} MiB of memory", peak >> 20));
    }
    for problem in &problems {
        println!("  FAILED: {problem}");
    }
    problems
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let names: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| it != "--bench")
        .collect();
    let (honest, attacker) = (runtime(), runtime());
    let mut failed = Vec::new();
    for (name, what) in FLOODS {
        if !(names.is_empty() || names.iter().any(|it| it == name)) {
            continue;
        }
        println!("\n{name}: {what}");
        for program in PROGRAMS {
            let problems = honest.block_on(measure(name, program, &attacker));
            if !problems.is_empty() {
                failed.push(name);
            }
        }
    }
    honest.shutdown_background();
    attacker.shutdown_background();
    if failed.is_empty() {
        println!("\nno honest request noticed anything");
        return ExitCode::SUCCESS;
    }
    println!("\nFAILED: {}", failed.join(", "));
    ExitCode::FAILURE
}
