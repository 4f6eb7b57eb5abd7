//! Events of a node, for logs.

use std::time::Duration;

use thiserror::Error;

use crate::id::{HolderId, ResourceId};
use crate::messages::RefusalReason;

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
