//! The state machine of a server node.

pub mod mastership;

use std::time::Duration;

use crate::id::ResourceId;
use crate::node::mastership::{Mastership, Outcome};
use crate::request::{GetCapacity, GetCapacityReply, ReleaseCapacity};
use crate::snapshot::{LeaseSnapshot, NodeSnapshot, ResourceSnapshot};
use crate::template::Templates;
use crate::time::Time;

/// How a node is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// The only chance the engine is handed: it keys hashing and spreads refreshes.
    pub seed: u64,
    /// Requests of one holder for one resource that come faster than this get their current lease
    /// again, without a new decision. Zero: every request is decided.
    pub refresh_floor: Duration,
    /// How much a node takes on.
    pub limits: Limits,
}

/// How much a node takes on before it refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Resources with leases out.
    pub resources_max: usize,
    /// Holders of one resource.
    pub leases_per_resource_max: usize,
    /// Different priorities of one PRIORITY_BANDS resource.
    pub bands_per_resource_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            resources_max: 100_000,
            leases_per_resource_max: 2_000_000,
            bands_per_resource_max: 64,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 0,
            refresh_floor: Duration::from_secs(1),
            limits: Limits::default(),
        }
    }
}

/// When the node wants [`Node::handle_timeout`] called, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout {
    /// At that time or soon after.
    pub at: Time,
    /// What is due then.
    pub reason: TimeoutReason,
}

/// What is due at a [`Timeout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeoutReason {
    /// A lease ends.
    LeaseExpiry,
    /// A resource's learning mode ends.
    LearningEnd,
}

/// Something worth a line in the log.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A resource got its first holder.
    ResourceAdded {
        /// Which.
        resource: ResourceId,
        /// The template it takes its capacity from.
        template: String,
    },
    /// A resource's last lease ended; nothing is known of it any more.
    ResourceDropped {
        /// Which.
        resource: ResourceId,
    },
    /// A resource's learning mode ended.
    LearningEnded {
        /// Which.
        resource: ResourceId,
    },
    /// A resource's capacity is below what is out: nothing new is granted until it fits.
    CapacityBelowReserved {
        /// Which.
        resource: ResourceId,
        /// The capacity now.
        capacity: f64,
        /// What may be in use.
        reserved: f64,
    },
    /// The template of a resource with leases out is gone: they run down.
    TemplateGone {
        /// Which.
        resource: ResourceId,
    },
}

/// The state machine of a server node.
#[derive(Debug)]
pub struct Node {
    mastership: Mastership,
}

impl Node {
    /// A node that is not the master yet.
    pub fn new(_config: Config, _templates: Templates) -> Self {
        Self {
            mastership: Mastership::Unknown,
        }
    }

    /// Mastership was won, lost, or is now elsewhere. All leases are forgotten, except when an
    /// unchanged mastership is told again.
    pub fn handle_mastership(&mut self, mastership: Mastership, _now: Time) {
        self.mastership = mastership;
    }

    /// New templates are in force from now on.
    pub fn handle_templates(&mut self, _templates: Templates, _now: Time) {}

    /// A client asks for capacity.
    pub fn handle_get_capacity(
        &mut self,
        _request: &GetCapacity,
        _now: Time,
    ) -> Outcome<GetCapacityReply> {
        Outcome::NotMaster(self.mastership.clone())
    }

    /// A client releases.
    pub fn handle_release_capacity(
        &mut self,
        _request: &ReleaseCapacity,
        _now: Time,
    ) -> Outcome<()> {
        Outcome::NotMaster(self.mastership.clone())
    }

    /// The time of [`Node::poll_timeout`] has come. Does a bounded amount of work; more may be due.
    pub fn handle_timeout(&mut self, _now: Time) {}

    /// When to call [`Node::handle_timeout`] next.
    pub fn poll_timeout(&self) -> Option<Timeout> {
        None
    }

    /// What happened since the last call, oldest first.
    pub fn poll_event(&mut self) -> Option<Event> {
        None
    }

    /// Who is the master.
    pub fn mastership(&self) -> &Mastership {
        &self.mastership
    }

    /// The templates in force.
    pub fn templates(&self) -> &Templates {
        unreachable!()
    }

    /// A view of the node without its leases; costs O(resources).
    pub fn snapshot(&self, _now: Time) -> NodeSnapshot {
        NodeSnapshot::default()
    }

    /// A view of one resource.
    pub fn resource_snapshot(
        &self,
        _resource: &ResourceId,
        _now: Time,
    ) -> Option<ResourceSnapshot> {
        None
    }

    /// Up to `max` leases of one resource.
    pub fn lease_snapshots(
        &self,
        _resource: &ResourceId,
        _max: usize,
        _now: Time,
    ) -> Vec<LeaseSnapshot> {
        Vec::new()
    }
}
