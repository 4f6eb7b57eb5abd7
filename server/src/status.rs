//! The status of a server: what it says of itself to operators and tools.
//!
//! There is one model of it, [`Status`], which is the admin service's answer. `/status` and the command line print
//! it as JSON; pages and tables show it.
//!
//! A server may hold a million resources, and each request for capacity waits while somebody looks at the node. So
//! a status lists resources by pages: it looks at [`RESOURCES_PER_LOOK`] of them at a time, and lets requests in
//! between. A page ends where as many are listed as were asked for, or as fit in an answer; its token is the last
//! id of it. What is said of all resources together comes from [`Board::totals`].

mod board;
pub mod learning;
pub mod model;
pub mod readiness;
pub mod sessions;
mod totals;

use doorward_engine::id::ResourceId;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::snapshot::{LeaseSnapshot, ResourceSnapshot};
use doorward_engine::time::Time;
use doorward_proto::STATUS_SCHEMA_VERSION;
pub use doorward_proto::admin::v1::{
    ChildStatus, ConflictStatus, EtcdStatus, GetStatusRequest, GetStatusResponse as Status,
    LeaseStatus, LimitStatus, OwnLeaseStatus, ParentStatus, ResourceStatus, States,
};
use prost::Message;

pub use crate::status::board::{Board, ParentLink, ParentNews, TemplatesNews};
use crate::status::model::{count, millis};
use crate::status::readiness::Readiness;

/// Resources on a page of `/status` whose size nobody says.
pub const RESOURCES_DEFAULT: u32 = 1_000;

/// Resources on one page at most. Programs of earlier versions ask for no pages and get so many.
pub const RESOURCES_MAX: usize = 10_000;

/// Resources that are looked at while requests wait.
pub const RESOURCES_PER_LOOK: usize = 32;

/// A page ends when its resources have so many bytes: a gRPC client takes 4 MiB by default.
const PAGE_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Leases on one page at most, over all resources; those of child servers count once as children and once as
/// leases. A page ends before the resource whose leases would go beyond, unless it is the first one.
pub const LEASES_MAX: usize = 10_000;

/// Which resources a status lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listed {
    /// Up to so many after that one. Absent: from the first one on.
    Page(Option<ResourceId>, usize),
    /// Only that one.
    Only(ResourceId),
    /// None: a status that is short and taken at once, however many there are.
    Nothing,
}

/// What somebody wants to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// Which resources.
    pub listed: Listed,
    /// How many leases of each.
    pub leases_max: usize,
    /// Whether limits are listed.
    pub limits: bool,
}

impl Query {
    /// What a request asks for.
    ///
    /// # Errors
    ///
    /// What is wrong with it.
    pub fn of(request: &GetStatusRequest) -> Result<Self, String> {
        let id = |name, text: &str| match text {
            "" => Ok(None),
            text => ResourceId::new(text)
                .map(Some)
                .map_err(|error| format!("{name} {error}")),
        };
        let only = id("resource_id", &request.resource_id)?;
        let after = id("token", &request.token)?;
        let limit = match usize::try_from(request.limit).unwrap_or(usize::MAX) {
            0 => RESOURCES_MAX,
            limit => limit.min(RESOURCES_MAX),
        };
        Ok(Self {
            listed: match only {
                _ if request.without_resources => Listed::Nothing,
                Some(only) => Listed::Only(only),
                None => Listed::Page(after, limit),
            },
            leases_max: usize::try_from(request.leases_max).unwrap_or(usize::MAX),
            limits: request.limits,
        })
    }
}

impl Board {
    /// What is known now of a resource, or the first page of all.
    pub fn status(&self, only: Option<&ResourceId>, leases_max: usize) -> Status {
        let listed = match only {
            Some(only) => Listed::Only(only.clone()),
            None => Listed::Page(None, RESOURCES_MAX),
        };
        self.answer(&Query {
            listed,
            leases_max,
            limits: false,
        })
    }

    /// What is known of the server itself. It lists no resource.
    pub fn status_without_resources(&self) -> Status {
        self.answer(&Query {
            listed: Listed::Nothing,
            leases_max: 0,
            limits: false,
        })
    }

    /// What somebody wants to know.
    pub fn answer(&self, query: &Query) -> Status {
        let mut status = self.head();
        match &query.listed {
            Listed::Nothing => {}
            Listed::Only(id) => {
                let snapshot = self
                    .node()
                    .read(|node, now| node.resource_snapshot(id, now));
                let mut listable = LEASES_MAX;
                status.resources = snapshot
                    .map(|it| self.resource(it, query.leases_max, &mut listable))
                    .into_iter()
                    .collect();
            }
            Listed::Page(after, limit) => {
                (status.resources, status.next_token) =
                    self.page(after.clone(), *limit, query.leases_max);
            }
        }
        if query.limits {
            status.limits = self.limit_figures().iter().map(model::limit).collect();
        }
        status
    }

    /// What is said of the server as a whole. O(templates), whatever it holds.
    fn head(&self) -> Status {
        let templates = self.templates_news();
        let totals = self.totals();
        let (mastership, mut status) = self.node().read(|node, now| {
            let master_for = node.valid_until().map(|until| until.since(now));
            let etcd = self.etcd_health();
            let status = Status {
                uptime_ms: millis(now.since(Time::ZERO)),
                templates_count: u32::try_from(node.templates().len()).unwrap_or(u32::MAX),
                learning_remaining_ms: node.learning_remaining(now).map(millis),
                states: Some(model::states(
                    self.sessions(),
                    node.learning_by(&totals, now),
                )),
                etcd: etcd.map(|contact| model::etcd(contact, master_for)),
                ancestors: node.ancestors().to_vec(),
                conflicts: node
                    .conflicts(now)
                    .map(|conflict| model::conflict(conflict, now))
                    .collect(),
                resources_count: Some(count(node.resources_count())),
                leases_count: Some(count(totals.leases)),
                clients_count: Some(totals.clients),
                waiting_count: Some(count(totals.waiting)),
                ..Status::default()
            };
            (node.mastership(now).clone(), status)
        });
        status.is_master = mastership.is_master();
        match mastership {
            Mastership::Master { epoch } => {
                (status.master_address, status.epoch) = (Some(self.address().to_owned()), epoch);
            }
            Mastership::Follower {
                master_address,
                epoch,
            } => {
                (status.master_address, status.epoch) = (Some(master_address), epoch);
                status.master_pages_address = self.master_pages();
            }
            Mastership::Unknown => {}
        }
        Status {
            schema_version: STATUS_SCHEMA_VERSION,
            node: self.node_name().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            unready: match self.readiness() {
                Readiness::Ready => None,
                Readiness::Unready(why) => Some(why),
            },
            templates_source: templates.source,
            templates_problem: templates.problem,
            parent: self.parent_news().map(model::parent),
            is_in_cycle: self.is_in_cycle(),
            ..status
        }
    }

    /// Up to `limit` resources after that one, and where to go on if there are more.
    fn page(
        &self,
        mut after: Option<ResourceId>,
        limit: usize,
        leases_max: usize,
    ) -> (Vec<ResourceStatus>, Option<String>) {
        let mut resources: Vec<ResourceStatus> = Vec::new();
        let (mut bytes, mut listable) = (0, LEASES_MAX);
        loop {
            // One more than is listed says whether there is another page.
            let left = limit.saturating_sub(resources.len()).saturating_add(1);
            let look = left.min(RESOURCES_PER_LOOK);
            let seen = self
                .node()
                .read(|node, now| node.snapshots_after(after.as_ref(), look, now));
            let is_last = seen.len() < look;
            for snapshot in seen {
                let id = snapshot.resource.clone();
                let leases = snapshot
                    .children
                    .saturating_add(leases_max.min(snapshot.leases));
                let is_full = resources.len() >= limit
                    || bytes >= PAGE_BYTES_MAX
                    || (leases > listable && !resources.is_empty());
                if is_full {
                    return (resources, after.map(|id| id.to_string()));
                }
                let resource = self.resource(snapshot, leases_max, &mut listable);
                bytes += resource.encoded_len();
                resources.push(resource);
                after = Some(id);
            }
            if is_last {
                return (resources, None);
            }
        }
    }

    fn resource(
        &self,
        snapshot: ResourceSnapshot,
        leases_max: usize,
        listable: &mut usize,
    ) -> ResourceStatus {
        let (id, children) = (snapshot.resource.clone(), snapshot.children);
        let listed = model::resource(snapshot);
        ResourceStatus {
            children: self.leases(&id, children, listable, model::child),
            leases: self.leases(&id, leases_max, listable, |lease, now| {
                Some(model::lease(lease, now))
            }),
            ..listed
        }
    }

    /// Up to `max` leases of a resource, those of child servers first, as far as they are listable.
    fn leases<T>(
        &self,
        resource: &ResourceId,
        max: usize,
        listable: &mut usize,
        render: impl Fn(&LeaseSnapshot, Time) -> Option<T>,
    ) -> Vec<T> {
        let max = max.min(*listable);
        if max == 0 {
            return Vec::new();
        }
        let (leases, now) = self
            .node()
            .read(|node, now| (node.lease_snapshots(resource, max, now), now));
        let rendered: Vec<T> = leases
            .iter()
            .filter_map(|lease| render(lease, now))
            .collect();
        *listable = listable.saturating_sub(rendered.len());
        rendered
    }
}
