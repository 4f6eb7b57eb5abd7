//! Processor time and memory of an agent whose Envoys have thousands of buckets each, minute by minute; and what is left
//! of them when half of the buckets are idle.
//!
//! Few Envoys are real. The others are streams that report as Envoy does: every five seconds, all buckets, until they
//! are told to abandon one.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_response::bucket_action::BucketAction;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_service_client::RateLimitQuotaServiceClient;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_usage_reports::BucketQuotaUsage;
use doorward_proto::envoy::rate_limit_quota::{
    BucketId, RateLimitQuotaResponse, RateLimitQuotaUsageReports,
};
use doorward_tests::figures::{cpu_time, memory, value};
use doorward_tests::processes::Server;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, interval, sleep_until};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Request;
use tonic::transport::Endpoint;

use crate::{Envoy, seconds};

const REAL: usize = 3;
const STUBS: usize = 17;

/// Buckets of each Envoy.
const BUCKETS: usize = 5_000;

/// Time between two reports of Envoy.
const REPORTS_EVERY: Duration = seconds(5);

/// Time between two requests to a real Envoy: each bucket is used every 40 s, and is idle after 60 s.
const PACE: Duration = Duration::from_millis(8);

/// Minutes until idle buckets are forgotten. A report that is on its way meanwhile makes a bucket known again for a
/// minute.
const IDLE: u64 = 4;

/// Number of the buckets in use: those with a smaller number.
type Used = Arc<AtomicUsize>;

/// Runs some minutes with all buckets in use, and then some with half of them.
pub(crate) async fn run(minutes: u64) {
    let flags = [
        "--rules",
        "envoy/rules.yaml",
        "--http-listen",
        "127.0.0.1:0",
    ];
    let mut agent = Server::agent("127.0.0.1:0", &flags);
    let (folder, used) = (TempDir::new().unwrap(), Used::new(BUCKETS.into()));
    let mut envoys = Vec::new();
    for number in 1..=REAL {
        let envoy = Envoy::start(&folder, number, "rlqs.yaml", &agent.address);
        tokio::spawn(ask(envoy.address, Arc::clone(&used)));
        envoys.push(envoy);
    }
    for number in 0..STUBS {
        tokio::spawn(report(agent.address.clone(), number, Arc::clone(&used)));
    }
    println!("{REAL} real Envoys and {STUBS} stubs, {BUCKETS} buckets each");
    let all = ((REAL + STUBS) * BUCKETS) as f64;
    let mut seen = Vec::new();
    let began = Instant::now();
    let mut busy = cpu_time(agent.process());
    for minute in 1..=minutes + IDLE {
        sleep_until(began + seconds(60 * minute)).await;
        let now = cpu_time(agent.process());
        let cpu = (now - busy).as_secs_f64() / 60.0;
        busy = now;
        let bytes = memory(agent.process()).resident as f64;
        let buckets = buckets(&mut agent);
        let mib = bytes / f64::from(1 << 20);
        println!("  minute {minute:2}: {cpu:.3} cores, {mib:6.1} MiB, {buckets} buckets");
        if minute <= minutes {
            seen.push((cpu, mib));
        }
        if minute == minutes {
            assert!(buckets > 0.9 * all, "the buckets are known");
            used.store(BUCKETS / 2, Ordering::Relaxed);
            println!("  half of the buckets are not used any more");
        }
    }
    let later = seen.split_off(seen.len() / 2);
    for (name, values) in [
        ("cores", later.iter().map(|it| it.0).collect::<Vec<_>>()),
        ("MiB", later.iter().map(|it| it.1).collect()),
    ] {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let most = values.iter().copied().fold(0.0, f64::max);
        println!("second half of the time: {least:.3} to {most:.3} {name}");
    }
    assert!(
        buckets(&mut agent) <= all / 2.0,
        "idle buckets are forgotten"
    );
}

fn buckets(agent: &mut Server) -> f64 {
    value(&agent.get("/metrics"), "doorward_edge_quota_buckets").unwrap()
}

/// Asks a real Envoy for the users in use, one after the other.
async fn ask(envoy: SocketAddr, used: Used) {
    let mut stream = TcpStream::connect(envoy).await.unwrap();
    let (mut ticks, mut answer) = (interval(PACE), [0; 4_096]);
    for number in (0..BUCKETS).cycle() {
        if number < used.load(Ordering::Relaxed) {
            ticks.tick().await;
            let request = format!("GET / HTTP/1.1\r\nhost: a\r\nx-user: {number}\r\n\r\n");
            let written = stream.write_all(request.as_bytes()).await;
            if written.is_err() || stream.read(&mut answer).await.is_err() {
                // The measurement is over.
                return;
            }
        }
    }
}

/// Reports as an Envoy that used a few requests of each bucket in use.
async fn report(agent: String, number: usize, used: Used) {
    let endpoint = Endpoint::new(format!("http://{agent}")).unwrap();
    let client = RateLimitQuotaServiceClient::new(endpoint.connect().await.unwrap());
    let mut client = client.max_decoding_message_size(usize::MAX);
    let (reports, receiver) = mpsc::channel(1);
    let mut request = Request::new(ReceiverStream::new(receiver));
    let name = format!("stub-{number}").parse().unwrap();
    request.metadata_mut().insert("x-doorward-client", name);
    let mut known: BTreeSet<usize> = (0..BUCKETS).collect();
    let mut reports_at = Instant::now();
    let mut count = number;
    let usages = |known: &BTreeSet<usize>, count: usize| {
        let usage = |bucket: &usize| {
            let is_used = *bucket < used.load(Ordering::Relaxed);
            BucketQuotaUsage {
                bucket_id: Some(BucketId {
                    bucket: [("user".to_owned(), bucket.to_string())].into(),
                }),
                time_elapsed: None,
                num_requests_allowed: if is_used {
                    1 + (bucket + count) as u64 % 8
                } else {
                    0
                },
                num_requests_denied: 0,
            }
        };
        RateLimitQuotaUsageReports {
            domain: "api".to_owned(),
            bucket_quota_usages: known.iter().map(usage).collect(),
        }
    };
    reports.send(usages(&known, count)).await.unwrap();
    let answers = client.stream_rate_limit_quotas(request).await;
    let mut answers = answers.unwrap().into_inner();
    loop {
        tokio::select! {
            answer = answers.message() => match answer {
                Ok(Some(answer)) => forget(&answer, &mut known),
                end => return eprintln!("the stream of stub {number} ended: {end:?}"),
            },
            () = sleep_until(reports_at + REPORTS_EVERY) => {
                reports_at += REPORTS_EVERY;
                count += 1;
                if reports.send(usages(&known, count)).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Forgets the buckets that the agent abandons.
fn forget(answer: &RateLimitQuotaResponse, known: &mut BTreeSet<usize>) {
    for action in &answer.bucket_action {
        if let Some(BucketAction::AbandonAction(_)) = &action.bucket_action {
            let bucket = &action.bucket_id.as_ref().unwrap().bucket["user"];
            known.remove(&bucket.parse().unwrap());
        }
    }
}
