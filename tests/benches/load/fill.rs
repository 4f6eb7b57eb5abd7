//! Filling of a server with leases through the wire, as fast as it accepts them: few clients, each of which asks for a
//! thousand resources at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::population::Population;
use crate::wire::Wire;

/// Resources per request, which then has some tens of kilobytes.
const EACH: usize = 1_000;

/// Number of connections that fill.
const CONNECTIONS: usize = 4;

/// Returns a population with a number of leases on a number of resources.
pub(crate) fn holders(leases: usize, resources: usize) -> Arc<Population> {
    let each = EACH.min(resources);
    let clients = leases.div_ceil(each);
    Arc::new(Population::new("holder", clients, resources, each))
}

/// Number of times that a refused client asks again.
const TRIES_MAX: u32 = 40;

/// Asks until every client has its wants.
pub(crate) async fn fill(address: SocketAddr, holders: &Population) {
    let fill = async |number| {
        let wire = Wire::open(address, None).await.unwrap();
        for client in (number..holders.clients()).step_by(CONNECTIONS) {
            // A new resource may be refused while a busy disk keeps its mark waiting.
            let mut asked = holders.ask(&wire, client).await;
            for _ in 0..TRIES_MAX {
                if asked.is_ok() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
                asked = holders.ask(&wire, client).await;
            }
            asked.unwrap();
        }
    };
    join_all((0..CONNECTIONS).map(fill)).await;
}

/// Releases everything.
pub(crate) async fn empty(address: SocketAddr, holders: &Population) {
    let wire = Wire::open(address, None).await.unwrap();
    for client in 0..holders.clients() {
        holders.release(&wire, client).await.unwrap();
    }
}
