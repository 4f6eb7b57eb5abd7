//! Times for which a server held the lock of its node, from its `/metrics`: a client may wait for the lock, or for
//! anything else.
//!
//! The server measures by the clock. If the system takes its core away while it holds the lock, the hold is longer. So
//! on a busy machine, holds of some milliseconds are no evidence about the server.

use std::time::Duration;

/// Beginning of the histogram's lines.
const BUCKET: &str = "doorward_node_lock_held_seconds_bucket{";

/// Bounds of the histogram above which holds are counted.
pub(crate) const LONG: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(1)];

/// Number of holds of the lock, by length. Empty: the metrics do not have them.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Holds {
    /// Bounds in seconds, each with the number of holds that took no longer. The last bound is infinite.
    counts: Vec<(f64, u64)>,
}

impl Holds {
    /// Reads the metrics of a server.
    pub(crate) fn of(metrics: &str) -> Self {
        let counts = metrics.lines().filter_map(|line| {
            let (_, bucket) = line.strip_prefix(BUCKET)?.split_once("le=\"")?;
            let (bound, count) = bucket.split_once("\"} ")?;
            Some((bound.parse().ok()?, count.parse().ok()?))
        });
        Self {
            counts: counts.collect(),
        }
    }

    /// Returns the holds since an earlier time.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let pairs = self.counts.iter().zip(&before.counts);
        let counts = pairs.map(|((bound, now), (_, then))| (*bound, now.saturating_sub(*then)));
        Self {
            counts: counts.collect(),
        }
    }

    /// Returns the number of longer holds. None: the metrics do not have it.
    pub(crate) fn beyond(&self, span: Duration) -> Option<u64> {
        let is_span = |bound: f64| (bound / span.as_secs_f64() - 1.0).abs() < 1e-6;
        let (_, all) = self.counts.last()?;
        let (_, within) = self.counts.iter().find(|(bound, _)| is_span(*bound))?;
        Some(all.saturating_sub(*within))
    }
}

/// Checks the reading of a histogram, before and after.
pub(crate) fn check() {
    let metrics = |counts: [u64; 4]| {
        let bounds = ["0.000001", "0.00005", "0.001", "+Inf"];
        let lines = bounds.iter().zip(counts);
        let lines =
            lines.map(|(bound, count)| format!("{BUCKET}node=\"root\",le=\"{bound}\"}} {count}\n"));
        let other = "doorward_node_lock_wait_seconds_bucket{node=\"root\",le=\"0.001\"} 9\n";
        lines.collect::<String>() + other
    };
    let before = Holds::of(&metrics([1, 5, 7, 8]));
    assert_eq!(LONG.map(|span| before.beyond(span)), [Some(3), Some(1)]);
    let during = Holds::of(&metrics([2, 8, 12, 14])).since(&before);
    assert_eq!(LONG.map(|span| during.beyond(span)), [Some(3), Some(1)]);
    assert_eq!(during.beyond(Duration::from_micros(70)), None);
    assert_eq!(Holds::of("").beyond(LONG[0]), None);
}
