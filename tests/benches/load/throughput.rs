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
    /// How long calls took that were granted all that they asked for.
    pub(crate) latencies: Quantiles,
    /// How long the others took.
    failed: Quantiles,
    /// What they were answered.
    pub(crate) outcome: Outcome,
    /// Calls that were sent and count.
    pub(crate) calls: u64,
    /// Calls that were refused.
    pub(crate) refused: u64,
    /// Those of them that were refused without a time to come back.
    refused_for_ever: u64,
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

    /// Of those that were granted all that they asked for.
    fn per_second(&self) -> f64 {
        self.latencies.count() as f64 / self.lasted.as_secs_f64()
    }

    /// What a call costs the server, whatever comes of it.
    fn cpu_each(&self) -> Option<Duration> {
        Some(cpu_each(self.cpu?, self.calls))
    }

    /// Whether any call was granted what it asked for.
    pub(crate) fn has_any(&self) -> bool {
        self.latencies.count() > 0
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

/// What a call costs: of many, and of none.
pub(crate) fn check() {
    let second = Duration::from_secs(1);
    assert_eq!(cpu_each(second, 4), Duration::from_millis(250));
    assert_eq!(cpu_each(second, 200_000), Duration::from_micros(5));
    assert_eq!(cpu_each(Duration::ZERO, 0), Duration::ZERO);
}
