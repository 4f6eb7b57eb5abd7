//! Pushes that clients have not taken yet.
//!
//! A stream of clients has one slot for each of their resources. A newer lease replaces an older one, so a slow reader
//! costs its slots, and no queue.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use doorward_engine::id::{HolderId, ResourceId};
use doorward_engine::messages::{ClientLease, GetCapacityReply};
use doorward_engine::node::mastership::Mastership;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use crate::replica_handle::ReplicaHandle;

/// Pushes of a stream.
#[derive(Debug, Default)]
pub(super) struct Slots {
    pending: Mutex<BTreeMap<HolderId, BTreeMap<ResourceId, ClientLease>>>,
    has_some: Notify,
}

impl Slots {
    /// Puts a push into its slots.
    pub(super) fn put(&self, client: HolderId, push: GetCapacityReply) {
        let mut pending = self.pending.lock();
        let slots = pending.entry(client).or_default();
        let leases = push.leases.into_iter();
        slots.extend(leases.map(|lease| (lease.resource.clone(), lease)));
        drop(pending);
        self.has_some.notify_one();
    }
}

/// A stream of clients. Dropping it closes it.
#[derive(Debug)]
pub struct PushStream {
    node: Arc<ReplicaHandle>,
    slots: Arc<Slots>,
    clients: BTreeSet<HolderId>,
    mastership: watch::Receiver<(u64, Mastership)>,
}

impl PushStream {
    /// Opens a stream without clients.
    pub fn open(node: Arc<ReplicaHandle>) -> Self {
        Self {
            mastership: node.masterships(),
            node,
            slots: Arc::default(),
            clients: BTreeSet::new(),
        }
    }

    /// Returns the number of clients.
    pub fn clients(&self) -> usize {
        self.clients.len()
    }

    /// Pushes to a client on this stream from now on, and on no other.
    pub fn claim(&mut self, client: HolderId) {
        if self.clients.contains(&client) {
            return;
        }
        self.node.change_shared(|shared, _| {
            let slots = Arc::clone(&self.slots);
            shared.transports.clients.insert(client.clone(), slots);
            shared.replica.handle_client_stream(&client, true);
        });
        self.clients.insert(client);
    }

    /// Waits for the next push. Cancel safe.
    ///
    /// # Errors
    ///
    /// What the server says about the master, if another mastership has begun.
    pub async fn next(&mut self) -> Result<(HolderId, GetCapacityReply), Mastership> {
        loop {
            let first = self.slots.pending.lock().pop_first();
            if let Some((client, slots)) = first {
                let push = GetCapacityReply {
                    leases: slots.into_values().collect(),
                    refused: Vec::new(),
                };
                return Ok((client, push));
            }
            tokio::select! {
                () = self.slots.has_some.notified() => {}
                _ended = self.mastership.changed() => return Err(self.mastership.borrow().1.clone()),
            }
        }
    }
}

impl Drop for PushStream {
    fn drop(&mut self) {
        self.node.change_shared(|shared, _| {
            let streams = &mut shared.transports.clients;
            for client in &self.clients {
                // A newer stream of the client goes on.
                let is_ours = |it: &Arc<Slots>| Arc::ptr_eq(it, &self.slots);
                if streams.get(client).is_some_and(is_ours) {
                    streams.remove(client);
                    shared.replica.handle_client_stream(client, false);
                }
            }
        });
    }
}
