//! A read-only view of a node, for pages, metrics, tools and tests.
//!
//! Plain data that shares nothing with the node: it is taken under the node's lock, and rendered
//! outside of it. Taking it costs O(resources); leases are listed one resource at a time, up to a
//! limit.

use std::time::Duration;

use crate::algorithm::Why;
use crate::id::{HolderId, ResourceId};
use crate::template::{Algorithm, SafeCapacity};
use crate::time::Time;

/// A node at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeSnapshot {
    /// Sorted by id.
    pub resources: Vec<ResourceSnapshot>,
    /// What happened since the node came to be.
    pub counters: Counters,
}

/// A resource at a moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceSnapshot {
    /// Its id.
    pub resource: ResourceId,
    /// The glob of its template. Absent: the template is gone, and its leases run down.
    pub template: Option<String>,
    /// For people.
    pub description: String,
    /// How it is divided.
    pub algorithm: Algorithm,
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
    /// Clients served: holders, each child server counted with its subclients.
    pub clients: f64,
    /// Holders that get less than their share until others have shrunk.
    pub waiting: usize,
    /// How long learning mode still lasts. Absent: it is over.
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
    /// How long it was told to wait before it asks again.
    pub refresh_interval: Duration,
    /// Why it got that.
    pub why: Why,
}

/// What happened since the node came to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Asks that were decided.
    pub decisions: u64,
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
}
