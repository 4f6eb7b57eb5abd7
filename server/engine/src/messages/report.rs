//! A node's reports of itself: events for logs, and read-only views for pages, metrics, tools and tests.
//!
//! A snapshot is plain data that never changes. It is taken under the node's lock and rendered outside of it.
//! Templates, whose texts may be long, are shared with the node and not copied. A whole snapshot costs O(resources),
//! which is too long for the lock, so a server takes a page of resources, or of leases, at a time.

use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::claims::Demand;
use crate::division::Why;
use crate::id::{HolderId, HolderName, ResourceId};
use crate::messages::RefusalReason;
use crate::templates::{AlgorithmKind, SafeCapacity, Shrink, Template};
use crate::time::Time;

/// Two live processes under one name. Of a child server's node, the later one was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// Name, and the refused process of a child server's node.
    pub holder: HolderId,
    /// Time of the last request that showed it.
    pub at: Time,
}

/// State of a resource at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceSnapshot {
    /// Id.
    pub resource: ResourceId,
    /// Template. Absent: it is gone, and the leases run down.
    pub template: Option<Arc<Template>>,
    /// Algorithm of the template, or of the parent's answer.
    pub kind: AlgorithmKind,
    /// Rule for a lease that shrinks.
    pub shrink: Shrink,
    /// Lease length.
    pub lease_length: Duration,
    /// Refresh interval of holders.
    pub refresh_interval: Duration,
    /// Capacity to divide.
    pub capacity: f64,
    /// Capacity of a client in safe mode. Absent: the parent has not said it.
    pub safe_capacity: Option<SafeCapacity>,
    /// Σ wants of all holders.
    pub wants: f64,
    /// Σ of the newest grants.
    pub granted: f64,
    /// Σ of the largest amounts that may be in use.
    pub reserved: f64,
    /// Number of holders with leases.
    pub leases: usize,
    /// Number of child servers among them.
    pub children: usize,
    /// Number of clients served: each child server counts with its subclients.
    pub clients: f64,
    /// Number of holders that get less than their share until others have shrunk.
    pub waiting: usize,
    /// Number of clients whose shares are below the floor of the template. Absent: it names none.
    pub below_floor: Option<f64>,
    /// Longest remaining time of learning mode; at the root, it is exact. Absent: it is over.
    pub learning_remaining: Option<Duration>,
    /// Whether holders may get more than they report meanwhile, since the parent knows the rest.
    pub grows: bool,
    /// Amount that holders may use which have not reported since another master granted it.
    pub unreported: f64,
    /// Time for which they may use it, at a root that does not learn. Absent: there is none.
    pub unreported_for: Option<Duration>,
    /// The root's mark in etcd, which all leases together never exceed. Absent: there is none, or it has no bound.
    pub mark: Option<f64>,
    /// The server's own lease. Absent at the root.
    pub upstream: Option<UpstreamSnapshot>,
    /// State of a budget. Absent: it is none.
    pub budget: Option<BudgetSnapshot>,
}

/// State of a budget at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetSnapshot {
    /// Amount that holders say they used in the window.
    pub used: u64,
    /// Remaining time of the window. Absent: it has no end, or the parent has not said it.
    pub ends_in: Option<Duration>,
    /// Unit of its amounts, for people. Empty: none is said.
    pub unit: String,
    /// Decimals of its amounts in that unit.
    pub decimals: u32,
}

/// State of a server's own lease on a resource at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamSnapshot {
    /// Remaining time of the lease. Absent: there is none, or it is one of a budget without an end.
    pub expires_in: Option<Duration>,
    /// Share of the server once others have shrunk.
    pub share: f64,
    /// Whether the parent has ever answered. Until then the server does not know the algorithm.
    pub knows_algorithm: bool,
    /// Whether the parent has not answered the newest request yet.
    pub in_flight: bool,
    /// Reason why the parent refuses the resource.
    pub refused: Option<RefusalReason>,
    /// Longest remaining time of learning mode above this server. Absent: no server learns, or the parent does not send
    /// it.
    pub learning_remaining: Option<Duration>,
}

/// State of a lease at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseSnapshot {
    /// Holder.
    pub holder: HolderId,
    /// Demand of its newest request, as far as it counts.
    pub demand: Demand,
    /// Whether it wants more than counts: more than its template lets a client have.
    pub wants_more: bool,
    /// Share by the algorithm, at the holder's last request.
    pub share: f64,
    /// Amount granted.
    pub granted: f64,
    /// Largest amount that the holder may be using.
    pub reserved: f64,
    /// End of its newest lease.
    pub expires_at: Time,
    /// End of the last of its leases.
    pub reserved_until: Time,
    /// Refresh interval.
    pub refresh_interval: Duration,
    /// Reason for the grant.
    pub why: Why,
    /// Statements of a child server.
    pub child: Option<ChildSnapshot>,
}

impl LeaseSnapshot {
    /// Amount that the holder wants.
    pub fn wants(&self) -> f64 {
        self.demand.wants().get()
    }
}

/// Place where a page of leases of a resource starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LeasesFrom {
    /// The first lease.
    #[default]
    Start,
    /// The lease after that child server.
    After(HolderName),
    /// That place among the places of all leases.
    Place(usize),
}

/// Statements of a child server in its last request.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildSnapshot {
    /// Levels of servers from it downwards. A leaf is 1.
    pub height: u32,
    /// Whether it is in learning mode.
    pub learning: bool,
    /// Amount of its own lease.
    pub has: Option<f64>,
    /// Most that its holders may be using. Absent: not sent.
    pub outstanding: Option<f64>,
    /// Points of the demand curves that it sent. 0: it sent only counts and sums.
    pub curve_points: usize,
}

/// Sums over all resources.
///
/// A node may have a million resources. A reader adds them up a page at a time
/// ([`Node::add_to_totals`](crate::node::Node::add_to_totals)), and requests are served in between. So the sums are not
/// of one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Resources with leases out.
    pub resources: usize,
    /// Leases out.
    pub leases: usize,
    /// Leases of child servers among them.
    pub children: usize,
    /// Clients served, those below child servers included.
    pub clients: f64,
    /// Holders that get less than their share until others have shrunk.
    pub waiting: usize,
    /// Holders of the resource that has most of them.
    pub leases_per_resource: usize,
    /// Resources that the parent refuses.
    pub refused_by_parent: usize,
    /// Some resource learns.
    pub(crate) learns: bool,
    /// A server above learns.
    pub(crate) learns_above: bool,
}

/// Counts since the node was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Asks that were decided.
    pub decisions: u64,
    /// Decided asks that repeated an earlier one while nothing had changed.
    pub repeats: u64,
    /// Leases pushed to clients.
    pub pushed: u64,
    /// Asks answered with the current lease because they came earlier than the floor.
    pub too_early: u64,
    /// Asks and releases whose sequence was not above the newest seen.
    pub out_of_order: u64,
    /// Refused asks.
    pub refused: u64,
    /// Released leases.
    pub released: u64,
    /// Expired leases.
    pub expired: u64,
    /// Requests answered "not the master".
    pub redirected: u64,
    /// Requests in which two live processes used one name.
    pub conflicts: u64,
}

/// Something worth a line in the log.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeEvent {
    /// A resource got its first holder.
    ResourceAdded {
        /// The resource.
        resource: ResourceId,
        /// The glob of the template it takes its capacity from. Absent: a parent sends the
        /// capacity.
        template: Option<String>,
    },
    /// A resource's last lease ended; nothing is known of it any more.
    ResourceDropped {
        /// The resource.
        resource: ResourceId,
    },
    /// A resource's learning mode began.
    LearningBegan {
        /// The resource.
        resource: ResourceId,
        /// The remaining time from then on.
        left: Duration,
    },
    /// A resource's learning mode ended.
    LearningEnded {
        /// The resource.
        resource: ResourceId,
    },
    /// New templates put a resource's capacity below the sum of its leases: no new capacity is
    /// granted until the leases fit.
    CapacityBelowReserved {
        /// The resource.
        resource: ResourceId,
        /// The capacity now.
        capacity: f64,
        /// The most that may be in use.
        reserved: f64,
    },
    /// The template of a resource with leases is gone: the leases run down.
    TemplateGone {
        /// The resource.
        resource: ResourceId,
    },
    /// It is not known what was given of a budget: nothing is given before its next window.
    BudgetUnknown {
        /// The budget.
        resource: ResourceId,
    },
    /// The wall clock jumped so far that windows of budgets turn without it.
    WallClockDoubted {
        /// The difference.
        by: Duration,
    },
    /// Mastership ended by itself, since it was not confirmed in time. All leases are forgotten.
    TermEnded {
        /// Its epoch.
        epoch: Option<u64>,
    },
    /// Two live processes ask under one name. Of a child server's node, the later one is refused from now on.
    TwoProcesses {
        /// The resource.
        resource: ResourceId,
        /// The name.
        holder: HolderId,
    },
    /// The parent refuses a resource, which it did not before.
    RefusedByParent {
        /// The resource.
        resource: ResourceId,
        /// The reason of the refusal.
        reason: RefusalReason,
    },
    /// The parent's answer is invalid; the last one stays in force.
    InvalidParentAnswer {
        /// The resource of the answer.
        resource: ResourceId,
        /// The problem.
        problem: String,
    },
    /// This node is among its parent's ancestors: the parent's answers do not count.
    Cycle {
        /// The nodes from the parent up.
        ancestors: Vec<String>,
    },
    /// A child server was refused that is an ancestor of this node.
    CycleRefused(Cycle),
    /// The cycle has ended.
    CycleEnded,
}

/// A child server is an ancestor of this one, or this one itself.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the node {child} cannot be a child of {node}: its capacity would come from itself, by way of \
     {path}; check --node and --parent of the servers on this way",
    path = path.join(" → ")
)]
pub struct Cycle {
    /// The child server that asked.
    pub child: String,
    /// The node that the child asked.
    pub node: String,
    /// From the asked node up to the one that asked.
    pub path: Vec<String>,
}
