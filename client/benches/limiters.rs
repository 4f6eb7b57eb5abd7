//! Cost of a client's limiter, compared with the crates `governor` and `leaky-bucket`, and with tokio's semaphore.
//!
//! `cargo bench -p doorward-client --bench limiters`
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
use std::sync::Arc;
use std::time::{Duration, Instant};

use doorward_client::capacity::{Allowance, Capacity, Source};
use doorward_client::limiter::demand::AdaptiveWants;
use doorward_client::limiter::rate::{Burst, LeasedRate};
use doorward_client::time::Time;
use doorward_client::{Client, ConcurrencyLimiter, Mode, RateLimiter, Resource};
use governor::clock::Clock as _;
use governor::{DefaultDirectRateLimiter, Quota};
use tokio::sync::Semaphore;

use crate::turns::{TAKES, contender, four, race};

#[path = "../limits/benches/paired/turns.rs"]
mod turns;

/// A rate that is never exceeded here, because one take lasts about 10 ns.
const PLENTY: f64 = 4e8;

/// The contenders from other crates.
struct Others {
    governor: DefaultDirectRateLimiter,
    leaky: leaky_bucket::RateLimiter,
}

impl Others {
    fn with_plenty() -> Self {
        let rate = NonZeroU32::new(u32::MAX).unwrap();
        Self {
            governor: governor::RateLimiter::direct(Quota::per_second(rate).allow_burst(rate)),
            leaky: leaky(1_000_000_000),
        }
    }

    /// Creates contenders that refuse.
    fn with_nothing() -> Self {
        let governor = governor::RateLimiter::direct(Quota::per_hour(NonZeroU32::MIN));
        governor.check().unwrap();
        let leaky = leaky_bucket::RateLimiter::builder()
            .max(1)
            .initial(0)
            .refill(1)
            .interval(Duration::from_secs(3_600))
            .build();
        Self { governor, leaky }
    }
}

fn leaky(rate: usize) -> leaky_bucket::RateLimiter {
    leaky_bucket::RateLimiter::builder()
        .max(rate)
        .initial(rate)
        .refill(rate)
        .interval(Duration::from_secs(1))
        .build()
}

/// Opens a resource of which the client uses what it wants.
fn resource(client: &Client, id: &str, wants: f64, adaptive: Option<AdaptiveWants>) -> Resource {
    let resource = client.resource(id).mode(Mode::Optimistic).wants(wants);
    let resource = match adaptive {
        Some(adaptive) => resource.adaptive_wants(adaptive),
        None => resource,
    };
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
    resource(client, id, wants, None).rate_limiter(burst)
}

/// Creates a limiter that measures demand.
fn measured(client: &Client) -> RateLimiter {
    let adaptive = AdaptiveWants {
        least: PLENTY,
        most: PLENTY,
        ..AdaptiveWants::default()
    };
    let burst = Burst {
        span: Duration::from_millis(10),
        least: 1.0,
    };
    resource(client, "measured", 0.0, Some(adaptive)).rate_limiter(burst)
}

/// Uses only this part of the answer, as in `if limiter.try_acquire(1.0).is_ok()`. The answer is dropped before, so
/// that the caller need not keep the rest of it.
#[inline]
fn ask<T, E>(answer: Result<T, E>) {
    let is_ok = answer.is_ok();
    drop(answer);
    black_box(is_ok);
}

fn clocks(rounds: usize) {
    let (quanta, governors) = (
        quanta::Clock::new(),
        governor::clock::DefaultClock::default(),
    );
    race(
        "a clock is read",
        rounds,
        TAKES,
        &mut [
            contender("std::time::Instant", |takes| {
                for _ in 0..takes {
                    black_box(Instant::now());
                }
            }),
            contender("quanta", |takes| {
                for _ in 0..takes {
                    black_box(quanta.now());
                }
            }),
            contender("quanta, raw", |takes| {
                for _ in 0..takes {
                    black_box(quanta.raw());
                }
            }),
            contender("governor's", |takes| {
                for _ in 0..takes {
                    black_box(governors.now());
                }
            }),
        ],
    );
}

#[expect(clippy::too_many_lines, reason = "a table of measurements")]
fn rates(rounds: usize, client: &Client) {
    let others = Others::with_plenty();
    let ours = rate_limiter(client, "plenty", PLENTY);
    let measured = measured(client);
    race(
        "a rate, one thread: admitted",
        rounds,
        TAKES,
        &mut [
            contender("governor", |takes| {
                for _ in 0..takes {
                    ask(others.governor.check());
                }
            }),
            contender("leaky-bucket", |takes| {
                for _ in 0..takes {
                    black_box(others.leaky.try_acquire(1));
                }
            }),
            contender("doorward", |takes| {
                for _ in 0..takes {
                    ask(ours.try_acquire(1.0));
                }
            }),
            contender("doorward, another cost", |takes| {
                for _ in 0..takes {
                    ask(ours.try_acquire(black_box(1.5)));
                }
            }),
            contender("doorward, demand measured", |takes| {
                for _ in 0..takes {
                    ask(measured.try_acquire(1.0));
                }
            }),
        ],
    );
    let admitted = (0..TAKES).filter(|_| ours.try_acquire(1.0).is_ok()).count();
    println!("  (of {TAKES} of ours, {admitted} are admitted)");
    let nothing = Others::with_nothing();
    let hardly = rate_limiter(client, "hardly", 0.01);
    let _first = hardly.try_acquire(1.0);
    race(
        "a rate, one thread: refused",
        rounds,
        TAKES,
        &mut [
            contender("governor", |takes| {
                for _ in 0..takes {
                    ask(nothing.governor.check());
                }
            }),
            contender("leaky-bucket", |takes| {
                for _ in 0..takes {
                    black_box(nothing.leaky.try_acquire(1));
                }
            }),
            contender("doorward", |takes| {
                for _ in 0..takes {
                    ask(hardly.try_acquire(1.0));
                }
            }),
        ],
    );
    told(rounds, &nothing, &hardly);
    race(
        "a rate, four threads (time of all, a take)",
        rounds.div_ceil(4),
        TAKES * 10,
        &mut [
            contender("governor", |takes| {
                four(takes, |_| {
                    ask(others.governor.check());
                });
            }),
            contender("leaky-bucket", |takes| {
                four(takes, |_| {
                    black_box(others.leaky.try_acquire(1));
                });
            }),
            contender("doorward", |takes| {
                four(takes, |_| {
                    ask(ours.try_acquire(1.0));
                });
            }),
            contender("doorward, demand measured", |takes| {
                four(takes, |_| {
                    ask(measured.try_acquire(1.0));
                });
            }),
        ],
    );
}

/// Measures refused callers that need the time to come back. Governor keeps the data for it, and computes it from a
/// second reading of the clock; doorward's refusal contains it.
fn told(rounds: usize, nothing: &Others, hardly: &RateLimiter) {
    let clock = governor::clock::DefaultClock::default();
    race(
        "a rate, one thread: refused, and told how long to wait",
        rounds,
        TAKES,
        &mut [
            contender("governor", |takes| {
                for _ in 0..takes {
                    let refused = nothing.governor.check();
                    black_box(refused.map_err(|until| until.wait_time_from(clock.now()))).ok();
                }
            }),
            contender("governor, the time at which", |takes| {
                for _ in 0..takes {
                    let refused = nothing.governor.check();
                    black_box(refused.map_err(|until| until.earliest_possible())).ok();
                }
            }),
            contender("doorward", |takes| {
                for _ in 0..takes {
                    black_box(hardly.try_acquire(1.0)).ok();
                }
            }),
        ],
    );
}

fn concurrency(rounds: usize, client: &Client) {
    let semaphore = Arc::new(Semaphore::new(1_000));
    let ours = resource(client, "gate", 1_000.0, None).concurrency_limiter();
    let owned = || black_box(semaphore.clone().try_acquire_owned().is_ok());
    let take = |limiter: &ConcurrencyLimiter| black_box(limiter.try_acquire().is_ok());
    race(
        "concurrency, one thread: a permit taken and given back",
        rounds,
        TAKES,
        &mut [
            contender("tokio's semaphore", |takes| {
                for _ in 0..takes {
                    black_box(semaphore.try_acquire().is_ok());
                }
            }),
            contender("tokio's semaphore, owned permits", |takes| {
                for _ in 0..takes {
                    owned();
                }
            }),
            contender("doorward", |takes| {
                for _ in 0..takes {
                    take(&ours);
                }
            }),
        ],
    );
    race(
        "concurrency, four threads (time of all, a permit)",
        rounds.div_ceil(4),
        TAKES * 10,
        &mut [
            contender("tokio's semaphore", |takes| {
                four(takes, |_| {
                    black_box(semaphore.try_acquire().is_ok());
                });
            }),
            contender("tokio's semaphore, owned permits", |takes| {
                four(takes, |_| {
                    owned();
                });
            }),
            contender("doorward", |takes| {
                four(takes, |_| {
                    take(&ours);
                });
            }),
        ],
    );
}

/// Measures a changed lease, and the same lease with a later expiry.
fn changes(rounds: usize) {
    let limiter = LeasedRate::new(Burst::default(), Time::ZERO);
    let lease = |capacity: f64, step: u32| Allowance {
        capacity: Capacity::Limited(capacity),
        source: Source::Lease,
        until: Some(Time::after_origin(Duration::from_secs(
            60 + u64::from(step),
        ))),
        then: Capacity::Limited(5.0),
        safe: None,
    };
    let change = |capacity: fn(u32) -> f64| {
        let limiter = &limiter;
        move |takes| {
            for step in 0..takes {
                limiter.handle_allowance(lease(capacity(step), step), Time::ZERO);
            }
        }
    };
    race(
        "a lease changes",
        rounds,
        TAKES,
        &mut [
            contender("the same for longer", change(|_| 100.0)),
            contender("whole numbers", change(|step| f64::from(step % 7 + 50))),
            contender(
                "uneven shares",
                change(|step| 1_000.0 / f64::from(step % 7 + 50)),
            ),
        ],
    );
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
    let client = Client::builder("bench").address("127.0.0.1:9");
    let client = client.connect_lazy().unwrap();
    // Waits until the speed of the processor's counter is known.
    let warm = rate_limiter(&client, "warm", PLENTY);
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(300) {
        let _any = warm.try_acquire(1.0);
    }
    clocks(rounds);
    rates(rounds, &client);
    concurrency(rounds, &client);
    changes(rounds);
}
