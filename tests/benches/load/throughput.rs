//! The same load on several servers, one after the other: the server, a raw echo of the same messages, and, if
//! somebody asks for it, an echo that is built as cargo builds anything.

use std::time::Duration;

use serde_json::{Value, json};

use crate::generator::{Load, Measured};
use crate::latencies::Quantiles;
use crate::population::Outcome;
use crate::subject::Subject;

/// What a load on one server came to.
#[derive(Debug)]
pub(crate) struct Figures {
    name: &'static str,
    /// How long calls took.
    pub(crate) latencies: Quantiles,
    /// What they were answered.
    pub(crate) outcome: Outcome,
    /// Calls that were sent and count.
    pub(crate) calls: u64,
    /// Calls that were refused.
    pub(crate) refused: u64,
    /// Calls that got no answer.
    pub(crate) broken: u64,
    first_failure: Option<String>,
    lasted: Duration,
    /// For how long the server was busy.
    cpu: Option<Duration>,
}

impl Figures {
    /// Sets a load on a server.
    pub(crate) fn of(name: &'static str, subject: &Subject, load: Load) -> Self {
        let Measured {
            tally,
            lasted,
            read,
        } = load.run(|| subject.cpu_time());
        Self {
            name,
            latencies: tally.latencies.sorted(),
            outcome: tally.outcome,
            calls: tally.calls,
            refused: tally.refused,
            broken: tally.broken,
            first_failure: tally.first_failure,
            lasted,
            cpu: read.1.zip(read.0).map(|(after, before)| after - before),
        }
    }

    fn per_second(&self) -> f64 {
        self.calls as f64 / self.lasted.as_secs_f64()
    }

    /// What a call costs the server.
    fn cpu_each(&self) -> Option<Duration> {
        Some(self.cpu?.div_f64(self.calls.max(1) as f64))
    }

    /// The heading of what [`Figures::print`] prints.
    pub(crate) fn print_heading() {
        println!(
            "{:16} {:>11} {:>12} {:>8}  {:>9} {:>9} {:>9} {:>9}",
            "", "requests/s", "CPU/request", "of echo", "p50", "p99", "p99.9", "max"
        );
    }

    /// One line, and another one if something went wrong.
    pub(crate) fn print(&self, echo: Option<&Self>) {
        let each = self.cpu_each().map(|each| each.as_secs_f64() * 1e6);
        let of_echo = echo
            .and_then(Self::cpu_each)
            .zip(self.cpu_each())
            .map(|(echo, each)| format!("{:.3}", each.as_secs_f64() / echo.as_secs_f64()));
        println!(
            "{:16} {:>11.0} {:>12} {:>8} {}",
            self.name,
            self.per_second(),
            each.map_or_else(|| "-".to_owned(), |each| format!("{each:.2} µs")),
            of_echo.unwrap_or_else(|| "-".to_owned()),
            self.latencies,
        );
        let Outcome {
            refused,
            unanswered,
            ..
        } = self.outcome;
        if self.refused + self.broken + refused + unanswered > 0 {
            println!(
                "  refused {} calls and {refused} resources, {unanswered} not answered, {} broken: {}",
                self.refused,
                self.broken,
                self.first_failure.as_deref().unwrap_or("none failed")
            );
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "server": self.name,
            "requests_per_second": self.per_second(),
            "cpu_us": self.cpu_each().map(|each| each.as_secs_f64() * 1e6),
            "latency": self.latencies.json(),
            "granted": self.outcome.granted,
            "refused_calls": self.refused,
            "refused_resources": self.outcome.refused,
            "broken": self.broken,
        })
    }
}
