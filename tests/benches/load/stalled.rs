//! Results of one kind of stall, in several runs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::holds::{Holds, LONG};
use crate::latencies::median;

/// Measurements in a span of time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Window {
    /// Longest wait of the client.
    pub(crate) worst: Duration,
    /// Times for which the server held its lock, by its own account.
    pub(crate) holds: Holds,
}

/// Results of one kind of stall.
#[derive(Clone, Debug)]
pub(crate) struct Stalled {
    what: &'static str,
    /// Windows of each run: one without the event, and one with it.
    baselines: Vec<Window>,
    meanwhile: Vec<Window>,
}

impl Stalled {
    /// Creates an empty result.
    pub(crate) fn new(what: &'static str) -> Self {
        Self {
            what,
            baselines: Vec::new(),
            meanwhile: Vec::new(),
        }
    }

    /// Adds a run: a window without the event, and one with it.
    pub(crate) fn note(&mut self, baseline: Window, meanwhile: Window) {
        self.baselines.push(baseline);
        self.meanwhile.push(meanwhile);
    }

    /// Returns the number of runs.
    pub(crate) fn runs(&self) -> usize {
        self.meanwhile.len()
    }

    /// Returns the difference of the median of the worst waits from that of the baselines.
    fn beyond(&self) -> Duration {
        median_worst(&self.meanwhile).saturating_sub(median_worst(&self.baselines))
    }

    /// Prints one line.
    pub(crate) fn print(&self) {
        let [long, very_long] = LONG.map(|span| {
            let all = |windows| total(windows, span).map_or("-".to_owned(), |it| it.to_string());
            format!("{} ({})", all(&self.meanwhile), all(&self.baselines))
        });
        println!(
            "{:22} {:>10} {:>10} {:>10} {long:>12} {very_long:>9}   {:.2?}",
            self.what,
            format!("{:.2?}", median_worst(&self.baselines)),
            format!("{:.2?}", median_worst(&self.meanwhile)),
            format!("{:.2?}", self.beyond()),
            worst(&self.meanwhile),
        );
    }

    pub(crate) fn json(&self) -> Value {
        let millis = |windows: &[Window]| -> Vec<f64> {
            let all = windows.iter();
            all.map(|it| it.worst.as_secs_f64() * 1e3).collect()
        };
        let held = |windows: &[Window], span| -> Vec<Option<u64>> {
            windows.iter().map(|it| it.holds.beyond(span)).collect()
        };
        let [long, very_long] = LONG;
        json!({
            "stall": self.what,
            "baseline_ms": millis(&self.baselines),
            "worst_ms": millis(&self.meanwhile),
            "beyond_ms": self.beyond().as_secs_f64() * 1e3,
            "baseline_holds_above_50us": held(&self.baselines, long),
            "holds_above_50us": held(&self.meanwhile, long),
            "baseline_holds_above_1ms": held(&self.baselines, very_long),
            "holds_above_1ms": held(&self.meanwhile, very_long),
        })
    }
}

fn worst(windows: &[Window]) -> Vec<Duration> {
    windows.iter().map(|it| it.worst).collect()
}

fn median_worst(windows: &[Window]) -> Duration {
    median(&worst(windows)).unwrap_or_default()
}

/// Returns the number of longer holds of the lock, in all windows together. None: the metrics do
/// not have it.
fn total(windows: &[Window], span: Duration) -> Option<u64> {
    windows.iter().map(|it| it.holds.beyond(span)).sum()
}

/// Prints the heading of [`Stalled::print`].
pub(crate) fn print_heading() {
    println!(
        "{:22} {:>10} {:>10} {:>10} {:>12} {:>9}   the worst of each run",
        "", "baseline", "meanwhile", "beyond", "held > 50 µs", "> 1 ms"
    );
}

/// Checks that the difference of medians is never negative.
pub(crate) fn check() {
    let window = |millis| Window {
        worst: Duration::from_millis(millis),
        ..Window::default()
    };
    let mut stalled = Stalled::new("anything");
    assert_eq!(stalled.beyond(), Duration::ZERO);
    for (baseline, meanwhile) in [(9, 4), (1, 90), (2, 7)] {
        stalled.note(window(baseline), window(meanwhile));
    }
    assert_eq!(
        (stalled.runs(), stalled.beyond()),
        (3, Duration::from_millis(5))
    );
    let mut quiet = Stalled::new("anything");
    quiet.note(window(3), window(2));
    assert_eq!(quiet.beyond(), Duration::ZERO);
    assert!(quiet.json()["holds_above_1ms"][0].is_null());
}
