//! Requests on some connections, in a closed or an open loop.
//!
//! In a **closed loop**, each asker sends its next request after the last answer: it shows the largest number of
//! requests per second. In an **open loop**, requests are due at a fixed rate, independent of the answers, and their
//! time counts from when they were due. So a server that stops for a second delays a thousand requests, not one, and
//! there is no coordinated omission.

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::latencies::Latencies;
use crate::population::Population;
use crate::wire::{Failure, Wire};

/// Warm-up before the measurement.
const WARM_UP: Duration = Duration::from_secs(1);

/// Order of requests.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Pace {
    /// The next one follows the last answer, with a number of requests in flight on each connection.
    Closed {
        /// Number on each connection.
        in_flight: usize,
    },
    /// A number of requests per second.
    Open {
        /// Number on all connections together.
        per_second: f64,
    },
}

/// A load.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// Address of the server.
    pub(crate) address: SocketAddr,
    /// Clients that ask.
    pub(crate) population: Arc<Population>,
    /// Number of connections.
    pub(crate) connections: usize,
    /// Pace of the requests.
    pub(crate) pace: Pace,
    /// Time that counts, after the warm-up.
    pub(crate) lasts: Duration,
}

/// Result of a load.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// Latencies of calls that were granted in full.
    pub(crate) latencies: Latencies,
    /// Number of calls that failed.
    pub(crate) failed: usize,
    first_failure: Option<Failure>,
    lasted: Duration,
    /// Processor time of the server.
    cpu: Duration,
}

/// Calls of one asker: latencies of those that count, and failures.
type Calls = Vec<Result<Duration, Failure>>;

impl Load {
    /// Puts the load on the server, and reads its processor time at the beginning and the end of the counted time.
    pub(crate) async fn run(self, cpu_time: impl Fn() -> Duration) -> Figures {
        let mut wires = Vec::new();
        for _ in 0..self.connections {
            wires.push(Wire::open(self.address, None).await.unwrap());
        }
        let begins = Instant::now();
        let counts_from = begins + WARM_UP;
        let ends = counts_from + self.lasts;
        let (pace, population) = (self.pace, self.population);
        let calls = tokio::spawn(async move {
            match pace {
                Pace::Closed { in_flight } => {
                    let askers = wires.len() * in_flight;
                    let wires = wires.iter().cycle().take(askers);
                    let asking = wires.enumerate().map(|(asker, wire)| {
                        let clients = (asker..population.clients()).step_by(askers);
                        ask_on(
                            wire.clone(),
                            Arc::clone(&population),
                            clients,
                            counts_from..ends,
                        )
                    });
                    asking.collect::<JoinSet<_>>().join_all().await.concat()
                }
                Pace::Open { per_second } => {
                    let due = due_at(begins, Duration::from_secs_f64(1.0 / per_second), ends);
                    open(due, &wires, &population, counts_from).await
                }
            }
        });
        sleep_until(counts_from).await;
        let (before, began) = (cpu_time(), Instant::now());
        sleep_until(ends).await;
        let (cpu, lasted) = (cpu_time().saturating_sub(before), began.elapsed());
        let mut figures = Figures {
            lasted,
            cpu,
            ..Figures::default()
        };
        let mut latencies = Vec::new();
        for call in calls.await.unwrap() {
            match call {
                Ok(took) => latencies.push(took),
                Err(failure) => {
                    figures.failed += 1;
                    figures.first_failure.get_or_insert(failure);
                }
            }
        }
        figures.latencies = Latencies::new(latencies);
        figures
    }
}

/// Asks for some clients, one after the other.
async fn ask_on(
    wire: Wire,
    population: Arc<Population>,
    clients: impl Iterator<Item = usize> + Clone,
    counts: std::ops::Range<Instant>,
) -> Calls {
    let mut calls = Calls::new();
    let mut began = Instant::now();
    for client in clients.cycle() {
        if began >= counts.end {
            break;
        }
        let answer = population.ask(&wire, client).await;
        let ended = Instant::now();
        if counts.contains(&ended) {
            calls.push(answer.map(|()| ended - began));
        }
        began = ended;
    }
    calls
}

async fn open(
    mut due: mpsc::UnboundedReceiver<Instant>,
    wires: &[Wire],
    population: &Arc<Population>,
    counts_from: Instant,
) -> Calls {
    let (mut calls, mut ended) = (JoinSet::new(), Vec::new());
    let mut next = 0;
    while let Some(at) = due.recv().await {
        let wire = wires[next % wires.len()].clone();
        let (client, population) = (next % population.clients(), Arc::clone(population));
        next += 1;
        calls.spawn(async move {
            let answer = population.ask(&wire, client).await;
            (at >= counts_from).then(|| answer.map(|()| at.elapsed()))
        });
        while let Some(call) = calls.try_join_next() {
            ended.push(call.unwrap());
        }
    }
    ended.extend(calls.join_all().await);
    ended.into_iter().flatten().collect()
}

/// Waits without a runtime.
pub(crate) fn rest_until(moment: Instant) {
    while Instant::now() < moment {
        thread::park_timeout(moment.saturating_duration_since(Instant::now()));
    }
}

/// Sends the due times of requests when they are due, from a thread that does nothing else, because a runtime's timers
/// are up to a millisecond late.
pub(crate) fn due_at(
    begins: Instant,
    pace: Duration,
    ends: Instant,
) -> mpsc::UnboundedReceiver<Instant> {
    let (sender, due) = mpsc::unbounded_channel();
    thread::spawn(move || {
        let mut at = begins;
        while at < ends {
            rest_until(at);
            if sender.send(at).is_err() {
                return;
            }
            at += pace;
        }
    });
    due
}

impl Figures {
    /// Returns the server's processor time per call, with any result.
    fn cpu_each(&self) -> Duration {
        let calls = self.latencies.count() + self.failed;
        self.cpu.div_f64(calls.max(1) as f64)
    }

    /// Prints the heading of [`Figures::print`].
    pub(crate) fn print_heading() {
        println!(
            "{:16} {:>11} {:>12} {:>8}  {:>9} {:>9} {:>9} {:>9}",
            "", "requests/s", "CPU/request", "of echo", "p50", "p99", "p99.9", "max"
        );
    }

    /// Prints one line, and another one if there were failures.
    pub(crate) fn print(&self, name: &str, echo: &Self) {
        println!(
            "{name:16} {:>11.0} {:>12} {:>8.3} {}",
            self.latencies.count() as f64 / self.lasted.as_secs_f64(),
            format!("{:.2?}", self.cpu_each()),
            self.cpu_each().as_secs_f64() / echo.cpu_each().as_secs_f64(),
            self.latencies,
        );
        if let Some(failure) = &self.first_failure {
            println!("  {} calls failed, the first: {failure}", self.failed);
        }
    }
}
