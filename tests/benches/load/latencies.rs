//! Latencies of calls: all are kept, so each figure is exact.

use std::fmt;
use std::time::Duration;

/// Latencies, in order.
#[derive(Debug, Default)]
pub(crate) struct Latencies(Vec<Duration>);

impl Latencies {
    /// Sorts latencies.
    pub(crate) fn new(mut all: Vec<Duration>) -> Self {
        all.sort_unstable();
        Self(all)
    }

    /// Returns their number.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the latency that `part` of them does not exceed, or 0 if there are none.
    pub(crate) fn at(&self, part: f64) -> Duration {
        let rank = (self.0.len() as f64 * part).ceil() as usize;
        let index = rank.clamp(1, self.0.len().max(1)) - 1;
        self.0.get(index).copied().unwrap_or_default()
    }

    /// Returns the longest.
    pub(crate) fn max(&self) -> Duration {
        self.at(1.0)
    }
}

impl fmt::Display for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [0.5, 0.99, 0.999, 1.0] {
            write!(f, " {:>9}", format!("{:.1?}", self.at(part)))?;
        }
        Ok(())
    }
}

/// Checks figures that can be computed by hand. Benches have no tests of their own, so the small run calls this.
pub(crate) fn check() {
    assert_eq!(Latencies::default().max(), Duration::ZERO);
    let all = (1..=1_000).rev().chain([7_000]);
    let latencies = Latencies::new(all.map(Duration::from_millis).collect());
    assert_eq!(latencies.count(), 1_001);
    assert_eq!(latencies.at(0.5), Duration::from_millis(501));
    assert_eq!(latencies.at(0.999), Duration::from_millis(1_000));
    assert_eq!(latencies.max(), Duration::from_secs(7));
}
