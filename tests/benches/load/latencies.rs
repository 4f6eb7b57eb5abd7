//! Latencies of calls: all are kept, so each figure is exact.

use std::fmt;
use std::time::Duration;

use serde_json::{Value, json};

/// Latencies, unordered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Latencies(Vec<u64>);

/// Latencies in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quantiles(Vec<u64>);

impl Latencies {
    /// Adds one latency.
    pub(crate) fn note(&mut self, took: Duration) {
        self.0.push(u64::try_from(took.as_nanos()).unwrap());
    }

    /// Adds all of another one.
    pub(crate) fn add(&mut self, other: Self) {
        self.0.extend(other.0);
    }

    /// Sorts them.
    pub(crate) fn sorted(mut self) -> Quantiles {
        self.0.sort_unstable();
        Quantiles(self.0)
    }
}

impl Quantiles {
    /// Returns their number.
    pub(crate) fn count(&self) -> u64 {
        self.0.len() as u64
    }

    /// Returns the latency that `part` of them does not exceed, or 0 if there are none.
    pub(crate) fn at(&self, part: f64) -> Duration {
        let rank = (self.0.len() as f64 * part).ceil() as usize;
        let index = rank.clamp(1, self.0.len().max(1)) - 1;
        Duration::from_nanos(self.0.get(index).copied().unwrap_or(0))
    }

    /// Returns the number of latencies that are not shorter.
    pub(crate) fn beyond(&self, span: Duration) -> u64 {
        let sooner = |took: &u64| Duration::from_nanos(*took) < span;
        (self.0.len() - self.0.partition_point(sooner)) as u64
    }

    /// Returns the longest.
    pub(crate) fn max(&self) -> Duration {
        self.at(1.0)
    }

    /// Returns the figures in microseconds.
    pub(crate) fn json(&self) -> Value {
        let micros = |part: f64| self.at(part).as_nanos() as f64 / 1e3;
        json!({
            "count": self.count(),
            "p50_us": micros(0.5),
            "p99_us": micros(0.99),
            "p999_us": micros(0.999),
            "max_us": micros(1.0),
        })
    }
}

impl fmt::Display for Quantiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (part, width) in [(0.5, 9), (0.99, 9), (0.999, 9), (1.0, 9)] {
            let took = format!("{:.1?}", self.at(part));
            write!(f, " {took:>width$}")?;
        }
        Ok(())
    }
}

/// Returns the middle one of an odd number of figures, the upper one of the middle two of an even number.
pub(crate) fn median<T: Ord + Copy>(figures: &[T]) -> Option<T> {
    let mut sorted = figures.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied()
}

/// Checks figures that can be computed by hand. Benches have no tests of their own, so the small run calls this.
pub(crate) fn check() {
    let mut latencies = Latencies::default();
    assert_eq!(latencies.clone().sorted().max(), Duration::ZERO);
    for millis in (1..=1_000).rev() {
        latencies.note(Duration::from_millis(millis));
    }
    let mut more = Latencies::default();
    more.note(Duration::from_secs(7));
    latencies.add(more);
    let sorted = latencies.sorted();
    assert_eq!(sorted.count(), 1_001);
    assert_eq!(sorted.at(0.5), Duration::from_millis(501));
    assert_eq!(sorted.at(0.999), Duration::from_millis(1_000));
    assert_eq!(sorted.max(), Duration::from_secs(7));
    assert_eq!(sorted.beyond(Duration::from_millis(999)), 3);
    assert_eq!(sorted.beyond(Duration::from_secs(8)), 0);
    assert_eq!(median(&[3, 1, 2]), Some(2));
    assert_eq!(median::<u8>(&[]), None);
}
