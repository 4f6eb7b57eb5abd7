//! The door for clients of Redis, without rules, for a benchmark from outside:
//! `cargo bench -p doorward-edge --bench redis_door -- 127.0.0.1:6380`.

use std::sync::Arc;

use doorward::rules::Rules;
use doorward_door::Door;
use doorward_door::door_limits::DoorLimits;
use doorward_edge::clock::Wall;
use doorward_edge::edge::Edge;
use doorward_edge::node::{Later, Node};
use doorward_edge::records::Records;
use doorward_edge::resp;
use doorward_engine::messages::{GetCapacity, GetCapacityReply, ReleaseCapacity};
use doorward_engine::node::mastership::Outcome;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// A node that never answers, because no rule is shared.
#[derive(Debug)]
struct NoNode;

impl Node for NoNode {
    fn get_capacity(&self, _: GetCapacity) -> Later<'_, Option<Outcome<GetCapacityReply>>> {
        Box::pin(std::future::pending())
    }

    fn release(&self, _: ReleaseCapacity) -> Later<'_, ()> {
        Box::pin(async {})
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Without an address, as with other benchmarks, it has nothing to do.
    let address = std::env::args().nth(1).filter(|it| !it.starts_with('-'));
    let Some(address) = address else {
        return Ok(());
    };
    let listener = TcpListener::bind(&address).await?;
    let limits = DoorLimits::default();
    limits.connections.set_max(10_000);
    limits.patience.set_max(10_000);
    let door = Door::new(limits, Default::default(), Arc::new(Semaphore::new(1)));
    let (rules, records) = (Rules::default(), Records::default());
    let edge = Edge::within(256 << 20, Arc::new(NoNode), rules, Wall::Machine, records);
    resp::serve(listener, edge, door, CancellationToken::new()).await;
    Ok(())
}
