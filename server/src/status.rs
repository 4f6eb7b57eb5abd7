//! The status of a server: what it says of itself to operators and tools.
//!
//! There is one model of it, [`Status`], which is the admin service's answer. `/status` and the command line print
//! it as JSON; pages and tables show it.
//!
//! Whoever looks does so on a thread of its own ([`Board::look`]), a little at a time ([`listing`]): no client waits
//! for it. A status lists resources by pages; the token of a page is the last id of the page before.

mod board;
pub mod learning;
pub mod listing;
mod looking;
pub mod model;
pub mod readiness;
pub mod sessions;

use doorward_engine::id::ResourceId;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::time::Time;
use doorward_proto::STATUS_SCHEMA_VERSION;
pub use doorward_proto::admin::v1::{
    ChildStatus, ConflictStatus, EtcdStatus, GetStatusRequest, GetStatusResponse as Status,
    LeaseStatus, LimitStatus, OwnLeaseStatus, ParentStatus, ResourceStatus, States, TemplateMatch,
};

pub use crate::status::board::{Board, ParentLink, ParentNews, TemplatesNews};
pub use crate::status::listing::LEASES_MAX;
use crate::status::listing::Room;
use crate::status::model::{count, millis};
use crate::status::readiness::Readiness;

/// Resources on a page of `/status` whose size nobody says.
pub const RESOURCES_DEFAULT: u32 = 1_000;

/// Resources on one page at most. Programs of earlier versions ask for no pages and get so many.
pub const RESOURCES_MAX: usize = 10_000;

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
                let (snapshot, template, knows_templates) = self.node().look(|node, now| {
                    let templates = node.templates();
                    (
                        node.resource_snapshot(id, now),
                        templates.find(id).cloned(),
                        !templates.is_empty(),
                    )
                });
                let is_root = status.parent.is_none();
                status.template_match = (is_root && knows_templates).then(|| TemplateMatch {
                    glob: template.map(|template| template.identifier_glob.clone()),
                });
                let mut room = Room::EMPTY_PAGE;
                status.resources = snapshot
                    .map(|it| self.resource(it, query.leases_max, &mut room))
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

    /// Describes the server as a whole.
    fn head(&self) -> Status {
        let templates = self.templates_news();
        let etcd = self.etcd_health();
        let totals = self.totals();
        let (mastership, learning, mut status) = self.node().look(|node, now| {
            let master_for = node.valid_until().map(|until| until.since(now));
            let status = Status {
                uptime_ms: millis(now.since(Time::ZERO)),
                templates_count: u32::try_from(node.templates().len()).unwrap_or(u32::MAX),
                learning_remaining_ms: node.learning_remaining(now).map(millis),
                etcd: etcd.map(|contact| model::etcd(contact, master_for)),
                ancestors: node.ancestors().to_vec(),
                resources_count: Some(count(totals.resources)),
                leases_count: Some(count(totals.leases)),
                clients_count: Some(totals.clients),
                waiting_count: Some(count(totals.waiting)),
                ..Status::default()
            };
            let learning = node.learning(&totals, now);
            (node.mastership(now).clone(), learning, status)
        });
        status.is_master = mastership.is_master();
        match mastership {
            Mastership::Master { epoch } => {
                (status.master_address, status.epoch) = (Some(self.address().to_owned()), epoch);
            }
            Mastership::Elsewhere {
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
            states: Some(model::states(self.sessions(), learning)),
            conflicts: self.conflicts(),
            ..status
        }
    }
}
