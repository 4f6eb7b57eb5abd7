//! Overload control of a real axum service on this machine, and the cost of a decision.
//!
//! `cargo bench -p doorward --bench overload_layer` takes two minutes. It plays three of the shapes of
//! `docs/overload.md` by connections over loopback, and fails if one misses its goal. The work of requests is waiting,
//! so a busy machine hardly changes the figures. Then it prints a decision of [`Overload`] beside one of a semaphore.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a bench may panic, measures time, and prints its results"
)]

use std::future::Future;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use axum::routing::get;
use axum::{Extension, Router};
use doorward::layer::overload::{InFlight, OverloadCall};
use doorward::layer::{LimitLayer, Overload};
use doorward::overload::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant as Time, sleep, sleep_until, timeout};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);

/// Answers to the requests of a load.
#[derive(Clone, Copy, Debug, Default)]
struct Answers {
    sent: u32,
    /// Answers with the status 200, and 503, before the caller gave up.
    good: u32,
    refused: u32,
}

fn main() -> ExitCode {
    let runtime = Runtime::new().unwrap();
    let mut is_met = true;
    let mut check = |name: &str, figure: f64, goal: &str, is: bool| {
        let missed = if is { "" } else { " MISSED" };
        println!("{name:58} {goal:>7} {figure:7.3}{missed}");
        is_met &= is;
    };
    let part = runtime.block_on(fewer_places());
    let name = "20 places of 100 ms, then one, callers wait 1 s: goodput";
    check(name, part, ">= 0.9", part >= 0.9);
    let part = runtime.block_on(new_instance());
    let name = "new instance, 5 s at 20/s: refused in the first 40 s";
    check(name, part, "<= 0.05", part <= 0.05);
    let most = runtime.block_on(blocking(true));
    let name = "spawn_blocking, callers give up, limit 8: most at work";
    check(name, most, "<= 8", most <= 8.0);
    let most = runtime.block_on(blocking(false));
    check("  the same without InFlight", most, "", true);
    runtime.block_on(decisions());
    if is_met {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Starts a service behind overload control, and returns its address.
async fn serve<F: Future<Output = ()> + Send>(
    overload: Overload,
    handler: impl Fn(InFlight) -> F + Clone + Send + Sync + 'static,
) -> SocketAddr {
    let handler = async move |Extension(in_flight): Extension<InFlight>| handler(in_flight).await;
    let app = Router::new().route("/", get(handler));
    let app = app.layer(LimitLayer::new(overload));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// Sends a request on a connection of its own, and returns the status; none if the caller gives up before.
async fn send(address: SocketAddr, patience: Duration) -> Option<String> {
    let millis = patience.as_millis();
    let request = format!(
        "GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\nx-envoy-expected-rq-timeout-ms: {millis}\r\n\r\n"
    );
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        stream.write_all(request.as_bytes()).await.ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.ok()?;
        answer.split(' ').nth(1).map(str::to_owned)
    };
    timeout(patience, exchange).await.ok().flatten()
}

/// Sends requests in even steps, and returns the answers to those that were sent after `from`.
async fn load(
    address: SocketAddr,
    per_second: u32,
    patience: Duration,
    span: Duration,
    from: Duration,
) -> Answers {
    let began = Time::now();
    let mut calls = JoinSet::new();
    let mut answers = Answers::default();
    for number in 0..per_second * span.as_secs() as u32 {
        let at = SECOND * number / per_second;
        sleep_until(began + at).await;
        calls.spawn(async move { (at >= from, send(address, patience).await) });
    }
    while let Some(call) = calls.join_next().await {
        let (counts, status) = call.unwrap();
        answers.sent += u32::from(counts);
        answers.good += u32::from(counts && status.as_deref() == Some("200"));
        answers.refused += u32::from(counts && status.as_deref() == Some("503"));
    }
    answers
}

/// Returns the answers in time from a service whose places become few, of those that the rest can do, from 20 s later on.
async fn fewer_places() -> f64 {
    let places = Arc::new(Semaphore::new(20));
    let (all, handled) = (places.clone(), places);
    let address = serve(Overload::new("places"), move |_in_flight| {
        let places = handled.clone();
        async move {
            let _place = places.acquire().await.unwrap();
            sleep(100 * MILLI).await;
        }
    })
    .await;
    load(address, 300, SECOND, 10 * SECOND, Duration::ZERO).await;
    let fewer = tokio::spawn(async move { all.acquire_many(19).await.unwrap().forget() });
    let answers = load(address, 300, SECOND, 50 * SECOND, 20 * SECOND).await;
    fewer.await.unwrap();
    f64::from(answers.good) / (30.0 * 10.0)
}

/// Returns the share of refused requests in the first 40 s of a service with slow requests.
async fn new_instance() -> f64 {
    let address = serve(Overload::new("new"), |_in_flight| sleep(5 * SECOND)).await;
    let answers = load(address, 20, 60 * SECOND, 40 * SECOND, Duration::ZERO).await;
    f64::from(answers.refused) / f64::from(answers.sent)
}

/// Returns the largest number of blocking tasks of a second at once, under a limit of 8, whose callers give up after a
/// tenth of that. `keeps`: each task has the place of its request.
async fn blocking(keeps: bool) -> f64 {
    let config = Config {
        fixed_limit: Some(8),
        ..Config::default()
    };
    let counts = Arc::new((AtomicU32::new(0), AtomicU32::new(0)));
    let handled = counts.clone();
    let overload = Overload::with_config("blocking", config);
    let address = serve(overload, move |in_flight| {
        let (counts, in_flight) = (handled.clone(), keeps.then_some(in_flight));
        async move {
            let work = move || {
                let _in_flight = in_flight;
                let now = counts.0.fetch_add(1, Ordering::SeqCst) + 1;
                counts.1.fetch_max(now, Ordering::SeqCst);
                thread::sleep(SECOND);
                counts.0.fetch_sub(1, Ordering::SeqCst);
            };
            tokio::task::spawn_blocking(work).await.unwrap();
        }
    })
    .await;
    load(address, 100, 100 * MILLI, 10 * SECOND, Duration::ZERO).await;
    f64::from(counts.1.load(Ordering::SeqCst))
}

/// Prints the times of a request that is admitted at once, from its offer to its end, and of a semaphore.
async fn decisions() {
    const COUNT: u32 = 10_000;
    let (overload, semaphore) = (Overload::new("decision"), Semaphore::new(256));
    let call = OverloadCall {
        operation: "GET /",
        ..OverloadCall::default()
    };
    let mut rounds: Vec<(f64, f64)> = Vec::new();
    for _ in 0..101 {
        let began = Instant::now();
        for _ in 0..COUNT {
            drop(semaphore.acquire().await.unwrap());
        }
        let between = Instant::now();
        for _ in 0..COUNT {
            overload.acquire(&call).await.unwrap().settle(None);
        }
        let nanos = |span: Duration| span.as_nanos() as f64 / f64::from(COUNT);
        rounds.push((nanos(between - began), nanos(between.elapsed())));
    }
    rounds.sort_by(|one, other| f64::total_cmp(&(one.1 / one.0), &(other.1 / other.0)));
    let (alone, ours) = rounds[rounds.len() / 2];
    println!(
        "a decision: {ours:.0} ns, {:.1} times the {alone:.0} ns of tokio's semaphore",
        ours / alone
    );
}
