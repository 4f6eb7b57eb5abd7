//! The service of plans: what other terms would give each holder of each resource in use, before they are in force.
//!
//! A plan reads the demand of a resource twice, a few leases at a time as [any list](crate::status::listing): to divide, and to
//! say what each holder gets. In between, demand may change, so a plan of a busy resource is not of one moment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorward_documents::parse_yaml;
use doorward_engine::claims::Demand;
use doorward_engine::division::Reason;
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::messages::{LeaseSnapshot, LeasesFrom, ResourceSnapshot};
use doorward_engine::node::mastership::Mastership;
use doorward_engine::plan::{Plan, PlannedDivision, Terms};
use doorward_engine::templates::{Template, Templates};
use doorward_engine::time::Time;
use doorward_proto::admin::v1::plans_server::Plans;
use doorward_proto::admin::v1::{
    PlanRequest, PlanResponse, PlannedChild, PlannedHolder, PlannedResource,
};
use prost::Message;
use tonic::{Request, Response, Status as RpcStatus};

use crate::rpc::convert::server_capacity::{planned_lease, planned_lease_message};
use crate::status::model::{self, count, millis};
use crate::status::{LEASES_MAX, ServerState};

/// Holders listed of those that lose or gain most.
const EXTREMES_MAX: usize = 10;

/// Size of the resources on a page, in bytes: small enough to be encoded in a moment.
const PAGE_BYTES_MAX: usize = 1024 * 1024;

/// Number of resources that are looked at for a page.
const LOOKED_AT_MAX: usize = 100_000;

/// Part of an amount that is a rounding.
const ROUNDING: f64 = 1e-9;

/// The service.
#[derive(Clone, Debug)]
pub(super) struct PlansService(pub(super) Arc<ServerState>);

#[tonic::async_trait]
impl Plans for PlansService {
    async fn plan(
        &self,
        request: Request<PlanRequest>,
    ) -> Result<Response<PlanResponse>, RpcStatus> {
        let request = request.into_inner();
        let planned = self.0.look(move |state| plan(state, &request)).await;
        planned.map(Response::new).map_err(|refusal| match refusal {
            PlanRefusal::Invalid(problem) => RpcStatus::invalid_argument(problem),
            PlanRefusal::WrongServer(problem) => RpcStatus::failed_precondition(problem),
        })
    }
}

/// Why there is no plan.
#[derive(Debug)]
enum PlanRefusal {
    /// The request is invalid.
    Invalid(String),
    /// Another server knows.
    WrongServer(&'static str),
}

/// Terms for the resources of a server.
enum PlannedTerms {
    Templates(Templates),
    Leases(BTreeMap<ResourceId, Terms>),
}

/// A change of a resource.
enum Change {
    /// The terms stay.
    None,
    /// No template matches any more.
    TemplateGone,
    /// The glob of the template, and its terms.
    Terms(Option<String>, Terms),
}

impl PlannedTerms {
    fn of(request: &PlanRequest) -> Result<Self, PlanRefusal> {
        if let Some(document) = &request.templates {
            let templates = parse_yaml(document, "templates");
            let templates = templates.map_err(|error| PlanRefusal::Invalid(error.to_string()))?;
            return Ok(Self::Templates(templates));
        }
        let leases = request.leases.iter().map(|message| {
            let lease = planned_lease(message)?;
            let resource = lease.resource.clone();
            let terms = Terms::of_lease(lease).ok_or("has no algorithm")?;
            Ok((resource, terms))
        });
        let leases: Result<_, String> = leases.collect();
        let problem = |problem| PlanRefusal::Invalid(format!("leases: {problem}"));
        leases.map(Self::Leases).map_err(problem)
    }

    fn change(&self, resource: &ResourceSnapshot) -> Change {
        let templates = match self {
            Self::Templates(templates) => templates,
            Self::Leases(leases) => {
                let terms = leases.get(&resource.resource).cloned();
                return terms.map_or(Change::None, |terms| Change::Terms(None, terms));
            }
        };
        let Some(planned) = templates.find(&resource.resource) else {
            let is_gone = resource.template.is_none();
            return if is_gone {
                Change::None
            } else {
                Change::TemplateGone
            };
        };
        let before = resource.template.as_deref();
        if before.is_some_and(|before| has_terms_of(before, planned)) {
            return Change::None;
        }
        let terms = Terms::of_template(planned);
        Change::Terms(Some(planned.identifier_glob.clone()), terms)
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
///
/// # Errors
///
/// If the request is invalid, or for another server.
fn plan(state: &ServerState, request: &PlanRequest) -> Result<PlanResponse, PlanRefusal> {
    let mastership = state.node().look(|node, now| node.mastership(now).clone());
    let mut answer = PlanResponse {
        is_master: mastership.is_master(),
        node: state.node_name().to_owned(),
        templates_source: state.templates_source().to_owned(),
        ..PlanResponse::default()
    };
    if let Mastership::Elsewhere { master_address, .. } = mastership {
        answer.master_address = Some(master_address);
    }
    let has_parent = state.parent_news().is_some();
    if has_parent && request.templates.is_some() {
        let problem = "templates count at the root, and this server has a parent; ask the root";
        return Err(PlanRefusal::WrongServer(problem));
    }
    if !has_parent && !request.leases.is_empty() {
        let problem = "this server has no parent, which could lease it anything";
        return Err(PlanRefusal::WrongServer(problem));
    }
    let terms = PlannedTerms::of(request)?;
    let id = |name: &str, text: &str| {
        let id = (!text.is_empty()).then(|| ResourceId::new(text));
        let id = id.transpose();
        id.map_err(|error| PlanRefusal::Invalid(format!("{name} {error}")))
    };
    let (only, after) = (
        id("resource_id", &request.resource_id)?,
        id("token", &request.token)?,
    );
    let holders_from = holders_from(&request.holders_token)?;
    if !answer.is_master {
        return Ok(answer);
    }
    let planner = Planner {
        state,
        request,
        holders_from,
        addresses: addresses(state),
    };
    let (mut bytes, mut last) = (0, after.as_ref().map(ResourceId::to_string));
    let one = only.map(|id| {
        state
            .node()
            .look(|node, now| node.resource_snapshot(&id, now))
    });
    let all = one
        .is_none()
        .then(|| state.snapshots_after(after, LOOKED_AT_MAX + 1));
    let resources = one.into_iter().flatten().chain(all.into_iter().flatten());
    for (looked_at, resource) in resources.enumerate() {
        if looked_at == LOOKED_AT_MAX || bytes > PAGE_BYTES_MAX {
            answer.next_token = last;
            break;
        }
        last = Some(resource.resource.to_string());
        let (glob, terms) = match terms.change(&resource) {
            Change::None => {
                answer.unchanged_count += 1;
                continue;
            }
            Change::TemplateGone => (None, None),
            Change::Terms(glob, terms) => (glob, Some(terms)),
        };
        let resource = planner.planned(resource, glob, terms);
        bytes += resource.encoded_len();
        answer.resources.push(resource);
    }
    Ok(answer)
}

/// Returns the addresses of child servers, as far as they are known.
fn addresses(state: &ServerState) -> BTreeMap<String, String> {
    let children = state.child_servers().into_iter();
    children
        .filter_map(|it| Some((it.child, it.address?)))
        .collect()
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
    fn planned(
        &self,
        resource: ResourceSnapshot,
        glob: Option<String>,
        terms: Option<Terms>,
    ) -> PlannedResource {
        let (state, request) = (self.state, self.request);
        let id = resource.resource.clone();
        let mut planned = head(resource, glob, terms.as_ref());
        let division = terms.map(|terms| {
            let mut plan = Plan::new(terms);
            for (leases, ..) in state.lease_looks(&id, LeasesFrom::Start, "") {
                leases.iter().for_each(|lease| plan.add(&lease.demand));
            }
            plan.divide()
        });
        let mut change = ChangeOfClients::default();
        for (leases, _, now) in state.lease_looks(&id, LeasesFrom::Start, "") {
            for lease in &leases {
                let amount = share(division.as_ref(), lease);
                planned.planned += amount;
                if let Demand::Server(_) = lease.demand {
                    let child = child(&id, lease, amount, division.as_ref());
                    let address = self.addresses.get(&child.child).cloned();
                    planned.children.push(PlannedChild { address, ..child });
                    change.note_end(lease, amount, now);
                } else {
                    change.add(lease, amount, now, || {
                        holder(lease, amount, division.as_ref())
                    });
                }
            }
        }
        let room = usize::try_from(request.holders_max)
            .unwrap_or(usize::MAX)
            .min(LEASES_MAX);
        let pages =
            (room > 0).then(|| state.lease_looks(&id, self.holders_from.clone(), &request.holder));
        for (leases, next, _) in pages.into_iter().flatten() {
            if planned.holders.len() >= room {
                break;
            }
            let is_listed = |lease: &&LeaseSnapshot| matches!(lease.demand, Demand::Client { .. });
            let listed = leases.iter().filter(is_listed);
            let listed = listed
                .map(|lease| holder(lease, share(division.as_ref(), lease), division.as_ref()));
            planned.holders.extend(listed);
            planned.next_holders_token = next.as_ref().map(holders_token);
        }
        change.write_to(&mut planned);
        planned
    }
}

/// Returns the part of the answer that does not depend on single holders.
fn head(
    resource: ResourceSnapshot,
    glob: Option<String>,
    terms: Option<&Terms>,
) -> PlannedResource {
    let learning_remaining_ms = resource.learning_remaining.map(millis);
    let now = model::resource(resource);
    PlannedResource {
        planned_template: glob,
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
    division.map_or(0.0, |it| it.share_of(&lease.demand).amount.get())
}

fn why(division: Option<&PlannedDivision>, lease: &LeaseSnapshot) -> String {
    division.map_or_else(
        || Reason::TemplateGone.to_string(),
        |it| it.share_of(&lease.demand).reason.to_string(),
    )
}

fn holder(
    lease: &LeaseSnapshot,
    planned: f64,
    division: Option<&PlannedDivision>,
) -> PlannedHolder {
    PlannedHolder {
        holder: lease.holder.name.to_string(),
        wants: lease.wants(),
        granted: lease.granted,
        planned,
        why: why(division, lease),
    }
}

fn child(
    resource: &ResourceId,
    lease: &LeaseSnapshot,
    planned: f64,
    division: Option<&PlannedDivision>,
) -> PlannedChild {
    let message = division.and_then(|it| it.lease_for(resource, &lease.demand));
    PlannedChild {
        child: lease.holder.name.to_string(),
        clients_count: lease.demand.clients(),
        wants: lease.wants(),
        granted: lease.granted,
        planned,
        why: why(division, lease),
        lease: message.map(planned_lease_message).unwrap_or_default(),
        address: None,
    }
}

/// What changes for the clients of a server.
#[derive(Default)]
struct ChangeOfClients {
    losing: Extremes,
    gaining: Extremes,
    same: usize,
    cut_wants: usize,
    /// Latest end of a lease of those that lose, child servers included, from now.
    shrinks_max: Option<Duration>,
}

/// Clients that lose, or those that gain.
#[derive(Default)]
struct Extremes {
    count: usize,
    /// Longest refresh interval of them.
    interval: Option<Duration>,
    /// Those that change most, and by how much, in falling order.
    most: Vec<(f64, PlannedHolder)>,
}

impl ChangeOfClients {
    fn add(
        &mut self,
        lease: &LeaseSnapshot,
        planned: f64,
        now: Time,
        shown: impl FnOnce() -> PlannedHolder,
    ) {
        self.cut_wants += usize::from(lease.wants_more);
        self.note_end(lease, planned, now);
        match change(lease, planned) {
            0.0 => self.same += 1,
            less if less < 0.0 => self.losing.add(-less, lease, shown),
            more => self.gaining.add(more, lease, shown),
        }
    }

    /// Notes until when a holder that loses may go on as it is.
    fn note_end(&mut self, lease: &LeaseSnapshot, planned: f64, now: Time) {
        if change(lease, planned) < 0.0 {
            let lasts = lease.reserved_until.since(now);
            self.shrinks_max = self.shrinks_max.max(Some(lasts));
        }
    }

    fn write_to(self, planned: &mut PlannedResource) {
        planned.losing_count = count(self.losing.count);
        planned.gaining_count = count(self.gaining.count);
        planned.same_count = count(self.same);
        planned.cut_wants_count = count(self.cut_wants);
        planned.shrinks_in_ms = self.losing.interval.map(millis);
        planned.grows_in_ms = self.gaining.interval.map(millis);
        planned.shrinks_max_ms = self.shrinks_max.map(millis);
        let holders = |it: Extremes| it.most.into_iter().map(|(_, holder)| holder).collect();
        planned.losing = holders(self.losing);
        planned.gaining = holders(self.gaining);
    }
}

/// Returns by how much the amount of a holder changes. 0 for roundings.
fn change(lease: &LeaseSnapshot, planned: f64) -> f64 {
    let change = planned - lease.granted;
    match change.abs() <= ROUNDING * planned.max(lease.granted) {
        true => 0.0,
        false => change,
    }
}

impl Extremes {
    fn add(&mut self, by: f64, lease: &LeaseSnapshot, shown: impl FnOnce() -> PlannedHolder) {
        self.count += 1;
        self.interval = self.interval.max(Some(lease.refresh_interval));
        let place = self.most.partition_point(|(most, _)| *most >= by);
        if place < EXTREMES_MAX {
            self.most.insert(place, (by, shown()));
            self.most.truncate(EXTREMES_MAX);
        }
    }
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

fn holders_from(token: &str) -> Result<LeasesFrom, PlanRefusal> {
    let from = match (token, token.strip_prefix(AFTER)) {
        ("", _) => Some(LeasesFrom::Start),
        (_, Some(name)) => HolderName::new(name).ok().map(LeasesFrom::After),
        (place, None) => place.parse().ok().map(LeasesFrom::Place),
    };
    from.ok_or_else(|| PlanRefusal::Invalid("holders_token is not of an answer".to_owned()))
}
