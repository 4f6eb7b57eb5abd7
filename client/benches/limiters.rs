//! Cost of a client's limiter, compared with the crate `governor`, and with tokio's semaphore.
//!
//! `cargo bench -p doorward --bench limiters`
//!
//! The contenders of a table take turns, and are compared with the first of them. Each reads its default clock. The
//! client has no server and works by its mode. With a lease its limiters do the same work, because each call checks
//! whether the lease has ended.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a bench may panic, and measures time"
)]
#![expect(clippy::print_stdout, reason = "the figures are what this is for")]

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use doorward::capacity::Capacity;
use doorward::limiter::rate::Burst;
use doorward::{Client, Mode, RateLimiter, Resource, Units};
use governor::clock::Clock as _;
use governor::{DefaultDirectRateLimiter, Quota};
use tokio::sync::Semaphore;

use crate::turns::{Contender, TAKES, contender, four, race};

#[path = "../limits/benches/paired/turns.rs"]
mod turns;

/// A rate that is never exceeded here, because one take lasts about 10 ns.
const PLENTY: f64 = 4e8;

/// Opens a resource of which the client uses what it wants.
fn resource(client: &Client, id: &str, wants: f64) -> Resource {
    let resource = client.resource(id).mode(Mode::Optimistic).wants(wants);
    let resource = resource.open().unwrap();
    while resource.capacity() == Capacity::NONE {
        std::thread::yield_now();
    }
    resource
}

fn rate_limiter(client: &Client, id: &str, wants: f64) -> RateLimiter {
    let burst = Burst {
        span: Duration::from_millis(10),
        least: 1.0,
    };
    resource(client, id, wants).rate_limiter(burst)
}

/// Uses only this part of the answer, as in `if limiter.try_acquire(1).is_ok()`. The answer is dropped before, so
/// that the caller need not keep the rest of it.
#[inline]
fn ask<T, E>(answer: Result<T, E>) {
    let is_ok = answer.is_ok();
    drop(answer);
    black_box(is_ok);
}

/// Returns a contender that takes in one thread.
fn alone<'a>(name: &'static str, take: impl Fn() + 'a) -> Contender<'a> {
    contender(name, move |takes| {
        for _ in 0..takes {
            take();
        }
    })
}

/// Returns a contender that takes in four threads.
fn in_four<'a>(name: &'static str, take: impl Fn() + Sync + 'a) -> Contender<'a> {
    contender(name, move |takes| four(takes, |_| take()))
}

fn clocks(rounds: usize) {
    let quanta = quanta::Clock::new();
    let governors = governor::clock::DefaultClock::default();
    let contenders = &mut [
        alone("std::time::Instant", || _ = black_box(Instant::now())),
        alone("quanta", || _ = black_box(quanta.now())),
        alone("governor's", || _ = black_box(governors.now())),
    ];
    race("a clock is read", rounds, TAKES, contenders);
}

fn rates(rounds: usize, client: &Client) {
    let rate = NonZeroU32::new(u32::MAX).unwrap();
    let governor = DefaultDirectRateLimiter::direct(Quota::per_second(rate).allow_burst(rate));
    let three = NonZeroU32::new(3).unwrap();
    let ours = rate_limiter(client, "plenty", PLENTY);
    let contenders = &mut [
        alone("governor", || ask(governor.check())),
        alone("doorward", || ask(ours.try_acquire(1))),
        alone("governor, three at once", || ask(governor.check_n(three))),
        alone("doorward, three at once", || {
            ask(ours.try_acquire(black_box(3)))
        }),
        alone("doorward, a cost of 0.3", || {
            ask(ours.try_acquire(Units::at_least(black_box(0.3)).unwrap()))
        }),
    ];
    race("a rate, one thread: admitted", rounds, TAKES, contenders);
    let admitted = (0..TAKES).filter(|_| ours.try_acquire(1).is_ok()).count();
    println!("  (of {TAKES} of ours, {admitted} are admitted)");

    let nothing = DefaultDirectRateLimiter::direct(Quota::per_hour(NonZeroU32::MIN));
    nothing.check().unwrap();
    let hardly = rate_limiter(client, "hardly", 0.01);
    let _first = hardly.try_acquire(1);
    let contenders = &mut [
        alone("governor", || ask(nothing.check())),
        alone("doorward", || ask(hardly.try_acquire(1))),
    ];
    race("a rate, one thread: refused", rounds, TAKES, contenders);

    let title = "a rate, four threads (time of all, a take)";
    let contenders = &mut [
        in_four("governor", || ask(governor.check())),
        in_four("doorward", || ask(ours.try_acquire(1))),
    ];
    race(title, rounds.div_ceil(4), TAKES * 10, contenders);
}

fn concurrency(rounds: usize, client: &Client) {
    let semaphore = Semaphore::new(1_000);
    let ours = resource(client, "gate", 1_000.0).concurrency_limiter();
    let title = "concurrency, one thread: a permit taken and given back";
    let contenders = &mut [
        alone("tokio's semaphore", || ask(semaphore.try_acquire())),
        alone("doorward", || ask(ours.try_acquire(1))),
    ];
    race(title, rounds, TAKES, contenders);

    let title = "concurrency, four threads (time of all, a permit)";
    let contenders = &mut [
        in_four("tokio's semaphore", || ask(semaphore.try_acquire())),
        in_four("doorward", || ask(ours.try_acquire(1))),
    ];
    race(title, rounds.div_ceil(4), TAKES * 10, contenders);
}

fn budgets(rounds: usize) {
    let (client, _server) = Client::fake("bench");
    let budget = client.budget("tokens").unwrap();
    while budget.try_acquire(1).is_err() {
        std::thread::yield_now();
    }
    let permits = Semaphore::new(1_000);
    let contenders = &mut [
        alone("tokio's semaphore", || ask(permits.try_acquire())),
        alone("doorward, reserved and settled", || {
            budget
                .try_acquire(black_box(3))
                .unwrap()
                .settle(black_box(2));
        }),
    ];
    race("a budget, one thread", rounds, TAKES, contenders);
}

fn main() {
    // `cargo test --benches` runs this too; one round is enough then.
    let quick = std::env::args().any(|arg| arg == "--test");
    let rounds = if quick { 1 } else { 201 };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let _within = runtime.enter();
    let client = Client::builder().id("bench").address("127.0.0.1:9");
    let client = client.connect_lazy().unwrap();
    // Waits until the speed of the processor's counter is known.
    let warm = rate_limiter(&client, "warm", PLENTY);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(300) {
        let _any = warm.try_acquire(1);
    }
    clocks(rounds);
    rates(rounds, &client);
    concurrency(rounds, &client);
    budgets(rounds);
}
