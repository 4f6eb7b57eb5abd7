//! Half an hour of 2,000 honest clients that come and go, beside a slow attack of each kind: no honest client fails,
//! and the server's memory does not grow.
//!
//! `cargo bench -p doorward-tests --bench soak [-- --minutes 30 --clients 2000]` prints a line every half minute. It
//! fails if a call of an honest client failed, or if the memory at the end is above that after five minutes (a sixth of
//! the time, if that is shorter) by more than a tenth and 8 MiB.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doorward_tests::attacker::rounds::wage_all_slowly;
use doorward_tests::besieged::Besieged;
use doorward_tests::figures::{memory, refused};
use doorward_tests::honest::{HonestClient, channel};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};
use tonic::transport::Channel;

const CLIENTS_EACH: u64 = 10;
const REFRESHED_EVERY: Duration = Duration::from_secs(1);
const REPORTED_EVERY: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
struct Book {
    calls: AtomicU64,
    came: AtomicU64,
    failed: AtomicU64,
    first: Mutex<Option<String>>,
}

impl Book {
    fn note(&self, answer: Result<(), String>) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        if let Err(failure) = answer {
            self.failed.fetch_add(1, Ordering::Relaxed);
            self.first.lock().unwrap().get_or_insert(failure);
        }
    }
}

/// Lets a client come, stay for a while and go, and then another one.
async fn come_and_go(channel: Channel, place: u64, book: Arc<Book>) {
    // Spread, so that they do not begin at the same time.
    sleep(Duration::from_millis(place * 7 % 1_000)).await;
    for visit in 0_u64.. {
        let id = format!("visitor-{place}-{visit}");
        // A twentieth of them have a resource of their own.
        let resource = match (place + visit) % 20 {
            0 => format!("honest/{id}"),
            shared => format!("honest/shared-{shared}"),
        };
        let mut client = HonestClient::new(channel.clone(), id, resource);
        book.came.fetch_add(1, Ordering::Relaxed);
        let mut turns = interval(REFRESHED_EVERY);
        for _ in 0..2 + (place * 13 + visit * 5) % 18 {
            turns.tick().await;
            book.note(client.ask().await);
        }
        book.note(client.release().await);
    }
}

fn option(name: &str, default: u64) -> u64 {
    let mut arguments = std::env::args().skip_while(|argument| argument != name);
    let value = arguments.nth(1);
    value.map_or(default, |value| value.parse().unwrap())
}

async fn soak(minutes: u64, clients: u64) -> bool {
    let mut besieged = Besieged::start(&[]).await;
    let lasts = Duration::from_secs(minutes * 60);
    let settled = Duration::from_secs(300).min(lasts / 6);
    let book = Arc::<Book>::default();
    let mut visitors = JoinSet::new();
    for place in 0..clients {
        // Some clients share a connection, as those of one program do.
        if place % CLIENTS_EACH == 0 {
            let shared = channel(&besieged.server.address);
            for place in place..clients.min(place + CLIENTS_EACH) {
                visitors.spawn(come_and_go(shared.clone(), place, Arc::clone(&book)));
            }
        }
    }
    let began = Instant::now();
    let attack = tokio::spawn(wage_all_slowly(besieged.target, lasts));
    let mut reports = interval(REPORTED_EVERY.min(settled));
    reports.tick().await;
    let mut at_first = None;
    while began.elapsed() < lasts && besieged.server.is_running() {
        reports.tick().await;
        let used = memory(besieged.server.process());
        if began.elapsed() >= settled {
            at_first.get_or_insert(used.resident);
        }
        besieged.honest.take();
        println!(
            "{:>5} s: {} MiB (at most {}), {} came, {} calls, {} failed",
            began.elapsed().as_secs(),
            used.resident >> 20,
            used.peak >> 20,
            book.came.load(Ordering::Relaxed),
            book.calls.load(Ordering::Relaxed),
            book.failed.load(Ordering::Relaxed),
        );
    }
    let mut is_well = true;
    if !besieged.server.is_running() {
        println!("FAILED: the server is gone");
        return false;
    }
    let at_last = memory(besieged.server.process()).resident;
    let (outcome, rounds) = attack.await.unwrap();
    println!("attackers: {rounds} rounds; {outcome}");
    for (limit, count) in refused(&besieged.server.get("/metrics")) {
        if count > 0 {
            println!("refused for {limit}: {count}");
        }
    }
    let failed = book.failed.load(Ordering::Relaxed);
    if failed > 0 {
        let first = book.first.lock().unwrap().take();
        println!("FAILED: {failed} calls of honest clients, first: {first:?}");
        is_well = false;
    }
    let at_first = at_first.unwrap_or(at_last);
    let most = at_first + at_first / 10 + (8 << 20);
    println!(
        "memory: {} KiB when settled, {} KiB at the end",
        at_first >> 10,
        at_last >> 10
    );
    if at_last > most {
        println!("FAILED: memory grows");
        is_well = false;
    }
    is_well
}

fn main() -> ExitCode {
    let (minutes, clients) = (option("--minutes", 30), option("--clients", 2_000));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let is_well = runtime.block_on(soak(minutes, clients));
    runtime.shutdown_background();
    if is_well {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
