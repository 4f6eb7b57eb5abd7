//! The service of plans: what other terms would give each holder of each resource in use, before they are in force.
//!
//! A plan reads the demand of a resource twice, a few leases at a time as [any list](crate::status::listing): to divide,
//! and to say what each holder gets. In between, demand may change, so a plan of a busy resource is not of one moment.

mod change;

use std::collections::BTreeMap;
use std::sync::Arc;

use doorward_documents::parse_yaml;
use doorward_engine::claims::Demand;
use doorward_engine::division::Reason;
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::messages::{LeaseSnapshot, LeasesFrom, ResourceSnapshot};
use doorward_engine::node::Node;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::plan::{PlannedDivision, Terms};
use doorward_engine::templates::{AlgorithmKind, Template, Templates};
use doorward_proto::admin::v1::plans_server::Plans;
use doorward_proto::admin::v1::{PlanRequest, PlanResponse, PlannedChild, PlannedResource};
use prost::Message;
use tonic::{Request, Response, Status as RpcStatus};

use self::change::{Changes, holder};
use crate::methods::Answer;
use crate::rpc::convert::server_capacity::{planned_lease, planned_lease_message};
use crate::status::model::{self, millis};
use crate::status::{LEASES_MAX, ServerState};

/// Size of the resources on a page, in bytes: small enough to be encoded in a moment.
const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// Number of resources that are looked at for a page.
const LOOKED_AT_MAX: usize = 100_000;

/// Number of leases that are planned on a page, unless a single resource has more.
const PLANNED_MAX: usize = 200_000;

/// The service.
#[derive(Clone, Debug)]
pub struct PlansService(pub Arc<ServerState>);

#[tonic::async_trait]
impl Plans for PlansService {
    async fn plan(&self, request: Request<PlanRequest>) -> Answer<PlanResponse> {
        let request = request.into_inner();
        let planned = self.0.look(move |state| plan(state, &request)).await;
        planned.map(Response::new)
    }
}

/// Terms for the resources of a server.
enum PlannedTerms {
    Templates(Templates),
    /// Of the parent. None: it has no template any more.
    Leases(BTreeMap<ResourceId, Option<Terms>>),
}

/// A change of a resource: the glob of its template, and its terms. None: no template matches any more.
type Change = Option<(Option<String>, Terms)>;

impl PlannedTerms {
    fn of(request: &PlanRequest, has_parent: bool) -> Result<Self, RpcStatus> {
        let are_from_parent = !request.leases.is_empty() || !request.gone.is_empty();
        match (&request.templates, has_parent) {
            (Some(_), true) => Err(RpcStatus::failed_precondition(
                "templates count at the root, and this server has a parent; ask the root",
            )),
            (_, false) if are_from_parent => Err(RpcStatus::failed_precondition(
                "this server has no parent, which could lease it anything",
            )),
            (Some(document), false) => parse_yaml(document, "templates")
                .map(Self::Templates)
                .map_err(|error| RpcStatus::invalid_argument(error.to_string())),
            (None, true) if are_from_parent => Self::of_parent(request)
                .map(Self::Leases)
                .map_err(|problem| RpcStatus::invalid_argument(format!("leases: {problem}"))),
            (None, _) => Err(RpcStatus::invalid_argument(
                "there is nothing to plan; give templates, or leases of the parent",
            )),
        }
    }

    fn of_parent(request: &PlanRequest) -> Result<BTreeMap<ResourceId, Option<Terms>>, String> {
        let leases = request.leases.iter().map(|message| {
            let lease = planned_lease(message)?;
            let resource = lease.resource.clone();
            let terms = Terms::of_lease(lease).ok_or("one has no algorithm")?;
            Ok((resource, Some(terms)))
        });
        let gone = request.gone.iter().map(|id| {
            let id = ResourceId::new(id).map_err(|error| format!("gone {error}"))?;
            Ok((id, None))
        });
        leases.chain(gone).collect()
    }

    /// Returns the change of a resource. None: its terms stay.
    fn change(&self, resource: &ResourceSnapshot) -> Option<Change> {
        let templates = match self {
            Self::Templates(templates) => templates,
            Self::Leases(leases) => {
                let terms = leases.get(&resource.resource)?;
                return Some(terms.clone().map(|terms| (None, terms)));
            }
        };
        match (&resource.template, templates.find(&resource.resource)) {
            (None, None) => None,
            (Some(_), None) => Some(None),
            (Some(before), Some(planned)) if has_terms_of(before, planned) => None,
            (_, Some(planned)) => {
                let glob = planned.identifier_glob.clone();
                Some(Some((Some(glob), Terms::of_template(planned))))
            }
        }
    }
}

/// Whether two templates say the same of leases.
fn has_terms_of(one: &Template, other: &Template) -> bool {
    one.capacity == other.capacity
        && one.safe_capacity == other.safe_capacity
        && one.holder_bounds == other.holder_bounds
        && one.algorithm == other.algorithm
}

/// Plans what a request asks for.
fn plan(state: &ServerState, request: &PlanRequest) -> Result<PlanResponse, RpcStatus> {
    let look = |node: &Node, now| (node.mastership(now).clone(), node.unheard_for(now));
    let (mastership, unheard) = state.node().look(look);
    let mut answer = PlanResponse {
        is_master: mastership.is_master(),
        node: state.node_name().to_owned(),
        templates_source: state.templates_source.clone(),
        unheard_ms: unheard.map(millis),
        ..PlanResponse::default()
    };
    if let Mastership::Elsewhere { master_address, .. } = mastership {
        answer.master_address = Some(master_address);
    }
    if !answer.is_master {
        return Ok(answer);
    }
    let terms = PlannedTerms::of(request, state.parent.borrow().is_some())?;
    let only = id("resource_id", &request.resource_id)?;
    let after = id("token", &request.token)?;
    let children = state.child_servers();
    let gone = children.iter().filter(|it| it.state == "gone");
    answer.gone_children = gone.map(|it| it.child.clone()).collect();
    let addresses = (children.into_iter()).filter_map(|it| Some((it.child, it.address?)));
    let planner = Planner {
        state,
        request,
        holders_from: holders_from(&request.holders_token)?,
        addresses: addresses.collect(),
    };
    let one = |id: &ResourceId| {
        let node = state.node();
        node.look(|node, now| node.resource_snapshot(id, now))
    };
    let mut last = after.as_ref().map(ResourceId::to_string);
    let resources: Box<dyn Iterator<Item = ResourceSnapshot>> = match (&only, &terms) {
        (Some(only), _) => Box::new(one(only).into_iter()),
        (None, PlannedTerms::Leases(leases)) => {
            let rest = leases.keys().filter(|id| Some(*id) > after.as_ref());
            Box::new(rest.filter_map(one))
        }
        (None, PlannedTerms::Templates(_)) => {
            Box::new(state.snapshots_after(after, LOOKED_AT_MAX + 1))
        }
    };
    let (mut bytes, mut leases) = (0, 0);
    for (looked_at, resource) in resources.enumerate() {
        if looked_at == LOOKED_AT_MAX || bytes > PAGE_BYTES_MAX || leases > PLANNED_MAX {
            answer.next_token = last;
            break;
        }
        last = Some(resource.resource.to_string());
        let Some(change) = terms.change(&resource) else {
            answer.unchanged_count += 1;
            continue;
        };
        leases += resource.leases;
        let planned = planner.planned(resource, change);
        bytes += planned.encoded_len();
        answer.resources.push(planned);
    }
    Ok(answer)
}

/// Reads an id. None: the text is empty.
fn id(name: &str, text: &str) -> Result<Option<ResourceId>, RpcStatus> {
    let id = (!text.is_empty()).then(|| ResourceId::new(text));
    let id = id.transpose();
    id.map_err(|error| RpcStatus::invalid_argument(format!("{name} {error}")))
}

/// Plans for one resource after the other.
struct Planner<'a> {
    state: &'a ServerState,
    request: &'a PlanRequest,
    holders_from: LeasesFrom,
    /// Of child servers.
    addresses: BTreeMap<String, String>,
}

impl Planner<'_> {
    fn planned(&self, resource: ResourceSnapshot, change: Change) -> PlannedResource {
        let (id, lease_length) = (resource.resource.clone(), resource.lease_length);
        let is_budget = resource.kind == AlgorithmKind::Budget;
        let mut planned = head(resource, change.as_ref());
        if is_budget {
            // A change takes nothing back.
            planned.planned = planned.granted;
            return planned;
        }
        let division = change.map(|(_, terms)| self.state.divided(&id, terms));
        let division = division.as_ref();
        let mut changes = Changes::default();
        for (leases, _, now) in self.state.lease_looks(&id, LeasesFrom::Start, "") {
            for lease in &leases {
                let share = share(division, lease);
                planned.planned += share;
                let may_want_more = division.is_some_and(|it| it.lets_grow(&lease.demand));
                planned.cut_wants_count += u64::from(lease.wants_more && may_want_more);
                if let Demand::Server(_) = lease.demand {
                    let child = self.child(&id, lease, share, division);
                    planned.children.push(child);
                    changes.add_loss(lease, share, now);
                } else {
                    changes.add(lease, share, now, || why(division, lease));
                }
            }
        }
        changes.write_to(&mut planned, lease_length);
        self.list_clients(&id, division, &mut planned);
        planned
    }

    fn child(
        &self,
        resource: &ResourceId,
        lease: &LeaseSnapshot,
        share: f64,
        division: Option<&PlannedDivision>,
    ) -> PlannedChild {
        let child = lease.holder.name.as_str();
        let message = division.and_then(|it| it.lease_for(resource, &lease.demand));
        PlannedChild {
            child: child.to_owned(),
            clients_count: lease.demand.clients(),
            wants: lease.wants(),
            granted: lease.granted,
            planned: share,
            why: why(division, lease),
            lease: message.map(planned_lease_message).unwrap_or_default(),
            address: self.addresses.get(child).cloned(),
            counted_clients: division.map_or(0.0, |it| it.counted_clients(&lease.demand)),
        }
    }

    /// Lists the clients that the request asks for.
    fn list_clients(
        &self,
        resource: &ResourceId,
        division: Option<&PlannedDivision>,
        planned: &mut PlannedResource,
    ) {
        let room = usize::try_from(self.request.holders_max).unwrap_or(LEASES_MAX);
        if room == 0 {
            return;
        }
        let (from, text) = (self.holders_from.clone(), &self.request.holder);
        for (leases, next, _) in self.state.lease_looks(resource, from, text) {
            let is_client = |it: &&LeaseSnapshot| matches!(it.demand, Demand::Client { .. });
            let clients = leases.iter().filter(is_client);
            let clients = clients.map(|it| holder(it, share(division, it), why(division, it)));
            planned.holders.extend(clients);
            if planned.holders.len() >= room.min(LEASES_MAX) {
                planned.next_holders_token = next.as_ref().map(holders_token);
                return;
            }
        }
    }
}

/// Returns the part of the answer that does not depend on single holders.
fn head(resource: ResourceSnapshot, change: Option<&(Option<String>, Terms)>) -> PlannedResource {
    let learning_remaining_ms = resource.learning_remaining.map(millis);
    let now = model::resource(resource);
    let terms = change.map(|(_, terms)| terms);
    PlannedResource {
        planned_template: change.and_then(|(glob, _)| glob.clone()),
        planned_algorithm: terms.map(|terms| terms.algorithm().kind.as_str().to_owned()),
        planned_capacity: terms.map(Terms::capacity),
        resource_id: now.resource_id,
        template: now.template,
        algorithm: now.algorithm.unwrap_or_default(),
        capacity: now.capacity,
        wants: now.wants,
        granted: now.granted,
        reserved: now.reserved,
        clients_count: now.clients_count,
        learning_remaining_ms,
        ..PlannedResource::default()
    }
}

/// Returns what a holder would have. Without a template, its lease runs down.
fn share(division: Option<&PlannedDivision>, lease: &LeaseSnapshot) -> f64 {
    division.map_or(0.0, |it| it.share_of(&lease.demand).get())
}

fn why(division: Option<&PlannedDivision>, lease: &LeaseSnapshot) -> String {
    let gone = || Reason::TemplateGone;
    let reason = division.map_or_else(gone, |it| it.reason_for(&lease.demand));
    reason.to_string()
}

/// Mark of a token that names a child server. Other tokens are numbers.
const AFTER: char = '/';

fn holders_token(from: &LeasesFrom) -> String {
    match from {
        LeasesFrom::Start => String::new(),
        LeasesFrom::After(name) => format!("{AFTER}{name}"),
        LeasesFrom::Place(place) => place.to_string(),
    }
}

fn holders_from(token: &str) -> Result<LeasesFrom, RpcStatus> {
    let from = match (token, token.strip_prefix(AFTER)) {
        ("", _) => Some(LeasesFrom::Start),
        (_, Some(name)) => HolderName::new(name).ok().map(LeasesFrom::After),
        (place, None) => place.parse().ok().map(LeasesFrom::Place),
    };
    from.ok_or_else(|| RpcStatus::invalid_argument("holders_token is not of an answer".to_owned()))
}
