//! Filling of a server with leases through the wire, as fast as it accepts them: few clients, each of which asks for a
//! thousand resources at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::population::{Outcome, Population};
use crate::wire::{Failure, Wire};

/// Resources per request, which then has some tens of kilobytes.
const EACH: usize = 1_000;

/// Number of connections that fill.
const CONNECTIONS: usize = 4;

/// Number of tries of a refused client.
const TRIES: usize = 100;

/// Returns a population with a number of leases on a number of resources.
pub(crate) fn holders(leases: usize, resources: usize) -> Arc<Population> {
    let each = EACH.min(resources);
    let clients = leases.div_ceil(each);
    Arc::new(Population::new("holder", clients, resources, each))
}

/// Times of the filling.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filled {
    /// Time of the first request.
    pub(crate) began: Instant,
    /// Time of the last answer.
    pub(crate) ended: Instant,
}

/// Asks until every client has its wants.
///
/// # Errors
///
/// The problem, if the server refuses them.
pub(crate) async fn fill(
    address: SocketAddr,
    holders: &Arc<Population>,
) -> Result<Filled, Failure> {
    let began = Instant::now();
    let mut filling = JoinSet::new();
    for number in 0..CONNECTIONS.min(holders.clients()) {
        let holders = Arc::clone(holders);
        filling.spawn(async move {
            let wire = Wire::open(address, None).await?;
            let mut got = Outcome::default();
            for client in (number..holders.clients()).step_by(CONNECTIONS) {
                got.add(until_granted(&wire, &holders, client).await?);
            }
            Ok::<_, Failure>(got)
        });
    }
    let mut all = Outcome::default();
    while let Some(got) = filling.join_next().await {
        all.add(got.unwrap()?);
    }
    assert_eq!(
        all.granted,
        holders.leases() as u64,
        "every client has a lease: {all:?}"
    );
    Ok(Filled {
        began,
        ended: Instant::now(),
    })
}

async fn until_granted(
    wire: &Wire,
    holders: &Population,
    client: usize,
) -> Result<Outcome, Failure> {
    for _ in 0..TRIES {
        match holders.ask(wire, client).await {
            Ok(outcome) if outcome.is_complete() => return Ok(outcome),
            // Not every server was started for this.
            Ok(_) => sleep(Duration::from_millis(200)).await,
            Err(Failure::Refused {
                comes_back_in: Some(span),
                ..
            }) => sleep(span).await,
            Err(failure) => return Err(failure),
        }
    }
    Err(Failure::Broken(format!(
        "client {client} is not granted its wants"
    )))
}

/// Releases everything.
///
/// # Errors
///
/// The problem.
pub(crate) async fn empty(address: SocketAddr, holders: &Population) -> Result<(), Failure> {
    let wire = Wire::open(address, None).await?;
    for client in 0..holders.clients() {
        holders.release(&wire, client).await?;
    }
    Ok(())
}
