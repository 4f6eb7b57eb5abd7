//! How long a server held the lock of its node, as it says itself in `/metrics`: what a client waits for may be the
//! lock, and may be anything else.
//!
//! The server goes by the clock. If the system takes its core away while it holds the lock, it holds it the longer: on
//! a machine where others are at work, holds of some milliseconds say nothing of the server.

use std::time::Duration;

/// How the lines begin that have the histogram.
const BUCKET: &str = "doorward_node_lock_held_seconds_bucket{";

/// Holds are counted that took longer than these, which are bounds of the histogram.
pub(crate) const LONG: [Duration; 2] = [Duration::from_micros(50), Duration::from_millis(1)];

/// How often the lock was held, and for how long at most. Empty: the server does not say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Holds {
    /// Bounds in seconds, each with how many holds took no longer. The last is infinite.
    counts: Vec<(f64, u64)>,
}

impl Holds {
    /// What the metrics of a server say.
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

    /// Those since an earlier time.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let pairs = self.counts.iter().zip(&before.counts);
        let counts = pairs.map(|((bound, now), (_, then))| (*bound, now.saturating_sub(*then)));
        Self {
            counts: counts.collect(),
        }
    }

    /// How many took longer. None: the server does not say.
    pub(crate) fn beyond(&self, span: Duration) -> Option<u64> {
        let is_span = |bound: f64| (bound / span.as_secs_f64() - 1.0).abs() < 1e-6;
        let (_, all) = self.counts.last()?;
        let (_, within) = self.counts.iter().find(|(bound, _)| is_span(*bound))?;
        Some(all.saturating_sub(*within))
    }
}

/// A histogram as servers write it, before and after.
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
