//! Cost of a decision, compared with the crates `governor` and `leaky-bucket`.
//!
//! `cargo bench -p doorward-limits --features std-clock --bench decision`
//!
//! All contenders of a table take turns within each round, and are compared with `governor`. *Same clock* means that
//! both read an atomic number as the time; *own clock* means that each reads its default clock.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a bench may panic, and measures time"
)]
#![expect(clippy::print_stdout, reason = "the figures are what this is for")]

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use doorward_limits::{
    AtomicBucket, Clock as _, FixedWindow, Gcra, Keyed, Keys, Limit, Limiter, ManualClock, Moment,
    Rate, Shared, SlidingCounter, SlidingLog, StdClock, TokenBucket, Units,
};
use governor::clock::FakeRelativeClock;
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::turns::{TAKES, contender, four, race};

#[path = "paired/turns.rs"]
mod turns;

/// Rate per second, and burst.
const RATE: u32 = 1_000_000;

fn rate() -> Rate {
    Rate::per_second(Units::whole(u64::from(RATE)))
}

fn bucket() -> TokenBucket {
    TokenBucket::new(u64::from(RATE), rate()).unwrap()
}

fn quota() -> Quota {
    let rate = NonZeroU32::new(RATE).unwrap();
    Quota::per_second(rate).allow_burst(rate)
}

/// Compares one limit in one thread.
#[expect(clippy::too_many_lines, reason = "a table of measurements")]
fn one_limit(rounds: usize) {
    let second = Duration::from_secs(1);
    let fake = FakeRelativeClock::default();
    let governor = RateLimiter::direct_with_clock(quota(), fake.clone());
    let clock = ManualClock::new(Moment::from_nanos(1));
    let word = AtomicBucket::new(bucket());
    let mut gcra = Limiter::new(Gcra::new(u64::from(RATE), rate()).unwrap());
    let mut token_bucket = Limiter::new(bucket());
    let mut window = Limiter::new(FixedWindow::new(rate()));
    let mut counter = Limiter::new(SlidingCounter::new(rate()));
    let mut log = Limiter::new(SlidingLog::new(rate()));
    let shared = Shared::new(bucket());
    race(
        "one thread, same clock: allowed",
        rounds,
        TAKES,
        &mut [
            contender("governor, GCRA", |takes| {
                fake.advance(second);
                for _ in 0..takes {
                    black_box(governor.check().is_ok());
                }
            }),
            contender("AtomicBucket", |takes| {
                clock.advance(second);
                for _ in 0..takes {
                    let now = clock.now();
                    black_box(word.take(Units::ONE, now).is_allowed());
                }
            }),
            contender("AtomicBucket, with remaining and reset", |takes| {
                for _ in 0..takes {
                    let now = clock.now();
                    let _ = black_box(word.take(Units::ONE, now));
                }
                clock.advance(second);
            }),
            contender("Shared<TokenBucket>", |takes| {
                clock.advance(second);
                for _ in 0..takes {
                    let now = clock.now();
                    black_box(shared.take(Units::ONE, now).is_allowed());
                }
            }),
            contender("Limiter<Gcra>", |takes| {
                clock.advance(second);
                for _ in 0..takes {
                    let now = clock.now();
                    black_box(gcra.take(1, now).is_allowed());
                }
            }),
            contender("Limiter<TokenBucket>", |takes| {
                clock.advance(second);
                for _ in 0..takes {
                    let now = clock.now();
                    black_box(token_bucket.take(1, now).is_allowed());
                }
            }),
            contender("Limiter<FixedWindow>", |takes| {
                clock.advance(second);
                for _ in 0..takes {
                    let now = clock.now();
                    black_box(window.take(1, now).is_allowed());
                }
            }),
            contender("Limiter<SlidingCounter>", |takes| {
                clock.advance(second * 2);
                for _ in 0..takes {
                    let now = clock.now();
                    black_box(counter.take(1, now).is_allowed());
                }
            }),
            contender("Limiter<SlidingLog>", |takes| {
                clock.advance(second);
                for _ in 0..takes {
                    let now = clock.now();
                    black_box(log.take(1, now).is_allowed());
                }
            }),
        ],
    );
    let governor = RateLimiter::direct_with_clock(quota(), FakeRelativeClock::default());
    let word = AtomicBucket::new(bucket());
    for _ in 0..RATE {
        let _ = (governor.check(), word.take(Units::ONE, Moment::ORIGIN));
    }
    race(
        "one thread, same clock: refused",
        rounds,
        TAKES,
        &mut [
            contender("governor, GCRA", |takes| {
                for _ in 0..takes {
                    black_box(governor.check().is_ok());
                }
            }),
            contender("AtomicBucket", |takes| {
                for _ in 0..takes {
                    black_box(word.take(Units::ONE, Moment::ORIGIN).is_allowed());
                }
            }),
        ],
    );
}

/// Compares rates and bursts of one limit, all in one thread.
fn rates(rounds: usize) {
    let clock = ManualClock::new(Moment::from_nanos(1));
    let of = |burst: u64, rate: &str| {
        let bucket = TokenBucket::new(burst, rate.parse().unwrap()).unwrap();
        AtomicBucket::new(bucket)
    };
    let even = of(20_000, "100/s");
    let uneven = of(86_399, "86399/day");
    let bytes = of(3_000_000_000, "1000000000/s");
    let take = |bucket: &AtomicBucket, takes: u32, cost: Units| {
        clock.advance(Duration::from_hours(24));
        for _ in 0..takes {
            let now = clock.now();
            black_box(bucket.take(cost, now).is_allowed());
        }
    };
    race(
        "one thread: rates of an AtomicBucket",
        rounds,
        TAKES,
        &mut [
            contender("100/s", |takes| take(&even, takes, Units::ONE)),
            contender("86399/day", |takes| take(&uneven, takes, Units::ONE)),
            contender("1000000000/s, 1500 at once", |takes| {
                take(&bytes, takes, Units::whole(1_500));
            }),
        ],
    );
}

/// Compares one limit in one thread, each with its own clock.
fn own_clocks(rounds: usize) {
    let rate_u32 = NonZeroU32::new(u32::MAX).unwrap();
    let governor = RateLimiter::direct(Quota::per_second(rate_u32).allow_burst(rate_u32));
    let fast = Rate::new(Units::ONE, Duration::from_nanos(1)).unwrap();
    let word = AtomicBucket::new(TokenBucket::new(4_000_000, fast).unwrap());
    let clock = StdClock::new();
    let leaky = leaky_bucket::RateLimiter::builder()
        .max(1_000_000_000)
        .initial(1_000_000_000)
        .refill(1_000_000_000)
        .interval(Duration::from_secs(1))
        .build();
    race(
        "one thread, own clock: allowed",
        rounds,
        TAKES,
        &mut [
            contender("governor, GCRA", |takes| {
                for _ in 0..takes {
                    black_box(governor.check().is_ok());
                }
            }),
            contender("AtomicBucket, StdClock", |takes| {
                for _ in 0..takes {
                    black_box(word.take(Units::ONE, clock.now()).is_allowed());
                }
            }),
            contender("leaky-bucket", |takes| {
                for _ in 0..takes {
                    black_box(leaky.try_acquire(1));
                }
            }),
            contender("a read of StdClock alone", |takes| {
                for _ in 0..takes {
                    black_box(clock.now());
                }
            }),
        ],
    );
}

/// Compares limits by key.
fn keyed(rounds: usize, count: usize) {
    let names: Vec<String> = (0..count).map(|it| format!("client-{it:08}")).collect();
    let governor: DefaultKeyedRateLimiter<String> = RateLimiter::keyed(quota());
    let keys = Keys::new([11, 13]);
    let map = Keyed::new(Gcra::new(u64::from(RATE), rate()).unwrap(), count * 2);
    let clock = StdClock::new();
    let now = || clock.now();
    for name in &names {
        // Both must keep every key while this runs.
        map.charge(
            keys.key().text(name).finish(),
            Units::whole(u64::from(RATE) * 600),
            now(),
        );
        let _ = governor.check_key(name);
    }
    let (mut one, mut other) = (0, 0);
    let step = 7_919;
    race(
        &format!("one thread, own clock: {count} keys by name"),
        rounds,
        TAKES,
        &mut [
            contender("governor, keyed", |takes| {
                for _ in 0..takes {
                    one = (one + step) % count;
                    black_box(governor.check_key(&names[one]).is_ok());
                }
            }),
            contender("Keyed<Gcra>", |takes| {
                for _ in 0..takes {
                    other = (other + step) % count;
                    let key = keys.key().text(&names[other]).finish();
                    black_box(map.take(key, Units::ONE, now()).is_allowed());
                }
            }),
        ],
    );
}

/// Compares four threads on one limit, and on many.
fn four_threads(rounds: usize) {
    const MANY: usize = 10_000;
    let takes = TAKES * 10;
    let rate_u32 = NonZeroU32::new(u32::MAX).unwrap();
    let quota = Quota::per_second(rate_u32).allow_burst(rate_u32);
    let fast = Rate::new(Units::ONE, Duration::from_nanos(1)).unwrap();
    let bucket = TokenBucket::new(4_000_000, fast).unwrap();
    let clock = StdClock::new();
    let governor = RateLimiter::direct(quota);
    let word = AtomicBucket::new(bucket);
    let shared = Shared::new(bucket);
    let leaky = leaky_bucket::RateLimiter::builder()
        .max(1_000_000_000)
        .initial(1_000_000_000)
        .refill(1_000_000_000)
        .interval(Duration::from_secs(1))
        .build();
    race(
        "four threads, own clock: one limit (time of all, a take)",
        rounds,
        takes,
        &mut [
            contender("governor, GCRA", |takes| {
                four(takes, |_| {
                    black_box(governor.check().is_ok());
                });
            }),
            contender("AtomicBucket, StdClock", |takes| {
                four(takes, |_| {
                    black_box(word.take(Units::ONE, clock.now()).is_allowed());
                });
            }),
            contender("Shared<TokenBucket>, StdClock", |takes| {
                four(takes, |_| {
                    black_box(shared.take(Units::ONE, clock.now()).is_allowed());
                });
            }),
            contender("leaky-bucket", |takes| {
                four(takes, |_| {
                    black_box(leaky.try_acquire(1));
                });
            }),
        ],
    );
    let names: Vec<String> = (0..MANY).map(|it| format!("client-{it:08}")).collect();
    let governor: DefaultKeyedRateLimiter<String> = RateLimiter::keyed(quota);
    // So slow that no key is full again while this runs.
    let slow = TokenBucket::new(u64::from(u32::MAX), "1/s".parse().unwrap()).unwrap();
    let keys = Keys::new([11, 13]);
    let map = Keyed::new(slow, MANY * 2);
    race(
        "four threads, own clock: 10000 keys by name (time of all, a take)",
        rounds,
        takes,
        &mut [
            contender("governor, keyed", |takes| {
                four(takes, |it| {
                    black_box(governor.check_key(&names[it * 7_919 % MANY]).is_ok());
                });
            }),
            contender("Keyed<TokenBucket>", |takes| {
                four(takes, |it| {
                    let key = keys.key().text(&names[it * 7_919 % MANY]).finish();
                    black_box(map.take(key, Units::ONE, clock.now()).is_allowed());
                });
            }),
        ],
    );
}

fn main() {
    // `cargo test --benches` runs this too; one round is enough then.
    let quick = std::env::args().any(|arg| arg == "--test");
    let rounds = if quick { 1 } else { 201 };
    one_limit(rounds);
    rates(rounds);
    own_clocks(rounds);
    keyed(rounds, if quick { 1_000 } else { 1_000_000 });
    four_threads(rounds.div_ceil(4));
}
