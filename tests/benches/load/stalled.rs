//! What one kind of stall came to, in several runs.

use std::time::Duration;

use serde_json::{Value, json};

use crate::latencies::median;

/// What one kind of stall came to.
#[derive(Clone, Debug)]
pub(crate) struct Stalled {
    what: &'static str,
    /// The worst of each run.
    baselines: Vec<Duration>,
    worst: Vec<Duration>,
}

impl Stalled {
    /// Not measured yet.
    pub(crate) fn new(what: &'static str) -> Self {
        Self {
            what,
            baselines: Vec::new(),
            worst: Vec::new(),
        }
    }

    /// One run more: the worst of a window in which nothing happened, and of one in which it did.
    pub(crate) fn note(&mut self, baseline: Duration, worst: Duration) {
        self.baselines.push(baseline);
        self.worst.push(worst);
    }

    /// How often it was measured.
    pub(crate) fn runs(&self) -> usize {
        self.worst.len()
    }

    fn beyond(&self) -> Duration {
        let worst = median(&self.worst).unwrap_or_default();
        worst.saturating_sub(median(&self.baselines).unwrap_or_default())
    }

    /// One line.
    pub(crate) fn print(&self) {
        let figures = |all: &[Duration]| format!("{:.2?}", median(all).unwrap_or_default());
        println!(
            "{:22} {:>10} {:>10} {:>10}   {:.2?}",
            self.what,
            figures(&self.baselines),
            figures(&self.worst),
            format!("{:.2?}", self.beyond()),
            self.worst,
        );
    }

    pub(crate) fn json(&self) -> Value {
        let millis = |all: &[Duration]| -> Vec<f64> {
            all.iter().map(|it| it.as_secs_f64() * 1e3).collect()
        };
        json!({
            "stall": self.what,
            "baseline_ms": millis(&self.baselines),
            "worst_ms": millis(&self.worst),
            "beyond_ms": self.beyond().as_secs_f64() * 1e3,
        })
    }
}

/// The heading of what [`Stalled::print`] prints.
pub(crate) fn print_heading() {
    println!(
        "{:22} {:>10} {:>10} {:>10}   the worst of each run",
        "", "baseline", "meanwhile", "beyond"
    );
}
