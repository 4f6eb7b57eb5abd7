//! What a server tells about itself, as the admin service says it: every field of [`Status`] under
//! the same name. A text that is absent is empty.

use doorward_proto::admin::v1 as admin;

use crate::limits::Unit;
use crate::status::limits::LimitStatus;
use crate::status::sessions::StatesStatus;
use crate::status::tree::{ChildStatus, OwnLeaseStatus, ParentStatus};
use crate::status::{LeaseStatus, ResourceStatus, Status};

/// A status for the admin service.
pub fn status_response(status: Status) -> admin::GetStatusResponse {
    admin::GetStatusResponse {
        node: status.node,
        version: status.version.to_owned(),
        is_master: status.is_master,
        master_address: status.master_address.unwrap_or_default(),
        epoch: status.epoch.unwrap_or_default(),
        uptime_ms: status.uptime_ms,
        templates_source: status.templates_source,
        templates: u32::try_from(status.templates).unwrap_or(u32::MAX),
        resource: status.resources.into_iter().map(resource_status).collect(),
        templates_problem: status.templates_problem.unwrap_or_default(),
        learning_remaining_ms: status.learning_remaining_ms,
        parent: status.parent.map(parent_status),
        ancestor: status.ancestors,
        is_in_cycle: status.is_in_cycle,
        conflict: status
            .conflicts
            .into_iter()
            .map(|conflict| admin::ConflictStatus {
                holder: conflict.holder,
                kind: conflict.kind.to_owned(),
                age_ms: conflict.age_ms,
            })
            .collect(),
        etcd: status.etcd.map(|etcd| admin::EtcdStatus {
            problem: etcd.problem.unwrap_or_default(),
            age_ms: etcd.age_ms,
            master_for_ms: etcd.master_for_ms,
        }),
        limit: status
            .limits
            .into_iter()
            .flatten()
            .map(limit_status)
            .collect(),
        states: Some(states(status.states)),
    }
}

fn states(states: StatesStatus) -> admin::States {
    let streams = states.child_streams.into_iter();
    admin::States {
        parent_session: states.parent_session.unwrap_or_default().to_owned(),
        election: states.election.unwrap_or_default().to_owned(),
        child_streams: streams
            .map(|(state, streams)| admin::StateCount {
                state: state.to_owned(),
                count: count(streams),
            })
            .collect(),
        learning: states.learning.to_owned(),
    }
}

fn limit_status(limit: LimitStatus) -> admin::LimitStatus {
    let unit = match limit.unit {
        Unit::Count => admin::limit_status::Unit::Count,
        Unit::Bytes => admin::limit_status::Unit::Bytes,
        Unit::PerSecond => admin::limit_status::Unit::PerSecond,
        Unit::Millis => admin::limit_status::Unit::Millis,
    };
    admin::LimitStatus {
        name: limit.name.to_owned(),
        what: limit.what.to_owned(),
        flag: limit.flag.to_owned(),
        unit: unit.into(),
        used: limit.used,
        max: limit.max,
        refused: limit.refused,
    }
}

fn resource_status(resource: ResourceStatus) -> admin::ResourceStatus {
    admin::ResourceStatus {
        resource_id: resource.resource_id,
        template: resource.template.unwrap_or_default(),
        description: resource.description,
        algorithm: resource.algorithm.to_owned(),
        capacity: resource.capacity,
        safe_capacity: resource.safe_capacity.unwrap_or_default(),
        wants: resource.wants,
        granted: resource.granted,
        reserved: resource.reserved,
        leases_count: count(resource.leases_count),
        waiting_count: count(resource.waiting_count),
        learning_remaining_ms: resource.learning_remaining_ms,
        lease_length_ms: resource.lease_length_ms,
        refresh_interval_ms: resource.refresh_interval_ms,
        lease: resource.leases.into_iter().map(lease_status).collect(),
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a number of clients: whole, not negative, and `as` saturates"
        )]
        clients_count: resource.clients_count as u64,
        own_lease: resource.own_lease.map(own_lease_status),
        children_count: count(resource.children_count),
        child: resource.children.into_iter().map(child_status).collect(),
    }
}

fn parent_status(parent: ParentStatus) -> admin::ParentStatus {
    admin::ParentStatus {
        configured_address: parent.addresses,
        address: parent.address,
        link: parent.link.to_owned(),
        link_age_ms: parent.link_age_ms,
        problem: parent.problem.unwrap_or_default(),
    }
}

fn own_lease_status(lease: OwnLeaseStatus) -> admin::OwnLeaseStatus {
    admin::OwnLeaseStatus {
        capacity: lease.capacity,
        share: lease.share,
        outstanding: lease.outstanding,
        expires_in_ms: lease.expires_in_ms,
        is_in_flight: lease.is_in_flight,
        refused: lease.refused.unwrap_or_default(),
        parent_learns_for_ms: lease.parent_learns_for_ms,
    }
}

fn child_status(child: ChildStatus) -> admin::ChildStatus {
    admin::ChildStatus {
        child: child.child,
        clients: child.clients,
        wants: child.wants,
        share: child.share,
        granted: child.granted,
        reserved: child.reserved,
        has: child.has,
        outstanding: child.outstanding,
        is_learning: child.is_learning,
        height: child.height,
        curve_points: count(child.curve_points),
        expires_in_ms: child.expires_in_ms,
        refresh_interval_ms: child.refresh_interval_ms,
        why: child.why,
    }
}

fn lease_status(lease: LeaseStatus) -> admin::LeaseStatus {
    admin::LeaseStatus {
        holder: lease.holder,
        kind: lease.kind.to_owned(),
        priority: lease.priority,
        subclients: lease.subclients,
        wants: lease.wants,
        share: lease.share,
        granted: lease.granted,
        reserved: lease.reserved,
        expires_in_ms: lease.expires_in_ms,
        refresh_interval_ms: lease.refresh_interval_ms,
        why: lease.why,
    }
}

fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
