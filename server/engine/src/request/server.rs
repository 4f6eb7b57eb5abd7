//! What servers ask each other: a child on behalf of its holders, of its parent.

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
    /// The epoch of the mastership by which it speaks for its node. Absent: the node has no
    /// election, or it is of the old kind. What a master of an older epoch asks is out of order, and
    /// none is older than any.
    pub epoch: Option<u64>,
    /// Which process asks in that name. Absent: it does not say.
    pub incarnation: Option<Incarnation>,
    /// Where it comes from, as in [`crate::request::GetCapacity`].
    pub caller: Option<Caller>,
    /// By which mastership of its node it hands out leases. Absent: it does not say.
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
    /// The most its holders may be using. Absent: it is of the old kind and does not say.
    pub outstanding: Option<Has>,
    /// In learning mode: what holders told of that earlier masterships of its node had granted.
    pub reported: Vec<ReportedLeases>,
    /// Of what is outstanding, what it counts for holders that it has not heard of yet.
    pub unreported: Amount,
    /// It does not know yet what its predecessor gave to others.
    pub learning: bool,
}

/// What holders told of that one mastership had granted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReportedLeases {
    /// Which. Absent: the holders did not say.
    pub granted_by: Option<MastershipId>,
    /// How much, all together.
    pub capacity: Amount,
}

/// How a child server's request came, which decides how fast the next may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    /// By a call of its own: not faster than the refresh floor.
    Poll,
    /// On a stream, where the child gathers what changes in rounds.
    Stream,
}

/// What a child server is told of one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerLease {
    /// Of which resource.
    pub resource: ResourceId,
    /// How much it may hand out.
    pub capacity: Amount,
    /// How long, from now.
    pub expires_in: Duration,
    /// When it asks again, from now. Shorter than `expires_in`.
    pub refresh_in: Duration,
    /// How it is to divide what it gets. Absent: as it did.
    pub algorithm: Option<Algorithm>,
    /// What it is told of the tree as a whole.
    pub terms: ParentTerms,
    /// Which mastership of the parent grants it: the child gives that back with what it has.
    pub granted_by: Option<MastershipId>,
    /// The newest request of the child that the answer takes into account.
    pub sequence: Option<u64>,
    /// Whether what the child asks for now was decided about. Absent: the parent does not say.
    pub decided: Option<bool>,
}

/// The answer of a master to [`GetServerCapacity`], or what it tells a child unasked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GetServerCapacityReply {
    /// In the order asked.
    pub leases: Vec<ServerLease>,
    /// In the order asked.
    pub refused: Vec<Refusal>,
    /// The names of the nodes from the answering server up to the root.
    pub ancestors: Vec<String>,
}
