//! Requests of holders and the answers, as the engine knows them: parsed, and free of any wire format.

pub mod server;

use std::collections::BTreeSet;
use std::time::Duration;

use thiserror::Error;

use crate::amount::Amount;
use crate::id::{Caller, HolderName, Incarnation, MastershipId, ResourceId};
use crate::limit::Full;
use crate::template::SafeCapacity;

/// A client asks for capacity of one or more resources.
#[derive(Clone, Debug, PartialEq)]
pub struct GetCapacity {
    /// Who asks.
    pub client: HolderName,
    /// The process that asks. Absent: a client of an older version; all requests without it count as one process.
    pub incarnation: Option<Incarnation>,
    /// Where it comes from. Absent: what it brings is bounded by no caller.
    pub caller: Option<Caller>,
    /// Grows with every request of one incarnation; a request that is not above the newest seen
    /// changes nothing. Absent: every request counts, of a holder that never numbered any.
    pub sequence: Option<u64>,
    /// What it asks, a resource at most once.
    pub asks: Vec<Ask>,
}

impl GetCapacity {
    /// The same request after it has waited for that time: the client's lease lasts that much less, and may have ended.
    pub(crate) fn after_waiting(&self, waited: Duration) -> Self {
        let mut request = self.clone();
        for ask in &mut request.asks {
            let lasted = ask.has.and_then(|has| has.expires_in);
            // Work that continues after its lease lasts for an unknown time.
            if let (Some(has), Some(lasted)) = (&mut ask.has, lasted.filter(|it| !it.is_zero())) {
                let lasts = lasted.saturating_sub(waited);
                has.expires_in = Some(lasts);
                if lasts.is_zero() {
                    ask.has = None;
                }
            }
        }
        request
    }

    /// The same request, which has waited for so long, about what is not ready in `reply` only: that is
    /// taken out of it.
    pub fn again(&self, reply: &mut GetCapacityReply, waited: Duration) -> Self {
        let waiting: BTreeSet<ResourceId> = reply
            .refused
            .extract_if(.., |refused| refused.reason == RefusalReason::NotReady)
            .map(|refused| refused.resource)
            .collect();
        let mut again = self.after_waiting(waited);
        again.asks.retain(|ask| waiting.contains(&ask.resource));
        again
    }
}

/// What a client asks of one resource. Replaces what it asked before.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// Of which resource.
    pub resource: ResourceId,
    /// Higher is more important; only PRIORITY_BANDS looks at it.
    pub priority: i64,
    /// What it could use.
    pub wants: Amount,
    /// What it may be using at this moment. Absent: nothing.
    pub has: Option<Has>,
}

/// What a holder reports that it may be using, and for how long.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Has {
    /// How much: of a client, the larger of its lease and what is still in flight.
    pub capacity: Amount,
    /// How long it still lasts. Absent: not reported; up to a whole lease length.
    pub expires_in: Option<Duration>,
    /// The mastership of this node that granted it last. Absent: not reported.
    pub granted_by: Option<MastershipId>,
}

impl Has {
    /// That amount, for an unknown time.
    pub const fn untimed(capacity: Amount) -> Self {
        Self {
            capacity,
            expires_in: None,
            granted_by: None,
        }
    }
}

/// A client gives back what it holds of the named resources.
#[derive(Clone, Debug, PartialEq)]
pub struct ReleaseCapacity {
    /// Who releases.
    pub client: HolderName,
    /// As in [`GetCapacity`]. If it is not the process that holds the name, the lease is freed only once that process
    /// should have asked again.
    pub incarnation: Option<Incarnation>,
    /// As in [`GetCapacity`]. Its caller may release the lease of a holder without an incarnation; a release without a
    /// caller may release any.
    pub caller: Option<Caller>,
    /// As in [`GetCapacity`]: an old release changes nothing.
    pub sequence: Option<u64>,
    /// The resources. For one that it does not hold, the answer says so.
    pub resources: Vec<ResourceId>,
}

/// The answer to a client for one resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientLease {
    /// Of which resource.
    pub resource: ResourceId,
    /// How much it may use.
    pub capacity: Amount,
    /// How long, from now.
    pub expires_in: Duration,
    /// When it asks again, from now. Shorter than `expires_in`.
    pub refresh_in: Duration,
    /// What it may use in safe mode, should the lease end unrenewed.
    pub safe_capacity: Option<SafeCapacity>,
    /// The mastership that grants it: the client returns it with what it has.
    pub granted_by: Option<MastershipId>,
    /// Why it is no larger.
    pub limited_by: LimitedBy,
    /// How long learning mode still lasts at most, here or above. Absent: no server learns.
    pub learning_for: Option<Duration>,
    /// Whether the wants of this request were decided about, now or before. If not, it came too early, or too
    /// late.
    pub decided: bool,
}

/// Why a lease is no larger than it is, as far as it matters to its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitedBy {
    /// It is all that is wanted.
    Wants,
    /// It is the holder's share; there is not enough for all.
    Share,
    /// The rest of the share is held by others until they have shrunk.
    Others,
    /// Learning mode: only what holders report is confirmed.
    Learning,
    /// The same, of a server above this one.
    ParentLearning,
    /// The capacity was lowered below what is granted.
    CapacityLowered,
    /// This server asks its own parent for more, or is about to.
    Parent,
}

impl LimitedBy {
    /// Whether the server does not know yet how much there is for the holder.
    pub(crate) const fn is_provisional(self) -> bool {
        matches!(self, Self::Learning | Self::ParentLearning | Self::Parent)
    }
}

/// Why a resource got no lease.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{resource}: {reason}")]
pub struct Refusal {
    /// Which resource.
    pub resource: ResourceId,
    /// Why.
    pub reason: RefusalReason,
    /// When to ask again. Absent: whenever the holder thinks fit.
    pub retry_in: Option<Duration>,
}

impl Refusal {
    /// With the time that the reason has, if it has one.
    pub const fn new(resource: ResourceId, reason: RefusalReason) -> Self {
        Self {
            resource,
            reason,
            retry_in: reason.retry_in(),
        }
    }
}

/// Why a resource got no lease, and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RefusalReason {
    /// No template matches the resource.
    #[error("no template matches it; ask an operator to add one")]
    UnknownResource,
    /// The request named the resource before.
    #[error("it stands in the request more than once; only the first counts")]
    Duplicate,
    /// This server has no lease itself yet.
    #[error("this server waits for its parent's answer; keep what you have and ask again soon")]
    NotReady,
    /// Another live process has the lease under the same name; ask again after so long.
    #[error(
        "another live process asks under the same name, and has the lease; give each process a name of its \
         own, or stop one of them"
    )]
    AnotherProcess(Duration),
    /// The parent refuses it for a reason of its own.
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
    /// When to ask again, if the reason tells.
    pub const fn retry_in(self) -> Option<Duration> {
        match self {
            Self::AnotherProcess(retry_in) => Some(retry_in),
            Self::Full(full) => Some(full.retry_in),
            Self::UnknownResource | Self::Duplicate | Self::NotReady | Self::RefusedByParent => {
                None
            }
        }
    }
}

/// What became of a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Released {
    /// What it had is free.
    Freed,
    /// The release does not come from the process that holds the name, which may live: its lease is free after that time,
    /// unless it asks before.
    UnlessHeard(Duration),
    /// It held nothing.
    NotThere,
    /// The release was not newer than the newest request seen, has no number though the holder's
    /// requests have, or comes from a process that another one has replaced. Nothing was
    /// changed of what the process has that holds the name.
    OutOfOrder,
}

/// The answer of a master to [`GetCapacity`]: every ask is in one of the two.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GetCapacityReply {
    /// In the order asked.
    pub leases: Vec<ClientLease>,
    /// In the order asked.
    pub refused: Vec<Refusal>,
}

impl GetCapacityReply {
    /// Whether everything is decided, or refused for another reason than that the parent has to answer
    /// first.
    pub fn is_ready(&self) -> bool {
        let mut refused = self.refused.iter();
        !refused.any(|refused| refused.reason == RefusalReason::NotReady)
    }

    /// What was [asked again](GetCapacity::again) is a part of this.
    pub fn add(&mut self, more: Self) {
        self.leases.extend(more.leases);
        self.refused.extend(more.refused);
    }
}
