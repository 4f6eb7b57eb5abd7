//! Cost of a decision under overload, with 10,000 operations and users.
//!
//! `cargo bench -p doorward --bench overload`

#![allow(missing_docs, reason = "the macros of divan write some items")]
#![allow(clippy::indexing_slicing, reason = "a bench may panic")]

use std::hint::black_box;

use divan::Bencher;
use doorward::overload::{Admission, Ask, Config, Criticality, Offer, Throttler};
use doorward_limits::Moment;

fn main() {
    divan::main();
}

/// Number of operations and users.
const OPERATIONS: u64 = 10_000;

/// A service whose requests take 10 ms, and its time.
struct Loaded {
    throttler: Throttler<u64>,
    served: Vec<Admission>,
    micros: i64,
    number: u64,
}

impl Loaded {
    /// Creates a service that has been overloaded for a while.
    fn new() -> Self {
        let config = Config {
            fixed_limit: Some(100),
            ..Config::default()
        };
        let mut loaded = Self {
            throttler: Throttler::new(config),
            served: Vec::new(),
            micros: 0,
            number: 0,
        };
        for _ in 0..100_000 {
            loaded.offer();
            loaded.end();
        }
        loaded
    }

    /// Offers the next request, 10 µs after the last one.
    fn offer(&mut self) {
        self.number += 1;
        self.micros += 10;
        let mixed = self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let ask = Ask {
            operation: (mixed >> 40) % OPERATIONS,
            criticality: Criticality::ALL[(mixed >> 20) as usize % 4],
            user: Some((mixed >> 24) % OPERATIONS),
            deadline: None,
        };
        let now = Moment::from_nanos(self.micros * 1_000);
        if let Offer::Admitted(admission) = self.throttler.offer(&ask, || self.number, now) {
            self.served.push(admission);
        }
        while let Some((_, decision)) = self.throttler.poll_decided() {
            self.served.extend(decision);
        }
    }

    /// Ends one request in ten, so nine of ten are refused.
    fn end(&mut self) {
        if self.number.is_multiple_of(10) && !self.served.is_empty() {
            let admission = self.served.swap_remove(0);
            let now = Moment::from_nanos(self.micros * 1_000);
            self.throttler.handle_end(admission, Some(10.0), now);
        }
    }
}

/// A request of ten times the load that the service can do.
#[divan::bench(sample_size = 1_000)]
fn request_under_overload(bencher: Bencher<'_, '_>) {
    let mut loaded = Loaded::new();
    bencher.bench_local(|| {
        loaded.offer();
        loaded.end();
        black_box(loaded.number)
    });
}

/// A request that is served at once, from its offer to its end.
#[divan::bench(sample_size = 1_000)]
fn request_without_overload(bencher: Bencher<'_, '_>) {
    let mut throttler: Throttler<u64> = Throttler::new(Config::default());
    let mut number = 0;
    bencher.bench_local(|| {
        number += 1;
        let now = Moment::from_nanos(number * 1_000);
        let ask = Ask {
            operation: number.unsigned_abs() % OPERATIONS,
            ..Ask::default()
        };
        if let Offer::Admitted(admission) = throttler.offer(&ask, || 0, now) {
            throttler.handle_end(admission, Some(1.0), now.after_nanos(500));
        }
    });
}
