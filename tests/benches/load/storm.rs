//! A storm: many clients connect to a new server at the same moment, each on a connection of its own, and continue
//! until they have a lease. An echo shows the cost without a quota server.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::latencies::Latencies;
use crate::population::Population;
use crate::subject::Subject;
use crate::wire::{Failure, Stream, Wire};

/// Longest first wait of a client that failed. Each further wait is twice as long.
const TRIED_AGAIN: Duration = Duration::from_millis(200);

/// Longest wait of a client that failed.
const TRIED_AGAIN_MAX: Duration = Duration::from_secs(2);

/// Time after which a connection, or an answer, counts as missing.
const PATIENCE: Duration = Duration::from_secs(60);

/// Number of addresses of the clients.
const ADDRESSES: usize = 100;

/// Number of resources that the clients share.
const RESOURCES: usize = 1_000;

/// Sizes of the measurement.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Size {
    /// Number of clients: each needs a file here, and one in the server.
    #[arg(long, default_value_t = 18_000)]
    pub(crate) clients: usize,

    /// Opens a stream for each client, on which it stays, as the library does.
    #[arg(long)]
    pub(crate) streams: bool,

    /// Number of runs.
    #[arg(long, default_value_t = 3)]
    pub(crate) runs: usize,
}

/// Lets all clients connect at once, waits until each has a lease, and prints how long that took. Returns the waits and
/// the failures.
pub(crate) async fn break_loose(
    name: &str,
    subject: &Subject,
    size: Size,
) -> (Latencies, Vec<Failure>) {
    let population = Arc::new(Population::new("client", size.clients, RESOURCES, 1));
    let cpu_before = subject.cpu_time();
    let begins = Instant::now() + Duration::from_millis(500);
    let mut coming = JoinSet::new();
    for client in 0..size.clients {
        let (population, address) = (Arc::clone(&population), subject.address);
        coming.spawn(async move {
            sleep_until(begins).await;
            let (wire, failures) = come_in(address, &population, client, size.streams).await;
            // The connection stays open.
            (wire, begins.elapsed(), failures)
        });
    }
    let come = coming.join_all().await;
    let cpu = subject.cpu_time().saturating_sub(cpu_before);
    let waits = Latencies::new(come.iter().map(|(_, waited, _)| *waited).collect());
    let failures: Vec<Failure> = come
        .into_iter()
        .flat_map(|(.., failures)| failures)
        .collect();
    println!(
        "{name}: {} clients; p50 {:.2?}, p99 {:.2?}, the last after {:.2?}; {:.1?} of processor time a client",
        size.clients,
        waits.at(0.5),
        waits.at(0.99),
        waits.max(),
        cpu.div_f64(size.clients as f64),
    );
    if let Some(failure) = failures.first() {
        println!("  {} tries failed, the first: {failure}", failures.len());
    }
    (waits, failures)
}

/// Returns an address on loopback whose ports no other client uses.
fn source(number: usize) -> IpAddr {
    let [.., third, fourth] = (u32::try_from(number).unwrap() + 1).to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(127, 1, third, fourth))
}

/// Tries until a client has its lease. Returns its connection, and its failures.
async fn come_in(
    address: SocketAddr,
    population: &Population,
    client: usize,
    streams: bool,
) -> ((Wire, Option<Stream>), Vec<Failure>) {
    let mut failures = Vec::new();
    let mut pause = TRIED_AGAIN;
    loop {
        let once = async {
            let wire = Wire::open(address, Some(source(client % ADDRESSES))).await?;
            if streams {
                let stream = population.open(&wire, client).await?;
                return Ok((wire, Some(stream)));
            }
            population.ask(&wire, client).await?;
            Ok((wire, None))
        };
        let late = Failure::Broken("no answer".to_owned());
        match timeout(PATIENCE, once).await.unwrap_or(Err(late)) {
            Ok(wire) => return (wire, failures),
            Err(failure) => failures.push(failure),
        }
        // Spread, so that clients do not return at the same moment.
        sleep(pause / 2 + pause.mul_f64((client % 97) as f64 / 194.0)).await;
        pause = (pause * 2).min(TRIED_AGAIN_MAX);
    }
}
