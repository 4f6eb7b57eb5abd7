//! Requests between servers: a child asks its parent on behalf of its holders.

use std::sync::Arc;
use std::time::Duration;

use crate::amount::Amount;
use crate::demand::ServerDemand;
use crate::id::{Caller, HolderName, Incarnation, MastershipId, ResourceId};
use crate::request::{Has, Refusal};
use crate::supply::ParentTerms;
use crate::template::Algorithm;

/// A child server asks for capacity of one or more resources.
#[derive(Clone, Debug, PartialEq)]
pub struct GetServerCapacity {
    /// The name of its node.
    pub server: HolderName,
    /// The epoch of its mastership. Absent: the node has no election, or it is a Doorman server. A request of an older
    /// epoch is out of order; an absent one is older than any.
    pub epoch: Option<u64>,
    /// The process that asks. Absent: not sent.
    pub incarnation: Option<Incarnation>,
    /// Where it comes from, as in [`crate::request::GetCapacity`].
    pub caller: Option<Caller>,
    /// The mastership of its node that grants its leases. Absent: not sent.
    pub mastership: Option<MastershipId>,
    /// As in [`crate::request::GetCapacity`]. Of a newer epoch, any is newer.
    pub sequence: Option<u64>,
    /// Levels of servers from it down; a leaf is 1.
    pub height: u32,
    /// What it asks, a resource at most once.
    pub asks: Vec<ServerAsk>,
}

/// What a child server asks of one resource. Replaces what it asked before.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerAsk {
    /// Of which resource.
    pub resource: ResourceId,
    /// What its holders ask for.
    pub demand: Arc<ServerDemand>,
    /// The lease it has itself. Absent: none.
    pub has: Option<Has>,
    /// The most its holders may be using. Absent: it is a Doorman server.
    pub outstanding: Option<Has>,
    /// In learning mode: what holders reported from earlier masterships of its node.
    pub reported: Vec<ReportedLeases>,
    /// The part of what is outstanding that it keeps for holders that have not reported yet.
    pub unreported: Amount,
    /// It does not know yet what its predecessor granted to others.
    pub learning: bool,
}

/// What holders reported from one mastership.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReportedLeases {
    /// The mastership. Absent: the holders did not report it.
    pub granted_by: Option<MastershipId>,
    /// How much, all together.
    pub capacity: Amount,
}

/// How a child server's request came, which decides how fast the next may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// By a call: not faster than the refresh floor.
    Poll,
    /// On a stream, where the child gathers what changes in rounds.
    Stream,
}

/// The answer to a child server for one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerLease {
    /// Of which resource.
    pub resource: ResourceId,
    /// How much it may grant.
    pub capacity: Amount,
    /// How long, from now.
    pub expires_in: Duration,
    /// When it asks again, from now. Shorter than `expires_in`.
    pub refresh_in: Duration,
    /// How it divides what it gets. Absent: as before.
    pub algorithm: Option<Algorithm>,
    /// What the parent sends about the tree as a whole.
    pub terms: ParentTerms,
    /// The mastership of the parent that grants it: the child returns it with what it has.
    pub granted_by: Option<MastershipId>,
    /// The newest request of the child that the answer takes into account.
    pub sequence: Option<u64>,
    /// Whether the present demand of the child was decided about. Absent: not sent.
    pub decided: Option<bool>,
}

/// The answer of a master to [`GetServerCapacity`], or what it pushes to a child.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GetServerCapacityReply {
    /// In the order asked.
    pub leases: Vec<ServerLease>,
    /// In the order asked.
    pub refused: Vec<Refusal>,
    /// The names of the nodes from the answering server up to the root.
    pub ancestors: Vec<String>,
}
