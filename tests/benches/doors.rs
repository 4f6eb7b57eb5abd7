//! Floods at the doors of an agent with little memory, beside an honest Envoy that asks by RLS.
//!
//! `cargo bench -p doorward-tests --bench doors [-- NAME …]` takes about 75 s for each flood. It fails if an honest
//! request fails or is refused, if the 99th percentile is above ten times that without a flood, or if the agent needs
//! more than 256 MiB. `cargo test -p doorward-tests --bench doors` does the same with programs of the profile `dev`.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::process::ExitCode;
use std::time::Duration;

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
use doorward_tests::template_file::TemplateFile;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};
use tonic::Request;
use tonic::transport::{Channel, Endpoint};

const RULES: &str = "
domain: api
descriptors:
- {key: user, scope: shared, max_wait: 1s, rate_limit: {rate: 300/s, algorithm: token_bucket}}
";

const ALONE: Duration = Duration::from_secs(10);
const BESIDE_FLOOD: Duration = Duration::from_secs(60);
/// Time between two honest requests: a third of the limit.
const PACE: Duration = Duration::from_millis(10);
const MEMORY_MAX: u64 = 256 << 20;
/// Least 99th percentile that counts as one.
const P99_MIN: Duration = Duration::from_millis(2);

/// A flood by name.
const FLOODS: [(&str, &str); 5] = [
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
];

fn channel(address: &str, from: IpAddr) -> Channel {
    let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
    endpoint
        .local_address(Some(from))
        .timeout(PATIENCE)
        .connect_lazy()
}

fn request(user: &str) -> RateLimitRequest {
    let entries = vec![Entry {
        key: "user".to_owned(),
        value: user.to_owned(),
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

/// Asks at a steady pace for a time.
async fn honest(address: &str, lasts: Duration) -> Served {
    let client = RateLimitServiceClient::new(channel(address, [127, 0, 0, 1].into()));
    let mut served = Served::default();
    let mut turns = interval(PACE);
    turns.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let end = Instant::now() + lasts;
    while Instant::now() < end {
        turns.tick().await;
        let began = Instant::now();
        let answer = client.clone().should_rate_limit(request("ann")).await;
        served.took.push(began.elapsed());
        let problem = match answer {
            Ok(answer) if answer.get_ref().overall_code() == Code::Ok => continue,
            Ok(_) => "refused".to_owned(),
            Err(status) => status.to_string(),
        };
        served.failed += 1;
        served.failures.push(problem);
    }
    served
}

async fn flood(name: &'static str, address: String) {
    let from = attacker(0);
    let mut all = JoinSet::new();
    let streams = if name == "buckets" { 40 } else { 4 };
    match name {
        "names" | "keys" => {
            for caller in 0..64 {
                all.spawn(call(channel(&address, from), name == "keys", caller));
            }
        }
        _ => {
            for _ in 0..streams {
                all.spawn(report(channel(&address, from), name));
            }
        }
    }
    all.join_all().await;
}

async fn call(channel: Channel, has_new_keys: bool, caller: u64) {
    let mut client = RateLimitServiceClient::new(channel);
    for number in 0_u64.. {
        let name = format!("{caller}-{number}");
        let mut asked = Request::new(request(if has_new_keys { &name } else { "ann" }));
        asked
            .metadata_mut()
            .insert("x-doorward-client", name.parse().unwrap());
        let _ = client.should_rate_limit(asked).await;
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

/// Measures one flood, and prints it. Returns the problems.
async fn measure(name: &'static str, what: &str) -> Vec<String> {
    println!("\n{name}: {what}");
    let rules = TemplateFile::new(RULES);
    let flags = [
        "--rules",
        &rules.path,
        "--http-listen",
        "127.0.0.1:0",
        "--memory-max",
        "128MiB",
    ];
    let mut agent = Server::agent("127.0.0.1:0", &flags);
    let address = agent.address.clone();
    // An agent learns for a lease length.
    let until_ready = async { while honest(&address, Duration::from_secs(1)).await.failed > 0 {} };
    timeout(PATIENCE, until_ready).await.unwrap();
    let alone = honest(&address, ALONE).await;
    println!("  alone             {alone}");
    let flooding = tokio::spawn(flood(name, address.clone()));
    let beside = honest(&address, BESIDE_FLOOD).await;
    flooding.abort();
    let peak = memory(agent.process()).peak;
    println!(
        "  beside the flood  {beside}\n  memory at its worst: {} MiB",
        peak >> 20
    );
    let mut problems = Vec::new();
    if !agent.is_running() {
        problems.push("the agent is gone".to_owned());
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
    if peak > MEMORY_MAX {
        problems.push(format!("{} MiB of memory", peak >> 20));
    }
    for problem in &problems {
        println!("  FAILED: {problem}");
    }
    problems
}

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let names: Vec<String> = std::env::args()
        .skip(1)
        .filter(|it| it != "--bench")
        .collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let mut failed = Vec::new();
    for (name, what) in FLOODS {
        let is_chosen = names.is_empty() || names.iter().any(|it| it == name);
        if is_chosen && !runtime.block_on(measure(name, what)).is_empty() {
            failed.push(name);
        }
    }
    runtime.shutdown_background();
    if failed.is_empty() {
        println!("\nno honest request noticed anything");
        return ExitCode::SUCCESS;
    }
    println!("\nFAILED: {}", failed.join(", "));
    ExitCode::FAILURE
}
