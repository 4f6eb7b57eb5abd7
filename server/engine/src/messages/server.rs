//! Requests between servers: a child asks its parent on behalf of its holders.

use std::sync::Arc;
use std::time::Duration;

use crate::amount::Amount;
use crate::claims::ServerDemand;
use crate::division::ParentTerms;
use crate::id::{Caller, HolderName, Incarnation, MastershipId, ResourceId};
use crate::messages::{Has, Refusal};
use crate::templates::Algorithm;

/// Request of a child server for capacity of one or more resources.
#[derive(Clone, Debug, PartialEq)]
pub struct GetServerCapacity {
    /// Name of its node.
    pub server: HolderName,
    /// Epoch of its mastership. Absent: the node has no election, or is a Doorman server. A request of an older epoch
    /// is out of order. An absent epoch is older than any.
    pub epoch: Option<u64>,
    /// Process that asks. Absent: not sent.
    pub incarnation: Option<Incarnation>,
    /// Source of the request, as in [`crate::messages::GetCapacity`].
    pub caller: Option<Caller>,
    /// Mastership of its node that grants its leases. Absent: not sent.
    pub mastership: Option<MastershipId>,
    /// As in [`crate::messages::GetCapacity`]. A request of a newer epoch is newer, whatever its number.
    pub sequence: Option<u64>,
    /// Levels of servers from it downwards. A leaf is 1.
    pub height: u32,
    /// The asks, at most one for each resource.
    pub asks: Vec<ServerAsk>,
}

/// Ask of a child server for one resource. It replaces the child's earlier ask.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerAsk {
    /// Resource.
    pub resource: ResourceId,
    /// Demand of its holders.
    pub demand: Arc<ServerDemand>,
    /// Its own lease. Absent: none.
    pub has: Option<Has>,
    /// Most that its holders may be using. Absent: a Doorman server.
    pub outstanding: Option<Has>,
    /// Learning mode: leases that holders reported from earlier masterships of its node.
    pub reported: Vec<ReportedLeases>,
    /// Part of the outstanding amount that it keeps for holders that have not reported yet.
    pub unreported: Amount,
    /// Whether it does not know yet what its predecessor granted to others.
    pub learning: bool,
}

/// Leases that holders reported from one mastership.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReportedLeases {
    /// Mastership. Absent: the holders did not report it.
    pub granted_by: Option<MastershipId>,
    /// Sum of the leases.
    pub capacity: Amount,
}

/// Way of a child server's request, which decides the floor for the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// A call: no earlier than the refresh floor.
    Poll,
    /// A stream, on which the child gathers changes in rounds.
    Stream,
}

/// Answer to a child server for one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerLease {
    /// Resource.
    pub resource: ResourceId,
    /// Amount that it may grant.
    pub capacity: Amount,
    /// Lease length, from now.
    pub expires_in: Duration,
    /// Time until it should ask again, from now. Shorter than `expires_in`.
    pub refresh_in: Duration,
    /// Algorithm for dividing the lease. Absent: as before.
    pub algorithm: Option<Algorithm>,
    /// Terms of the parent about the tree as a whole.
    pub terms: ParentTerms,
    /// Mastership of the parent that grants the lease. The child returns it with its next request.
    pub granted_by: Option<MastershipId>,
    /// Newest request of the child that the answer takes into account.
    pub sequence: Option<u64>,
    /// Whether the parent decided about the child's present demand. Absent: not sent.
    pub decided: Option<bool>,
}

/// Answer of a master to [`GetServerCapacity`], or its push to a child.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GetServerCapacityReply {
    /// Granted asks, in the order of the request.
    pub leases: Vec<ServerLease>,
    /// Refused asks, in the order of the request.
    pub refused: Vec<Refusal>,
    /// Names of the nodes from the answering server up to the root.
    pub ancestors: Vec<String>,
}
