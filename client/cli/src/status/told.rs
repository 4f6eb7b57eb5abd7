//! What a server tells of itself, as it is printed.

use doorward_proto::admin::v1 as admin;
use serde::Serialize;

use crate::status::limits::LimitStatus;
use crate::status::some;
use crate::status::states::StatesStatus;
use crate::status::tree::{ChildStatus, OwnLeaseStatus, ParentStatus};

/// The server, as `--output json` prints it. Its field names are an interface.
#[derive(Serialize)]
pub(super) struct Status {
    pub(super) node: String,
    pub(super) version: String,
    pub(super) is_master: bool,
    pub(super) master_address: Option<String>,
    pub(super) epoch: u64,
    pub(super) uptime_ms: u64,
    pub(super) templates_source: String,
    pub(super) templates: u32,
    pub(super) templates_problem: Option<String>,
    /// Absent: learning mode is over, or the server does not say.
    pub(super) learning_remaining_ms: Option<u64>,
    /// Absent: the server does not say.
    pub(super) states: Option<StatesStatus>,
    /// Absent: there is no election.
    pub(super) etcd: Option<EtcdStatus>,
    /// Absent: this is the root.
    pub(super) parent: Option<ParentStatus>,
    /// From the parent up to the root.
    pub(super) ancestors: Vec<String>,
    pub(super) is_in_cycle: bool,
    /// Names under which two live processes ask.
    pub(super) conflicts: Vec<Conflict>,
    /// Absent: they were not asked for.
    pub(super) limits: Option<Vec<LimitStatus>>,
    /// Left out where limits were asked for.
    pub(super) resources: Vec<ResourceStatus>,
}

/// Two live processes under one name, of which the later one was refused.
#[derive(Serialize)]
pub(super) struct Conflict {
    pub(super) holder: String,
    /// `client` or `server`.
    pub(super) kind: String,
    /// How long ago that was seen last.
    pub(super) age_ms: u64,
}

/// The election of the node's master.
#[derive(Serialize)]
pub(super) struct EtcdStatus {
    /// Absent: etcd answers.
    pub(super) problem: Option<String>,
    pub(super) age_ms: u64,
    /// Absent: the server is not the master.
    pub(super) master_for_ms: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct ResourceStatus {
    pub(super) resource_id: String,
    /// Absent: the template is gone, and the leases run down; below the root, only the root has one.
    pub(super) template: Option<String>,
    pub(super) description: String,
    pub(super) algorithm: String,
    pub(super) capacity: f64,
    /// -1: no limit.
    pub(super) safe_capacity: f64,
    pub(super) wants: f64,
    pub(super) granted: f64,
    pub(super) reserved: f64,
    pub(super) leases_count: u64,
    pub(super) clients_count: u64,
    pub(super) waiting_count: u64,
    pub(super) learning_remaining_ms: u64,
    pub(super) lease_length_ms: u64,
    pub(super) refresh_interval_ms: u64,
    /// Absent at the root.
    pub(super) own_lease: Option<OwnLeaseStatus>,
    pub(super) children_count: u64,
    pub(super) children: Vec<ChildStatus>,
    pub(super) leases: Vec<LeaseStatus>,
}

#[derive(Serialize)]
pub(super) struct LeaseStatus {
    pub(super) holder: String,
    pub(super) kind: String,
    pub(super) priority: i64,
    pub(super) subclients: f64,
    pub(super) wants: f64,
    pub(super) share: f64,
    pub(super) granted: f64,
    pub(super) reserved: f64,
    pub(super) expires_in_ms: u64,
    pub(super) refresh_interval_ms: u64,
    pub(super) why: String,
}

impl From<admin::GetStatusResponse> for Status {
    fn from(status: admin::GetStatusResponse) -> Self {
        Self {
            node: status.node,
            version: status.version,
            is_master: status.is_master,
            master_address: some(status.master_address),
            epoch: status.epoch,
            uptime_ms: status.uptime_ms,
            templates_source: status.templates_source,
            templates: status.templates,
            templates_problem: some(status.templates_problem),
            learning_remaining_ms: status.learning_remaining_ms,
            states: status.states.map(StatesStatus::from),
            etcd: status.etcd.map(|etcd| EtcdStatus {
                problem: some(etcd.problem),
                age_ms: etcd.age_ms,
                master_for_ms: etcd.master_for_ms,
            }),
            parent: status.parent.map(ParentStatus::from),
            ancestors: status.ancestor,
            is_in_cycle: status.is_in_cycle,
            conflicts: status
                .conflict
                .into_iter()
                .map(|it| Conflict {
                    holder: it.holder,
                    kind: it.kind,
                    age_ms: it.age_ms,
                })
                .collect(),
            // Who was asked for them and tells none does not know them.
            limits: (!status.limit.is_empty())
                .then(|| status.limit.into_iter().map(LimitStatus::from).collect()),
            resources: status
                .resource
                .into_iter()
                .map(ResourceStatus::from)
                .collect(),
        }
    }
}

impl From<admin::ResourceStatus> for ResourceStatus {
    fn from(resource: admin::ResourceStatus) -> Self {
        Self {
            resource_id: resource.resource_id,
            template: some(resource.template),
            description: resource.description,
            algorithm: resource.algorithm,
            capacity: resource.capacity,
            safe_capacity: resource.safe_capacity,
            wants: resource.wants,
            granted: resource.granted,
            reserved: resource.reserved,
            leases_count: resource.leases_count,
            clients_count: resource.clients_count,
            waiting_count: resource.waiting_count,
            learning_remaining_ms: resource.learning_remaining_ms,
            lease_length_ms: resource.lease_length_ms,
            refresh_interval_ms: resource.refresh_interval_ms,
            own_lease: resource.own_lease.map(OwnLeaseStatus::from),
            children_count: resource.children_count,
            children: resource.child.into_iter().map(ChildStatus::from).collect(),
            leases: resource.lease.into_iter().map(LeaseStatus::from).collect(),
        }
    }
}

impl From<admin::LeaseStatus> for LeaseStatus {
    fn from(lease: admin::LeaseStatus) -> Self {
        Self {
            holder: lease.holder,
            kind: lease.kind,
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
}
