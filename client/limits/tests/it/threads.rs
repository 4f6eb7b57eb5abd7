//! Threads on one limit.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use doorward_limits::{Clock, ManualClock, Moment, Units};
use proptest::prelude::*;

/// Four threads take until they are refused, then time passes, and so on. Together they get as much as one thread.
#[track_caller]
pub(crate) fn take_as_much_as_one(
    step: Duration,
    take: impl Fn(Moment) -> bool + Sync,
    mut take_alone: impl FnMut(Moment) -> bool,
) {
    const STEPS: u64 = 100;
    let clock = ManualClock::new(Moment::ORIGIN);
    let (steps, passed) = (Barrier::new(5), AtomicU64::new(0));
    thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| {
                for _ in 0..STEPS {
                    steps.wait();
                    while take(clock.now()) {
                        passed.fetch_add(1, Ordering::Relaxed);
                    }
                    steps.wait();
                }
            });
        }
        for _ in 0..STEPS {
            clock.advance(step);
            steps.wait();
            steps.wait();
            let mut expected = 0;
            while take_alone(clock.now()) {
                expected += 1;
            }
            assert_eq!(passed.swap(0, Ordering::Relaxed), expected);
        }
    });
}

/// Three threads take as fast as they can until the given work is done. Returns the number of takes that passed.
pub(crate) fn take_during(work: impl FnOnce(), take: impl Fn() -> bool + Sync) -> u64 {
    let (over, passed) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|threads| {
        for _ in 0..3 {
            threads.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    // Then the working thread has its turn soon, also with fewer cores than threads.
                    for _ in 0..64 {
                        if take() {
                            passed.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    thread::yield_now();
                }
            });
        }
        work();
        over.store(true, Ordering::Relaxed);
    });
    passed.into_inner()
}

/// Costs in parts: usually whole units, sometimes anything.
pub(crate) fn parts() -> impl Strategy<Value = Units> {
    let parts = prop_oneof![
        8 => (0..20_u64).prop_map(|it| it * 1_000_000_000),
        2 => 0..20_000_000_000_u64,
        1 => any::<u64>(),
    ];
    parts.prop_map(|it| Units::from_parts(it.into()))
}
