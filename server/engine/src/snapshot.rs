//! A read-only view of a node, for pages, metrics, tools and tests.
//!
//! Plain data that nothing changes any more: it is taken under the node's lock, and rendered outside of it. What
//! operators wrote, which may be long, is shared with the node and not copied. Taking a whole one costs O(resources),
//! which no server can afford: it looks at a few resources at a time, and at a few leases.

use std::sync::Arc;
use std::time::Duration;

use crate::algorithm::Why;
use crate::id::{HolderId, HolderName, Incarnation, ResourceId};
use crate::request::RefusalReason;
use crate::template::{AlgorithmKind, SafeCapacity, Shrink, Template};
use crate::time::Time;

/// A node at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeSnapshot {
    /// Sorted by id.
    pub resources: Vec<ResourceSnapshot>,
    /// Two live processes under one name, as far as that was seen lately.
    pub conflicts: Vec<Conflict>,
    /// What happened since the node came to be.
    pub counters: Counters,
}

/// Two live processes under one name, of which the later one was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct Conflict {
    /// The name.
    pub holder: HolderId,
    /// Which process was refused; absent if it does not say which it is.
    pub refused: Option<Incarnation>,
    /// When that was seen last.
    pub at: Time,
}

/// A resource at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceSnapshot {
    /// Its id.
    pub resource: ResourceId,
    /// Its template. Absent: it is gone, and the leases run down.
    pub template: Option<Arc<Template>>,
    /// By which algorithm it is divided: the template's, or what the parent says.
    pub kind: AlgorithmKind,
    /// How a lease that shrinks counts.
    pub shrink: Shrink,
    /// How long leases last.
    pub lease_length: Duration,
    /// How often holders ask.
    pub refresh_interval: Duration,
    /// What there is to share.
    pub capacity: f64,
    /// What a client in safe mode falls back to.
    pub safe_capacity: Option<SafeCapacity>,
    /// Σ wants of all holders.
    pub wants: f64,
    /// Σ of what the newest leases say.
    pub granted: f64,
    /// Σ of the most that may be in use.
    pub reserved: f64,
    /// Holders with leases.
    pub leases: usize,
    /// The child servers among them.
    pub children: usize,
    /// Clients served: holders, each child server counted with its subclients.
    pub clients: f64,
    /// Holders that get less than their share until others have shrunk.
    pub waiting: usize,
    /// How long learning mode still lasts. Absent: it is over.
    pub learning_remaining: Option<Duration>,
    /// The server's own lease. Absent at the root.
    pub upstream: Option<UpstreamSnapshot>,
}

/// A server's own lease on a resource at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct UpstreamSnapshot {
    /// When it ends. Absent: there is none.
    pub expires_in: Option<Duration>,
    /// What the server should have once others have shrunk.
    pub share: f64,
    /// Whether the parent has ever answered. Until then the algorithm is not known.
    pub knows_algorithm: bool,
    /// Whether the parent has not answered the newest request yet.
    pub in_flight: bool,
    /// Why the parent refuses the resource.
    pub refused: Option<RefusalReason>,
    /// How long a server above is in learning mode, at most. Absent: none is, or the parent does not say.
    pub learning_remaining: Option<Duration>,
}

/// A lease at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseSnapshot {
    /// Whose.
    pub holder: HolderId,
    /// Its priority.
    pub priority: i64,
    /// How many clients it stands for.
    pub subclients: f64,
    /// What it wants.
    pub wants: f64,
    /// What it should have by the algorithm, at its last request.
    pub share: f64,
    /// What it got.
    pub granted: f64,
    /// The most it may be using.
    pub reserved: f64,
    /// When its newest lease ends.
    pub expires_at: Time,
    /// When the last of its leases ends.
    pub reserved_until: Time,
    /// Its refresh interval.
    pub refresh_interval: Duration,
    /// Why it got that.
    pub why: Why,
    /// What it says of itself, if it is a child server.
    pub child: Option<ChildSnapshot>,
}

/// Where a look at the leases of a resource goes on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LeasesFrom {
    /// At the first one.
    #[default]
    Start,
    /// After that child server.
    After(HolderName),
    /// At that place of all that leases have.
    Place(usize),
}

/// What a child server said of itself with its last request.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildSnapshot {
    /// Levels of servers from it down; a leaf is 1.
    pub height: u32,
    /// Whether it is in learning mode.
    pub learning: bool,
    /// What it may hand out by its own lease.
    pub has: Option<f64>,
    /// The most its holders may be using. Absent: it does not say.
    pub outstanding: Option<f64>,
    /// Points of the demand curves it sent; 0: it sent counts and sums only.
    pub curve_points: usize,
}

/// What happened since the node came to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Asks that were decided.
    pub decisions: u64,
    /// Those among them that repeated a request, since which nothing had changed.
    pub repeats: u64,
    /// Asks answered with the current lease because they came faster than the floor.
    pub too_early: u64,
    /// Asks and releases whose sequence was not above the newest seen.
    pub out_of_order: u64,
    /// Asks refused.
    pub refused: u64,
    /// Leases released.
    pub released: u64,
    /// Leases expired.
    pub expired: u64,
    /// Requests answered "not the master".
    pub redirected: u64,
    /// How often two live processes were seen under one name.
    pub conflicts: u64,
}
