//! Memory of a key: fills a map with a million keys in use, and reads the growth of the process from the operating
//! system.
//!
//! `cargo bench -p doorward-limits --features std-clock --bench memory`

#![allow(clippy::unwrap_used, reason = "a bench may panic")]
#![expect(clippy::print_stdout, reason = "the figures are what this is for")]

use doorward_limits::{
    Algorithm, FixedWindow, Gcra, Keyed, Keys, LeakyMeter, Moment, Rate, SlidingCounter,
    SlidingLog, TokenBucket, Units,
};

/// Returns the memory of the process.
fn resident_bytes() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    let kilobytes: usize = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kilobytes * 1_024)
}

fn measure<A: Algorithm + Clone>(name: &str, algorithm: A, keys_in_use: u64, takes: u32) {
    let keys = Keys::new([1, 2]);
    let before = resident_bytes();
    let map = Keyed::new(algorithm, usize::try_from(keys_in_use).unwrap());
    for take in 0..takes {
        for key in 0..keys_in_use {
            let key = keys.key().number(key).finish();
            let now = Moment::from_nanos(i64::from(take) * 1_000_000);
            assert!(map.take(key, Units::ONE, now).is_allowed());
        }
    }
    assert_eq!(map.figures().overflowed, 0);
    let each = resident_bytes()
        .zip(before)
        .map(|(after, before)| after.saturating_sub(before) as f64 / keys_in_use as f64);
    let each = each.map_or("unknown".to_owned(), |each| format!("{each:.0}"));
    println!("{name:<28} {takes:>8}  {each:>12}");
    // Memory that one map frees would reduce the figure of the next.
    std::mem::forget(map);
}

fn main() {
    // `cargo test --benches` runs this too; a few keys are enough then.
    let quick = std::env::args().any(|arg| arg == "--test");
    let keys: u64 = if quick { 1_000 } else { 1_000_000 };
    let rate: Rate = "1000/h".parse().unwrap();
    println!("{keys} keys in use");
    println!("{:<28} {:>8}  {:>12}", "algorithm", "takes", "bytes a key");
    measure(
        "TokenBucket",
        TokenBucket::new(1_000, rate).unwrap(),
        keys,
        1,
    );
    measure("Gcra", Gcra::new(1_000, rate).unwrap(), keys, 1);
    measure("LeakyMeter", LeakyMeter::new(1_000, rate).unwrap(), keys, 1);
    measure("FixedWindow", FixedWindow::new(rate), keys, 1);
    measure(
        "SlidingCounter",
        SlidingCounter::new(rate).unwrap(),
        keys,
        1,
    );
    measure("SlidingLog", SlidingLog::new(rate).unwrap(), keys, 1);
    measure("SlidingLog", SlidingLog::new(rate).unwrap(), keys / 10, 100);
}
