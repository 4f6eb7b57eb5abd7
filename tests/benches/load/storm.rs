//! A storm: many clients connect to a new server at the same moment, each on a connection of its own, and continue
//! until they have a lease. An echo shows the cost without a quota server.
//!
//! A client that is refused with a time returns at that time. A client that is refused without one, or whose connection
//! breaks, returns a little later, with growing waits.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tonic::Code;

use crate::generator::runtime;
use crate::latencies::{Latencies, Quantiles};
use crate::population::Population;
use crate::wire::{Failure, Wire};

/// First wait of a client whose connection broke.
const TRIED_AGAIN: Duration = Duration::from_millis(100);

/// Longest wait of a client whose connection broke.
const TRIED_AGAIN_MAX: Duration = Duration::from_secs(2);

/// Time after which a connection, or an answer, counts as missing.
const PATIENCE: Duration = Duration::from_secs(60);

/// Result of a storm.
#[derive(Debug, Default)]
pub(crate) struct Storm {
    /// Name of the measured server.
    name: &'static str,
    /// Time until each client had its lease.
    pub(crate) waited: Quantiles,
    /// Number of connections that were reset, or refused.
    pub(crate) resets: u64,
    /// Number of requests that were refused with a time, as a call or by the node.
    pub(crate) refused: u64,
    /// Number of requests that were refused without one.
    pub(crate) refused_for_ever: u64,
    /// Number of other failures.
    pub(crate) broken: u64,
    /// Text of the first failure.
    pub(crate) first_failure: Option<String>,
    /// Processor time of the server until all had their leases.
    pub(crate) cpu: Option<Duration>,
}

#[derive(Debug, Default)]
struct Tries {
    resets: u64,
    refused: u64,
    refused_for_ever: u64,
    broken: u64,
    first_failure: Option<String>,
}

/// Starts a number of clients, from a number of addresses, that share a number of resources.
pub(crate) fn break_loose(
    name: &'static str,
    address: SocketAddr,
    clients: usize,
    addresses: usize,
    resources: usize,
    read: impl Fn() -> Option<Duration>,
) -> Storm {
    let population = Arc::new(Population::new("reconnecting", clients, resources, 1));
    runtime().block_on(async {
        let before = read();
        let begins = Instant::now() + Duration::from_millis(500);
        let mut coming = JoinSet::new();
        for client in 0..clients {
            let population = Arc::clone(&population);
            let from = source(client % addresses);
            coming.spawn(async move {
                sleep_until(begins).await;
                let (wire, tries) = come_in(address, from, &population, client).await;
                // The connection stays open.
                (wire, begins.elapsed(), tries)
            });
        }
        let mut waited = Latencies::default();
        let mut storm = Storm {
            name,
            ..Storm::default()
        };
        let mut connections = Vec::new();
        while let Some(come) = coming.join_next().await {
            let (wire, took, tries) = come.unwrap();
            connections.push(wire);
            waited.note(took);
            storm.resets += tries.resets;
            storm.refused += tries.refused;
            storm.refused_for_ever += tries.refused_for_ever;
            storm.broken += tries.broken;
            if storm.first_failure.is_none() {
                storm.first_failure = tries.first_failure;
            }
        }
        storm.cpu = read().zip(before).map(|(after, before)| after - before);
        storm.waited = waited.sorted();
        storm
    })
}

/// Returns an address on loopback whose ports no other client uses.
fn source(number: usize) -> IpAddr {
    let [.., third, fourth] = (u32::try_from(number).unwrap() + 1).to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(127, 1, third, fourth))
}

async fn come_in(
    address: SocketAddr,
    from: IpAddr,
    population: &Population,
    client: usize,
) -> (Wire, Tries) {
    let mut tries = Tries::default();
    let mut pause = TRIED_AGAIN;
    let mut open = None;
    loop {
        let tried = try_once(address, from, population, client, &mut open).await;
        let failure = match tried {
            Ok(wire) => return (wire, tries),
            Err(failure) => failure,
        };
        tries
            .first_failure
            .get_or_insert_with(|| failure.to_string());
        let wait = match failure {
            Failure::Refused {
                comes_back_in: Some(span),
                ..
            } => {
                tries.refused += 1;
                span
            }
            other => {
                match other {
                    // It keeps its connection.
                    Failure::Refused { .. } => tries.refused_for_ever += 1,
                    Failure::Reset(_) => {
                        tries.resets += 1;
                        open = None;
                    }
                    Failure::Broken(_) => {
                        tries.broken += 1;
                        open = None;
                    }
                }
                pause = (pause * 2).min(TRIED_AGAIN_MAX);
                // Spread, so that clients do not return at the same moment.
                pause / 2 + pause.mul_f64((client % 97) as f64 / 194.0)
            }
        };
        sleep(wait).await;
    }
}

async fn try_once(
    address: SocketAddr,
    from: IpAddr,
    population: &Population,
    client: usize,
    open: &mut Option<Wire>,
) -> Result<Wire, Failure> {
    let once = async {
        let wire = match open.take() {
            Some(wire) => wire,
            None => Wire::open(address, Some(from)).await?,
        };
        *open = Some(wire.clone());
        let outcome = population.ask(&wire, client).await?;
        if outcome.is_complete() {
            Ok(wire)
        } else if outcome.unanswered > 0 {
            Err(Failure::Broken("the server is not the master".to_owned()))
        } else {
            Err(Failure::Refused {
                code: Code::ResourceExhausted.into(),
                comes_back_in: outcome.comes_back_in,
                message: "refused by the node".to_owned(),
            })
        }
    };
    let late = Failure::Broken("no answer".to_owned());
    timeout(PATIENCE, once).await.unwrap_or(Err(late))
}

impl Storm {
    pub(crate) fn print(&self) {
        println!(
            "{}: {} clients; p50 {:.2?}, p99 {:.2?}, the last after {:.2?}",
            self.name,
            self.waited.count(),
            self.waited.at(0.5),
            self.waited.at(0.99),
            self.waited.max()
        );
        println!(
            "  resets {}, refused {}, refused without a time to come back {}, otherwise broken {}",
            self.resets, self.refused, self.refused_for_ever, self.broken
        );
        if let Some(cpu) = self.cpu {
            let each = cpu / u32::try_from(self.waited.count().max(1)).unwrap();
            println!("  it was busy for {cpu:.2?}, {each:.1?} a client");
        }
        if let Some(failure) = &self.first_failure {
            println!("  first failure: {failure}");
        }
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "name": self.name,
            "waited": self.waited.json(),
            "resets": self.resets,
            "refused": self.refused,
            "refused_without_time": self.refused_for_ever,
            "broken": self.broken,
            "cpu_s": self.cpu.map(|cpu| cpu.as_secs_f64()),
        })
    }
}
