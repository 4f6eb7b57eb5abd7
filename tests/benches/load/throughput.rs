//! The same load on several servers, one after the other: the server, an echo of the same messages, and, on request, an
//! echo with cargo's default build.

use std::time::Duration;

use serde_json::{Value, json};

use crate::generator::{Load, Measured};
use crate::latencies::Quantiles;
use crate::population::Outcome;
use crate::subject::Subject;

/// Result of a load on one server.
#[derive(Debug)]
pub(crate) struct Figures {
    name: &'static str,
    /// Latencies of calls that were granted in full.
    pub(crate) latencies: Quantiles,
    /// Latencies of the others.
    failed: Quantiles,
    /// Their answers.
    pub(crate) outcome: Outcome,
    /// Number of calls that were sent and count.
    pub(crate) calls: u64,
    /// Number of calls that were refused.
    pub(crate) refused: u64,
    /// Number of those that were refused without a time.
    refused_for_ever: u64,
    /// Number of calls without an answer.
    pub(crate) broken: u64,
    first_failure: Option<String>,
    lasted: Duration,
    /// Processor time of the server.
    cpu: Option<Duration>,
}

impl Figures {
    /// Puts a load on a server.
    pub(crate) fn of(name: &'static str, subject: &Subject, load: Load) -> Self {
        let Measured {
            tally,
            lasted,
            read,
        } = load.run(|| subject.cpu_time());
        Self {
            name,
            latencies: tally.latencies.sorted(),
            failed: tally.failed.sorted(),
            outcome: tally.outcome,
            calls: tally.calls,
            refused: tally.refused,
            refused_for_ever: tally.refused_for_ever,
            broken: tally.broken,
            first_failure: tally.first_failure,
            lasted,
            cpu: read.1.zip(read.0).map(|(after, before)| after - before),
        }
    }

    /// Returns the number of calls per second that were granted in full.
    fn per_second(&self) -> f64 {
        self.latencies.count() as f64 / self.lasted.as_secs_f64()
    }

    /// Returns the server's processor time per call, with any result.
    fn cpu_each(&self) -> Option<Duration> {
        Some(cpu_each(self.cpu?, self.calls))
    }

    /// Returns whether any call was granted in full.
    pub(crate) fn has_any(&self) -> bool {
        self.latencies.count() > 0
    }

    /// Prints the heading of [`Figures::print`].
    pub(crate) fn print_heading() {
        println!(
            "{:16} {:>11} {:>12} {:>8}  {:>9} {:>9} {:>9} {:>9}",
            "", "requests/s", "CPU/request", "of echo", "p50", "p99", "p99.9", "max"
        );
    }

    /// Prints one line, and another one if there were failures.
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
        if self.failed.count() + self.refused + self.broken > 0 {
            self.print_failures();
        }
    }

    fn print_failures(&self) {
        let Outcome {
            refused,
            refused_for_ever,
            unanswered,
            ref why,
            ..
        } = self.outcome;
        println!(
            "  {} calls failed, which are not among the latencies; the slowest took {:.1?}",
            self.failed.count(),
            self.failed.max(),
        );
        println!(
            "  refused {} calls and {refused} resources, of these {} and {refused_for_ever} without a time to come \
             back; {unanswered} resources not answered, {} calls broken: {}",
            self.refused,
            self.refused_for_ever,
            self.broken,
            self.first_failure
                .as_deref()
                .or(why.as_deref())
                .unwrap_or("nothing else is known")
        );
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "server": self.name,
            "requests_per_second": self.per_second(),
            "cpu_us": self.cpu_each().map(|each| each.as_secs_f64() * 1e6),
            "latency": self.latencies.json(),
            "granted": self.outcome.granted,
            "failed": self.failed.json(),
            "refused_calls": self.refused,
            "refused_calls_without_time": self.refused_for_ever,
            "refused_resources": self.outcome.refused,
            "refused_resources_without_time": self.outcome.refused_for_ever,
            "broken": self.broken,
        })
    }
}

fn cpu_each(cpu: Duration, calls: u64) -> Duration {
    cpu.div_f64(calls.max(1) as f64)
}

/// Checks the cost of a call: of many, and of none.
pub(crate) fn check() {
    let second = Duration::from_secs(1);
    assert_eq!(cpu_each(second, 4), Duration::from_millis(250));
    assert_eq!(cpu_each(second, 200_000), Duration::from_micros(5));
    assert_eq!(cpu_each(Duration::ZERO, 0), Duration::ZERO);
}
