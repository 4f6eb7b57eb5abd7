//! A node that grants the same lease to each holder.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use doorward_edge::node::{Later, Node};
use doorward_engine::amount::Amount;
use doorward_engine::messages::{
    ClientLease, GetCapacity, GetCapacityReply, LimitedBy, ReleaseCapacity,
};
use doorward_engine::node::mastership::Outcome;

/// A node.
#[derive(Debug)]
pub(crate) struct GrantingNode {
    capacity: f64,
    /// Holders that have asked, with the resource.
    pub(crate) asked: Mutex<BTreeSet<(String, String)>>,
}

impl GrantingNode {
    /// Grants `capacity` to each holder of each resource.
    pub(crate) fn new(capacity: f64) -> Self {
        Self {
            capacity,
            asked: Mutex::default(),
        }
    }
}

impl Node for GrantingNode {
    fn get_capacity(&self, request: GetCapacity) -> Later<'_, Option<Outcome<GetCapacityReply>>> {
        let mut asked = self.asked.lock().unwrap();
        let leases = request.asks.into_iter().map(|ask| {
            asked.insert((request.client.to_string(), ask.resource.to_string()));
            ClientLease {
                budget: None,
                resource: ask.resource,
                capacity: Amount::new(self.capacity).unwrap(),
                expires_in: Duration::from_secs(300),
                refresh_in: Duration::from_secs(60),
                safe_capacity: None,
                granted_by: None,
                limited_by: LimitedBy::Share,
                learning_for: None,
                decided: true,
                sequence: None,
            }
        });
        let reply = GetCapacityReply {
            leases: leases.collect(),
            refused: Vec::new(),
        };
        Box::pin(async { Some(Outcome::Served(reply)) })
    }

    fn release(&self, _: ReleaseCapacity) -> Later<'_, ()> {
        Box::pin(async {})
    }
}
