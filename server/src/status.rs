//! The status of a server for operators and tools.
//!
//! There is one model of it, [`Status`], which is the admin service's answer. `/status` and the command line print it
//! as JSON; pages and tables show it.
//!
//! A reader works on a thread of its own ([`ServerState::look`]), in small steps ([`listing`]), so no client waits for
//! it. A status lists resources by pages; the token of a page is the last id of the page before.

pub mod history;
pub mod learning;
pub mod listing;
pub mod model;
pub mod readiness;
mod server_state;
pub mod shadow;

use doorward_documents::template_status;
use doorward_engine::id::ResourceId;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::time::Time;
use doorward_proto::STATUS_SCHEMA_VERSION;
pub use doorward_proto::admin::v1::{
    ChildServerStatus, ChildStatus, ConflictStatus, EtcdStatus, GetStatusRequest,
    GetStatusResponse as Status, LeaseStatus, LimitStatus, OwnLeaseStatus, ParentStatus,
    ResourceStatus, RuleDecisions, RulesStatus, States, TemplateMatch,
};

pub use crate::status::listing::LEASES_MAX;
use crate::status::listing::Room;
use crate::status::model::{count, millis};
pub use crate::status::server_state::{
    EtcdHealth, ParentLink, ParentNews, RulesDocument, RulesNews, ServerState, Sessions,
};

/// Number of resources on a page of `/status` without a limit in the query.
pub const RESOURCES_DEFAULT: u32 = 1_000;

/// Largest number of resources on a page. Programs of earlier versions do not ask for pages, and get that many.
pub const RESOURCES_MAX: usize = 10_000;

/// Resources that a status lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Listed {
    /// Up to a number of resources after the given one. Absent: from the first one on.
    Page(Option<ResourceId>, usize),
    /// Only the given resource.
    Only(ResourceId),
    /// No resource. Such a status is short and quick, however many resources there are.
    #[default]
    Nothing,
}

/// A request for a status.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// Resources to list.
    pub listed: Listed,
    /// The request. Its `named` is in lower case.
    pub request: GetStatusRequest,
}

impl Query {
    /// Returns the query of a request.
    ///
    /// # Errors
    ///
    /// If the request is invalid, with the reason.
    pub fn of(mut request: GetStatusRequest) -> Result<Self, String> {
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
        let listed = match only {
            _ if request.without_resources => Listed::Nothing,
            Some(only) => Listed::Only(only),
            None => Listed::Page(after, limit),
        };
        request.named = request.named.to_lowercase();
        Ok(Self { listed, request })
    }

    /// Returns the largest number of leases of each resource.
    pub fn leases_max(&self) -> usize {
        usize::try_from(self.request.leases_max).unwrap_or(usize::MAX)
    }
}

impl ServerState {
    /// Returns the status that a query asks for.
    pub fn answer(&self, query: &Query) -> Status {
        let mut status = self.head();
        if !matches!(query.listed, Listed::Page(Some(_), _)) {
            status.children = self.child_servers();
        }
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
                let resource = snapshot.map(|it| self.resource(it, query, &mut room));
                status.resources.extend(resource);
            }
            Listed::Page(after, limit) => {
                (status.resources, status.next_token) = self.page(after.clone(), *limit, query);
            }
        }
        if query.request.limits {
            status.limits = self.limit_figures();
        }
        if query.request.templates && !matches!(query.listed, Listed::Page(Some(_), _)) {
            let templates = self.node().look(|node, _| node.templates().clone());
            status.templates = templates.iter().map(|it| template_status(it)).collect();
        }
        status
    }

    /// Returns the status of the server as a whole.
    fn head(&self) -> Status {
        let rules = self.rules.borrow().clone();
        let etcd = self.etcd.borrow().clone();
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
        if let Some(etcd) = &mut status.etcd {
            etcd.candidates = self.candidates();
        }
        let security = self.security.get();
        let problems = security.map(|it| it.problems()).unwrap_or_default();
        Status {
            schema_version: STATUS_SCHEMA_VERSION,
            pages_address: self.pages.get().map(ToString::to_string),
            node: self.node_name().to_owned(),
            address: self.address().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            unready: self.readiness().err(),
            templates_source: self.templates_source.clone(),
            templates_problem: self.templates_problem.borrow().clone(),
            parent: self.parent.borrow().clone().map(model::parent),
            is_in_cycle: self.is_in_cycle(),
            states: Some(model::states(&self.sessions(), learning)),
            conflicts: self.conflicts(),
            rules: rules.documents.into_iter().map(model::rules).collect(),
            rules_problem: rules.problem,
            tls_problem: problems.into_iter().find_map(|(_, problem)| problem),
            is_exposed: security.is_some_and(|it| it.is_exposed),
            rule_decisions: self.rule_decisions(),
            ..status
        }
    }
}
