//! What a server tells of its place in the tree: its parent, its own leases, its child servers.
//!
//! At the root there is no parent and no lease of its own; a leaf has no child servers. A server
//! between is told of from both sides: what its own lease lets it hand out, and what its children
//! were handed.

use doorward_engine::request::RefusalReason;
use doorward_engine::snapshot::{ChildSnapshot, LeaseSnapshot, ResourceSnapshot};
use doorward_engine::time::Time;
use serde::Serialize;

use crate::clock;
use crate::status::{ParentNews, millis};

/// The parent at a moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ParentStatus {
    /// Where its servers are, `host:port`, as configured.
    pub addresses: Vec<String>,
    /// The one that is asked now, `host:port`.
    pub address: String,
    /// `idle`, `down`, `poll` or `stream`.
    pub link: &'static str,
    /// How long the link has been what it is, in milliseconds.
    pub link_age_ms: u64,
    /// Why it cannot be reached, or not as it should. Absent: all is well.
    pub problem: Option<String>,
}

impl ParentStatus {
    pub(super) fn of(news: ParentNews) -> Self {
        Self {
            addresses: news.addresses,
            address: news.address,
            link: news.link.as_str(),
            link_age_ms: millis(clock::wall().saturating_sub(news.since)),
            problem: news.problem,
        }
    }
}

/// A server's own lease on a resource at a moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OwnLeaseStatus {
    /// How much of it the server may hand out, in the resource's own unit.
    pub capacity: f64,
    /// How much it should have once other servers have shrunk, in the resource's own unit.
    pub share: f64,
    /// The most that is in use by what it handed out, in the resource's own unit.
    pub outstanding: f64,
    /// How long it still lasts, in milliseconds. Absent: there is no lease.
    pub expires_in_ms: Option<u64>,
    /// Whether the parent has been asked and has not answered yet.
    pub is_in_flight: bool,
    /// Why the parent refuses the resource, for people. Absent: it does not.
    pub refused: Option<String>,
    /// How long a server above is in learning mode, at most, in milliseconds. Absent: none is.
    pub parent_learns_for_ms: Option<u64>,
}

impl OwnLeaseStatus {
    /// Absent at the root.
    pub(super) fn of(resource: &ResourceSnapshot) -> Option<Self> {
        let lease = resource.upstream.as_ref()?;
        Some(Self {
            capacity: resource.capacity,
            share: lease.share,
            outstanding: resource.reserved,
            expires_in_ms: lease.expires_in.map(millis),
            is_in_flight: lease.in_flight,
            refused: lease.refused.map(refusal),
            parent_learns_for_ms: lease.learning_remaining.map(millis),
        })
    }
}

/// The engine's words are for those who ask this server; these are for those who look after it.
pub(crate) fn refusal(reason: RefusalReason) -> String {
    match reason {
        RefusalReason::UnknownResource => {
            "no template of the root matches it; add one there".to_owned()
        }
        RefusalReason::RefusedByParent => {
            "see why on the parent's status page and in its log; two servers may have the same --node, \
             or the parent is at a limit"
                .to_owned()
        }
        other => other.to_string(),
    }
}

/// A child server's lease on a resource at a moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChildStatus {
    /// The name of its node.
    pub child: String,
    /// Clients below it.
    pub clients: f64,
    /// Sum of what they want, in the resource's own unit.
    pub wants: f64,
    /// What it should have once others have shrunk, in the resource's own unit.
    pub share: f64,
    /// What it got by its newest lease, in the resource's own unit.
    pub granted: f64,
    /// The most it may be using, in the resource's own unit.
    pub reserved: f64,
    /// What it says it may hand out, in the resource's own unit. Absent: it has no lease yet.
    pub has: Option<f64>,
    /// The most its holders may be using by its own word, in the resource's own unit. Absent: it
    /// is of the old kind and does not say.
    pub outstanding: Option<f64>,
    /// Whether it is in learning mode itself.
    pub is_learning: bool,
    /// Levels of servers from it down; a leaf is 1.
    pub height: u32,
    /// Points of the demand curves it sent; 0: it is of the old kind and sends counts and sums
    /// only.
    pub curve_points: usize,
    /// How long its newest lease still lasts, in milliseconds.
    pub expires_in_ms: u64,
    /// How long it was told to wait before it asks again, in milliseconds.
    pub refresh_interval_ms: u64,
    /// Why it got what it got, for people.
    pub why: String,
}

impl ChildStatus {
    /// Absent if the holder is not a child server.
    pub(super) fn of(lease: &LeaseSnapshot, now: Time) -> Option<Self> {
        let ChildSnapshot {
            height,
            learning,
            has,
            outstanding,
            curve_points,
        } = lease.child.as_ref()?;
        Some(Self {
            child: lease.holder.name.to_string(),
            clients: lease.subclients,
            wants: lease.wants,
            share: lease.share,
            granted: lease.granted,
            reserved: lease.reserved,
            has: *has,
            outstanding: *outstanding,
            is_learning: *learning,
            height: *height,
            curve_points: *curve_points,
            expires_in_ms: millis(lease.expires_at.since(now)),
            refresh_interval_ms: millis(lease.refresh_interval),
            why: lease.why.to_string(),
        })
    }
}
