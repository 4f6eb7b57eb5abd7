//! Services behind rules, in real time on loopback: how much of a limit passes, how well three of them share one, and
//! what leases of 100,000 tenants cost.
//!
//! `cargo bench -p doorward-tests --bench services` takes four minutes; `-- overloaded`, `shared` or `tenants` selects
//! one.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use doorward::layer::{LimitLayer, Limits, LimitsBuilder};
use doorward::limiter::demand::AdaptiveWants;
use doorward::limiter::rate::Burst;
use doorward::rules::{Part, Rules, Value};
use doorward::{Client, Mode};
use doorward_tests::figures::memory;
use doorward_tests::http_load::{Passed, load};
use doorward_tests::processes::Server;
use doorward_tests::template_file::TemplateFile;
use tokio::net::TcpListener;
use tokio::time::Instant;

/// Starts a service behind limits.
async fn serve(limits: LimitsBuilder, rules: &str) -> SocketAddr {
    let rules = Rules::load(&[("api.yaml", rules)]).unwrap();
    let all = Part::Own(Box::new(|_| Some(Value::from("all"))));
    let limits: Limits = limits.part("all", all).load(rules).unwrap();
    let app = Router::new().route("/", get(|| async { "hello" }));
    let app = app.layer(LimitLayer::new(limits));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    address
}

/// Returns the function that counts the answers of a load.
fn count(passed: &Arc<Passed>) -> impl Fn(Duration, bool) + Clone + Send + 'static {
    let passed = Arc::clone(passed);
    move |_at, has_passed| match has_passed {
        true => passed.add(),
        false => drop(passed.refused.fetch_add(1, Ordering::Relaxed)),
    }
}

/// One service, under four times its limit.
async fn overloaded() {
    let (limit, burst, time) = (500.0, 50.0, Duration::from_secs(30));
    let rules = "domain: api\ndescriptors:\n- key: all\n  rate_limit: {rate: 500/s, algorithm: token_bucket, burst: 50}\n";
    let to = serve(Limits::builder("api"), rules).await;
    let passed = Passed::new(limit);
    load(to, "", move |_| 4.0 * limit, time, count(&passed)).await;
    passed.report("one service under 4 × its limit of 500/s", burst, time);
}

/// Three services that share a limit, under loads that rotate.
async fn shared() {
    let (limit, time) = (300.0, Duration::from_secs(60));
    let file = TemplateFile::new(
        "resources:
- identifier_glob: shared/api/*
  capacity: 300
  algorithm: {kind: FAIR_SHARE, lease_length: 20s, refresh_interval: 500ms, learning_mode_duration: 0s}
",
    );
    let server = Server::start(&["--templates", &file.path]);
    let rules = "domain: api\ndescriptors:\n- key: all\n  scope: shared\n  rate_limit: {rate: 300/s, algorithm: token_bucket}\n";
    let passed = Passed::new(limit);
    let mut loads = Vec::new();
    for number in 0..3_usize {
        let client = Client::builder()
            .id(format!("api-{number}"))
            .address(&server.address)
            .mode(Mode::Safe)
            .connect()
            .await
            .unwrap();
        let wants = AdaptiveWants {
            window: Duration::from_millis(500),
            headroom: 1.0,
            ..AdaptiveWants::default()
        };
        let leases = client.keyed("shared/api/{}").adaptive_wants(wants);
        let burst = Burst {
            span: Duration::from_millis(100),
            least: 1.0,
        };
        let leases = leases.burst(burst).open().unwrap();
        let to = serve(Limits::builder("api").leases(leases), rules).await;
        let rate = move |at: Duration| {
            let turn = usize::try_from(at.as_secs() / 10).unwrap();
            [50.0, 150.0, 400.0][(number + turn) % 3]
        };
        loads.push(tokio::spawn(load(to, "", rate, time, count(&passed))));
    }
    for load in loads {
        load.await.unwrap();
    }
    // One burst each, of a request and 100 ms of the lease.
    passed.report("three services that share 300/s", 3.0 + limit * 0.1, time);
}

/// One client with a lease for each of 100,000 tenants, which are idle afterwards.
async fn tenants() {
    const TENANTS: usize = 100_000;
    let file = TemplateFile::new(
        "resources:
- identifier_glob: tenants/*
  capacity: 100
  algorithm: {kind: FAIR_SHARE, lease_length: 60s, refresh_interval: 20s, learning_mode_duration: 0s}
",
    );
    let server = Server::start(&[
        "--templates",
        &file.path,
        "--newcomers-per-second-per-address-max=200000",
    ]);
    let client = Client::builder().id("api-0").address(&server.address);
    let client = client.connect().await.unwrap();
    let tenants = client.keyed("tenants/{}").keys_max(TENANTS);
    let tenants = tenants.idle(Duration::from_secs(20)).open().unwrap();
    let resident = || memory(std::process::id()).resident >> 20;
    println!("tenants: {} MiB before", resident());
    let began = Instant::now();
    for tenant in 0..TENANTS {
        let _not_leased_yet = tenants.try_acquire(&tenant.to_string(), 1);
    }
    println!(
        "{} opened in {:.2?}: {} MiB",
        tenants.len(),
        began.elapsed(),
        resident()
    );
    let mut leased = 0;
    while leased < TENANTS && began.elapsed() < Duration::from_secs(60) {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let keys = (leased..TENANTS).map(|tenant| tenant.to_string());
        leased += keys
            .take_while(|key| tenants.try_acquire(key, 0).is_ok())
            .count();
    }
    println!(
        "{leased} leased after {:.2?}: {} MiB",
        began.elapsed(),
        resident()
    );
    while !tenants.is_empty() && began.elapsed() < Duration::from_secs(180) {
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    client.close().await;
    println!(
        "{} open after {:.2?}: {} MiB",
        tenants.len(),
        began.elapsed(),
        resident()
    );
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let runs = |name: &str| wanted.iter().all(|it| it.starts_with('-') || it == name);
    if runs("overloaded") {
        overloaded().await;
    }
    if runs("shared") {
        shared().await;
    }
    if runs("tenants") {
        tenants().await;
    }
}
