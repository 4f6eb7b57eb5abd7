//! Requests of clients and child servers, and their answers, parsed and free of any wire format. `report` has a node's
//! reports of itself.

mod report;

pub use report::*;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

pub use doorward_time::budget::{AMOUNT_MAX, BudgetState, BudgetWord};
use doorward_time::named;
use smol_str::SmolStr;
use thiserror::Error;

use crate::admission::Full;
use crate::amount::Amount;
use crate::claims::{ServerDemand, Subclients};
use crate::division::ParentTerms;
use crate::id::{Caller, HolderName, Incarnation, MastershipId, ResourceId};
use crate::templates::{Algorithm, SafeCapacity};

/// Request of a client for capacity of one or more resources.
#[derive(Clone, Debug, PartialEq)]
pub struct GetCapacity {
    /// Client that asks.
    pub client: HolderName,
    /// Process that asks. Two processes of one name are two holders. Absent: a client of an older version. All requests
    /// without it count as one process.
    pub incarnation: Option<Incarnation>,
    /// Source of the request. Absent: no caller's bounds apply.
    pub caller: Option<Caller>,
    /// Number that grows with every request of one incarnation. A request that is not above the newest seen changes
    /// nothing. Absent: every request counts, if the holder never sent a number.
    pub sequence: Option<u64>,
    /// The asks, at most one for each resource.
    pub asks: Vec<Ask>,
}

impl GetCapacity {
    /// Returns the same request after it has waited for that time, only for the resources that are not ready in
    /// `reply`. Takes these out of `reply`. The client's lease lasts that much less, and may have ended.
    pub fn again(&self, reply: &mut GetCapacityReply, waited: Duration) -> Self {
        let waiting: BTreeSet<ResourceId> = reply
            .refused
            .extract_if(.., |refused| refused.reason == RefusalReason::NotReady)
            .map(|refused| refused.resource)
            .collect();
        let mut again = self.clone();
        again.asks.retain(|ask| waiting.contains(&ask.resource));
        for ask in &mut again.asks {
            let lasted = ask.has.and_then(|has| has.expires_in);
            // Work that continues after its lease ended lasts for an unknown time.
            if let (Some(has), Some(lasted)) = (&mut ask.has, lasted.filter(|it| !it.is_zero())) {
                let lasts = lasted.saturating_sub(waited);
                has.expires_in = Some(lasts);
                if lasts.is_zero() {
                    ask.has = None;
                }
            }
        }
        again
    }
}

/// Ask of a client for one resource. It replaces the client's earlier ask.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Resource.
    pub resource: ResourceId,
    /// Higher is more important; only PRIORITY_BANDS looks at it.
    pub priority: i64,
    /// Number of clients that it counts as: its fair share is that of so many. 1 for each client on the network.
    pub weight: Subclients,
    /// Amount that the client could use.
    pub wants: Amount,
    /// Amount that the client may be using now. Absent: nothing.
    pub has: Option<Has>,
    /// Its word about its account, if the resource is a budget. Then `wants` is what it has taken and needs.
    pub budget: Option<BudgetWord>,
}

/// Amount that a holder reports as possibly in use, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Has {
    /// The amount. For a client, the larger of its lease and the amount still in flight.
    pub capacity: Amount,
    /// Remaining time. Absent: not reported; up to a whole lease length.
    pub expires_in: Option<Duration>,
    /// Mastership of this node that granted it last. Absent: not reported.
    pub granted_by: Option<MastershipId>,
}

impl Has {
    /// Returns that amount, for an unknown time.
    pub const fn untimed(capacity: Amount) -> Self {
        Self {
            capacity,
            expires_in: None,
            granted_by: None,
        }
    }
}

/// Request of a client to release its leases on some resources.
#[derive(Clone, Debug, PartialEq)]
pub struct ReleaseCapacity {
    /// Client that releases.
    pub client: HolderName,
    /// As in [`GetCapacity`]. If this process holds nothing, the release concerns the newest process of the name. The
    /// server frees its lease only after that process should have asked again.
    pub incarnation: Option<Incarnation>,
    /// As in [`GetCapacity`]. This caller may release the lease of a holder without an incarnation. A release without a
    /// caller may release any lease.
    pub caller: Option<Caller>,
    /// As in [`GetCapacity`]: an old release changes nothing.
    pub sequence: Option<u64>,
    /// The resources. The answer says for which ones the client held no lease.
    pub resources: Vec<ResourceId>,
    /// The last words about budgets among them.
    pub words: BTreeMap<ResourceId, BudgetWord>,
}

/// Answer to a client for one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientLease {
    /// Resource.
    pub resource: ResourceId,
    /// Amount that the client may use.
    pub capacity: Amount,
    /// Lease length, from now.
    pub expires_in: Duration,
    /// Time until the client should ask again, from now. Shorter than `expires_in`.
    pub refresh_in: Duration,
    /// Amount that the client may use in safe mode, after the lease ended without a refresh.
    pub safe_capacity: Option<SafeCapacity>,
    /// Mastership that grants the lease. The client returns it with its next request.
    pub granted_by: Option<MastershipId>,
    /// Reason why the lease is no larger.
    pub limited_by: LimitedBy,
    /// Longest time until learning mode ends, here or above. Absent: no server learns.
    pub learning_for: Option<Duration>,
    /// Whether the server decided about the wants of this request, now or before. If not, the request came too early,
    /// or out of order.
    pub decided: bool,
    /// Newest request of the client that the answer takes into account. Absent: it does not number its requests.
    pub sequence: Option<u64>,
    /// State of the budget, if it is one.
    pub budget: Option<BudgetState>,
}

named! {
    /// Reason why a lease is no larger, as far as its holder needs it.
    LimitedBy {
        /// The lease is all that the holder wants.
        Wants = "wants",
        /// The lease is the holder's share, since the capacity is not enough for all.
        Share = "share",
        /// Other holders have the rest until they have shrunk; or, after a change of master, until the leases of those that do
        /// not report have ended.
        Others = "others",
        /// Learning mode: the server only confirms reported leases.
        Learning = "learning",
        /// Learning mode of a server above this one.
        ParentLearning = "parent_learning",
        /// The capacity was lowered below the sum of the grants.
        CapacityLowered = "capacity_lowered",
        /// This server asks its own parent for more, or is about to.
        Parent = "parent",
    }
}

impl LimitedBy {
    /// Whether the server does not know yet how much the holder can have.
    pub(crate) const fn is_provisional(self) -> bool {
        matches!(self, Self::Learning | Self::ParentLearning | Self::Parent)
    }
}

/// Resource without a lease, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{resource}: {reason}")]
pub struct Refusal {
    /// Resource.
    pub resource: ResourceId,
    /// Reason.
    pub reason: RefusalReason,
    /// Time until the holder should ask again. Absent: the holder chooses.
    pub retry_in: Option<Duration>,
}

impl Refusal {
    /// Returns a refusal with the retry delay of its reason, if the reason has one.
    pub const fn new(resource: ResourceId, reason: RefusalReason) -> Self {
        Self {
            resource,
            reason,
            retry_in: reason.retry_in(),
        }
    }
}

/// Reason why a resource got no lease, and advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RefusalReason {
    /// No template matches the resource.
    #[error("no template matches it; ask an operator to add one")]
    UnknownResource,
    /// This server has no lease itself yet.
    #[error(
        "this server waits for its parent's answer, or for its marks to be stored; keep what you have and ask again soon"
    )]
    NotReady,
    /// To a child server: another live process of its node has the lease. The child asks again after this time.
    #[error(
        "another live process asks under the same name, and has the lease; give each process a name of its \
         own, or stop one of them"
    )]
    AnotherProcess(Duration),
    /// To a client: its request has no number, but the client of this name numbers its requests.
    #[error(
        "another program asks under the same name, and numbers its requests; give each program a name of its own"
    )]
    Unnumbered,
    /// A budget was asked for without a word about the account, or without a number.
    #[error("it is a budget; ask with a library that knows budgets, and open it as one")]
    IsBudget,
    /// A word about a budget for a resource that is none.
    #[error(
        "it is no budget; open it as a limit by rate or in flight, or give its template the kind BUDGET"
    )]
    IsNoBudget,
    /// All accounts that a budget can have are those of live holders.
    #[error(
        "the budget has as many live holders as one server keeps; put a level of servers between them and this one"
    )]
    TooManyAccounts,
    /// The parent refuses the resource for a reason of its own.
    #[error("this server's parent refuses it; see the server's log and status page")]
    RefusedByParent,
    /// A limit is reached.
    #[error("{0}")]
    Full(Full),
}

impl From<Full> for RefusalReason {
    fn from(full: Full) -> Self {
        Self::Full(full)
    }
}

impl RefusalReason {
    /// Returns the retry delay, if the reason has one.
    pub const fn retry_in(self) -> Option<Duration> {
        match self {
            Self::AnotherProcess(retry_in) => Some(retry_in),
            Self::Full(full) => Some(full.retry_in),
            _ => None,
        }
    }
}

/// Result of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// The capacity is free.
    Freed,
    /// Another process of the name has the lease, and may live. Its lease is free after this time, unless it asks
    /// earlier.
    UnlessHeard(Duration),
    /// The client held no lease.
    NotThere,
    /// The release was not newer than the newest request seen, or has no number though the holder's requests have one.
    /// The lease did not change.
    OutOfOrder,
}

/// Answer of a master to [`GetCapacity`]: every ask is in one of the two lists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GetCapacityReply {
    /// Granted asks, in the order of the request.
    pub leases: Vec<ClientLease>,
    /// Refused asks, in the order of the request.
    pub refused: Vec<Refusal>,
}

impl GetCapacityReply {
    /// Whether no ask waits for an answer of the parent.
    pub fn is_ready(&self) -> bool {
        let mut refused = self.refused.iter();
        !refused.any(|refused| refused.reason == RefusalReason::NotReady)
    }

    /// Adds the answer to a request that was [asked again](GetCapacity::again).
    pub fn add(&mut self, more: Self) {
        self.leases.extend(more.leases);
        self.refused.extend(more.refused);
    }
}

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
    /// Address of its gRPC port for others, `host:port`. Absent: not sent.
    pub address: Option<SmolStr>,
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
    /// In learning mode: part of the outstanding amount that it keeps for holders that have not reported yet. Otherwise:
    /// the amount that its children keep for theirs beyond their demand.
    pub unreported: Amount,
    /// Whether it does not know yet what its predecessor granted to others.
    pub learning: bool,
    /// Its word about its account, if the resource is a budget. Then the demand is what its holders need, and `has` is its
    /// ceiling.
    pub budget: Option<BudgetWord>,
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
    /// State of the budget, if it is one.
    pub budget: Option<BudgetState>,
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
