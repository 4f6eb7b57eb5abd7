//! The plan of a change, through the tree.
//!
//! The root plans for its own holders. A child server among them has a planned lease, which it is asked about in turn:
//! it names its clients, and has children of its own.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use doorward_etcd::DocumentPlace;
use doorward_proto::admin::v1::{
    GetStatusRequest, PlanRequest, PlanResponse, PlannedChild, PlannedHolder, PlannedResource,
};
use serde::Serialize;

use crate::caller::MasterCaller;
use crate::caller::named_servers::NamedServers;
use crate::common::Common;
use crate::documents::Store;
use crate::documents::flags::Search;
use crate::failure::Failure;
use crate::granted::span;

/// The node that decides, unless --server names one: the default name of a node.
const ROOT: &str = "etcd:///root";

/// Resources whose clients are named, through the tree.
pub(super) const NAMED_MAX: usize = 50;

/// Pages of an answer that are read.
const PAGES_MAX: usize = 1_000;

/// Clients on a page, and those of one server that are listed.
const CLIENTS_OF_PAGE: u32 = 10_000;
const CLIENTS_MAX: usize = 100_000;

/// Clients that are named of those that lose most, and of those that gain most.
const EXTREMES_MAX: usize = 10;

/// Server that made the plan.
#[derive(Clone, Debug)]
pub(super) struct PlannedBy {
    node: String,
    /// Where its templates are from, as it says itself.
    pub(super) source: String,
}

impl PlannedBy {
    /// Whether it goes by the templates of a store. Of a file only the name is compared: the path
    /// may lead there from elsewhere.
    fn goes_by(&self, store: &Store<'_>) -> bool {
        let [own, other] = [self.source.as_str(), store.name()].map(DocumentPlace::from_str);
        match (own, other) {
            (Ok(DocumentPlace::File(own)), Ok(DocumentPlace::File(other))) => {
                own.file_name() == other.file_name()
            }
            (own, other) => own == other,
        }
    }

    /// Returns where the truth is, if the server does not go by the templates of a store.
    pub(super) fn elsewhere(&self, store: &Store<'_>) -> Option<String> {
        let (source, place) = (&self.source, store.name());
        (!self.goes_by(store)).then(|| {
            format!(
                "{self} does not read {place}: a change here changes nothing there. Change {source}"
            )
        })
    }
}

impl fmt::Display for PlannedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, source } = self;
        write!(f, "{node} (templates from {source})")
    }
}

/// Plan of a change for all resources in use.
#[derive(Debug)]
pub(super) struct TreePlan {
    pub(super) who: PlannedBy,
    /// Resources whose terms change; those of which most is lost come first.
    pub(super) resources: Vec<ResourcePlan>,
    /// Number of resources whose terms stay.
    pub(super) unchanged: u64,
    /// Time for which holders may be missing that have not asked this master yet. None: all have.
    pub(super) unheard_ms: Option<u64>,
    /// Child servers that are gone.
    pub(super) gone: Vec<String>,
    /// The resource that was searched for, with its clients, if it is in use and its terms change.
    pub(super) found: Option<ResourcePlan>,
}

impl TreePlan {
    /// Returns why the plan may miss holders. None: it has all.
    pub(super) fn missing(&self) -> Option<String> {
        let who = &self.who;
        let lately = "has begun lately: holders that have not asked it yet are missing, for up to";
        let unheard = self.unheard_ms;
        let unheard = unheard.map(|left| format!("{who} {lately} {}", span(left)));
        let gone = self.gone.iter();
        let gone = gone.map(|it| format!("{it} is gone: its clients are not known"));
        let all: Vec<String> = unheard.into_iter().chain(gone).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// Plan for a resource. JSON has the field names of `admin.proto`.
#[derive(Debug, Default, Serialize)]
pub(super) struct ResourcePlan {
    /// The root's, without its clients. Numbers and times of clients are those of all servers.
    #[serde(flatten)]
    pub(super) root: PlannedResource,
    /// The clients that lose most, first. In JSON these lists replace the empty ones of the root.
    pub(super) losing: Vec<NamedClient>,
    /// The clients that gain most, first.
    pub(super) gaining: Vec<NamedClient>,
    /// The clients that were searched for.
    pub(super) holders: Vec<NamedClient>,
    /// Child servers whose clients are not known, and why.
    pub(super) unnamed: Vec<(String, String)>,
    /// Child servers that will ask for less than now, since `subclients_max` cuts the demand of their own children.
    pub(super) estimated: Vec<String>,
    /// Time until the plan holds, if all clients ask as they should: those that lose first, then those that gain.
    /// Absent: it does not.
    pub(super) holds_in_ms: Option<u64>,
    /// The longest that it may take.
    pub(super) holds_max_ms: Option<u64>,
}

/// A client of a server, and what it would have.
#[derive(Clone, Debug, Serialize)]
pub(super) struct NamedClient {
    pub(super) server: String,
    #[serde(flatten)]
    pub(super) client: PlannedHolder,
}

impl ResourcePlan {
    fn new(server: &str, mut root: PlannedResource) -> Self {
        let mut plan = Self::default();
        plan.name(server, &mut root);
        Self { root, ..plan }
    }

    /// Adds the clients of a server, and takes them out of its answer.
    fn add(&mut self, server: &str, plan: &mut PlannedResource) {
        let all = &mut self.root;
        for (sum, count) in [
            (&mut all.losing_count, plan.losing_count),
            (&mut all.gaining_count, plan.gaining_count),
            (&mut all.same_count, plan.same_count),
            (&mut all.cut_wants_count, plan.cut_wants_count),
        ] {
            *sum = sum.saturating_add(count);
        }
        for (longest, of_server) in [
            (&mut all.shrinks_in_ms, plan.shrinks_in_ms),
            (&mut all.grows_in_ms, plan.grows_in_ms),
            (&mut all.shrinks_max_ms, plan.shrinks_max_ms),
            (&mut all.learning_remaining_ms, plan.learning_remaining_ms),
        ] {
            *longest = (*longest).max(of_server);
        }
        if plan.children.iter().any(is_cut) {
            self.estimated.push(server.to_owned());
        }
        self.name(server, plan);
    }

    fn name(&mut self, server: &str, plan: &mut PlannedResource) {
        for (known, of_server) in [
            (&mut self.losing, &mut plan.losing),
            (&mut self.gaining, &mut plan.gaining),
        ] {
            known.extend(named(server, of_server));
            known.sort_by(|a, b| b.by().total_cmp(&a.by()));
            known.truncate(EXTREMES_MAX);
        }
        self.holders.extend(named(server, &mut plan.holders));
    }

    /// Sorts the listed clients, of which one that came back meanwhile may be there twice, and works out the times.
    fn finish(&mut self) {
        let name = |it: &NamedClient| (it.server.clone(), it.client.holder.clone());
        self.holders.sort_by_cached_key(name);
        self.holders.dedup_by_key(|it| name(it));
        self.holders.sort_by(|a, b| b.by().total_cmp(&a.by()));
        let all = &self.root;
        if all.planned_algorithm.is_some() && all.losing_count.max(all.gaining_count) > 0 {
            let learning = all.learning_remaining_ms;
            let learning = learning.filter(|_| all.grows_in_ms.is_some());
            let shrinks = all.shrinks_in_ms.max(learning).unwrap_or_default();
            self.holds_in_ms = Some(shrinks.saturating_add(all.grows_in_ms.unwrap_or_default()));
        }
        let holds = self.holds_in_ms.filter(|_| all.shrinks_max_ms.is_some());
        self.holds_max_ms = all.shrinks_max_ms.max(holds);
    }
}

impl NamedClient {
    /// Returns by how much its amount changes.
    fn by(&self) -> f64 {
        (self.client.planned - self.client.granted).abs()
    }
}

/// Whether `subclients_max` cuts the planned demand of a child server.
pub(super) fn is_cut(child: &PlannedChild) -> bool {
    child.counted_clients > 0.0 && child.counted_clients < child.clients_count
}

fn named(server: &str, clients: &mut Vec<PlannedHolder>) -> impl Iterator<Item = NamedClient> {
    let clients = std::mem::take(clients).into_iter();
    clients.map(|client| NamedClient {
        server: server.to_owned(),
        client,
    })
}

/// Returns a caller of the root, and whether etcd says where that is.
fn root(common: &Common) -> Result<(MasterCaller, bool), Failure> {
    let mut common = common.clone();
    let is_looked_up = common.server.is_empty() && matches!(common.etcd(), Ok(Some(_)));
    if is_looked_up {
        common.server = vec![ROOT.to_owned()];
    }
    Ok((MasterCaller::new(&common)?, is_looked_up))
}

/// Returns where the truth is, if the root does not read the templates of a store.
pub(super) async fn root_elsewhere(store: &Store<'_>) -> Option<String> {
    let (caller, _) = root(store.common).ok()?;
    let request = GetStatusRequest {
        without_resources: true,
        ..GetStatusRequest::default()
    };
    let status = caller.status(request, false).await.ok()?;
    let who = PlannedBy {
        node: status.node,
        source: status.templates_source,
    };
    who.elsewhere(store).filter(|_| status.parent.is_none())
}

/// Returns the plan of templates.
///
/// # Errors
///
/// If there is none, with the reason.
pub(super) async fn ask(
    common: &Common,
    templates: &str,
    search: &Search,
) -> Result<TreePlan, Failure> {
    let (caller, is_root_looked_up) = root(common)?;
    let mut request = PlanRequest {
        templates: Some(templates.to_owned()),
        ..PlanRequest::default()
    };
    let plan = through_tree(&caller, request.clone()).await;
    let (answer, resources) = plan.map_err(|failure| {
        let problem = failure.to_string();
        if !is_root_looked_up || problem.contains("--server") {
            return failure;
        }
        Failure::Unreachable(format!("{problem}. --server names the server to ask"))
    })?;
    let mut found = None;
    if let Some(resource) = &search.resource {
        request.resource_id.clone_from(resource);
        request.holder = search.client.clone().unwrap_or_default();
        request.holders_max = CLIENTS_OF_PAGE;
        found = through_tree(&caller, request).await?.1.pop();
    }
    Ok(TreePlan {
        who: PlannedBy {
            node: answer.node,
            source: answer.templates_source,
        },
        resources,
        unchanged: answer.unchanged_count,
        unheard_ms: answer.unheard_ms,
        gone: answer.gone_children,
        found,
    })
}

/// Asks the root, and then the servers below it.
async fn through_tree(
    root: &MasterCaller,
    request: PlanRequest,
) -> Result<(PlanResponse, Vec<ResourcePlan>), Failure> {
    let mut answer = pages(root.clone(), request.clone()).await?;
    let resources = std::mem::take(&mut answer.resources).into_iter();
    let resources = resources.map(|root| ResourcePlan::new(&answer.node, root));
    let mut resources: Vec<ResourcePlan> = resources.collect();
    resources.sort_by(|a, b| b.root.lost.total_cmp(&a.root.lost));
    let named = NAMED_MAX.min(resources.len());
    let (named, others) = resources.split_at_mut(named);
    for plan in others {
        let reason = format!("only {NAMED_MAX} resources are followed; --resource follows one");
        let children = std::mem::take(&mut plan.root.children).into_iter();
        plan.unnamed = children.map(|it| (it.child, reason.clone())).collect();
    }
    let gone = &mut answer.gone_children;
    name_clients((root, &answer.node), named, &request, gone).await;
    resources.iter_mut().for_each(ResourcePlan::finish);
    Ok((answer, resources))
}

/// Reads all pages of the master's plan.
async fn pages(caller: MasterCaller, mut request: PlanRequest) -> Result<PlanResponse, Failure> {
    let mut all = page(&caller, &request).await?;
    for _page in 0..PAGES_MAX {
        let Some(token) = all.next_token.take() else {
            break;
        };
        request.token = token;
        let more = page(&caller, &request).await?;
        all.unchanged_count = all.unchanged_count.saturating_add(more.unchanged_count);
        all.resources.extend(more.resources);
        all.next_token = more.next_token;
    }
    if request.holders_max > 0
        && let [only] = all.resources.as_mut_slice()
    {
        // Below the root, the lease names the resource.
        request.resource_id.clone_from(&only.resource_id);
        for _page in 0..PAGES_MAX {
            let Some(token) = only.next_holders_token.take() else {
                break;
            };
            request.holders_token = token;
            let Some(more) = page(&caller, &request).await?.resources.pop() else {
                break;
            };
            only.holders.extend(more.holders);
            only.next_holders_token = more.next_holders_token;
            if only.holders.len() >= CLIENTS_MAX {
                break;
            }
        }
    }
    Ok(all)
}

/// Reads a page of the master's plan.
async fn page(caller: &MasterCaller, request: &PlanRequest) -> Result<PlanResponse, Failure> {
    let answer = caller.plan(request).await?;
    let problem = || format!("{} is not the master, and knows of none", answer.node);
    match answer.is_master {
        true => Ok(answer),
        false => Err(Failure::No(problem())),
    }
}

/// Planned leases of a child server.
#[derive(Default)]
struct Below {
    address: Option<String>,
    leases: Vec<Vec<u8>>,
    /// Resources whose template goes.
    gone: Vec<String>,
    /// Places of the resources.
    places: Vec<usize>,
}

/// Asks the servers below the root, level by level, about the resources. Adds child servers of theirs that are `gone`.
async fn name_clients(
    (root, node): (&MasterCaller, &str),
    resources: &mut [ResourcePlan],
    request: &PlanRequest,
    gone: &mut Vec<String>,
) {
    let mut servers = NamedServers::below(root, node);
    let of_root = resources.iter_mut().map(|plan| &mut plan.root);
    let mut level = below(of_root.enumerate());
    while !level.is_empty() {
        let questions = level.iter_mut().map(|(child, below)| {
            let request = PlanRequest {
                templates: None,
                resource_id: String::new(),
                leases: std::mem::take(&mut below.leases),
                gone: std::mem::take(&mut below.gone),
                ..request.clone()
            };
            (child.clone(), below.address.take(), request)
        });
        let answers = servers.ask(questions, pages, |plan| &plan.node).await;
        let mut found = Vec::new();
        for ((child, Below { places, .. }), answer) in level.into_iter().zip(answers) {
            match answer {
                Ok(mut answer) => {
                    gone.append(&mut answer.gone_children);
                    found.extend(add(resources, &places, &child, answer));
                }
                Err(problem) => {
                    for place in places {
                        if let Some(plan) = resources.get_mut(place) {
                            plan.unnamed.push((child.clone(), problem.clone()));
                        }
                    }
                }
            }
        }
        level = below(found.iter_mut().map(|(place, plan)| (*place, plan)));
    }
}

/// Adds a child's answer to the plans at these places, and returns it by place.
fn add(
    resources: &mut [ResourcePlan],
    places: &[usize],
    child: &str,
    answer: PlanResponse,
) -> Vec<(usize, PlannedResource)> {
    let mut found = Vec::new();
    for mut of_child in answer.resources {
        let is_meant = |place: &&usize| {
            let plan = resources.get(**place);
            plan.is_some_and(|plan| plan.root.resource_id == of_child.resource_id)
        };
        if let Some(place) = places.iter().find(is_meant).copied()
            && let Some(plan) = resources.get_mut(place)
        {
            plan.add(child, &mut of_child);
            found.push((place, of_child));
        }
    }
    found
}

/// Returns the child servers in the answers of a level, and what is planned for each, with the leases out of these
/// answers.
fn below<'a>(
    plans: impl Iterator<Item = (usize, &'a mut PlannedResource)>,
) -> BTreeMap<String, Below> {
    let mut below: BTreeMap<String, Below> = BTreeMap::new();
    for (place, plan) in plans {
        for child in &mut plan.children {
            let known = below.entry(child.child.clone()).or_default();
            known.address = child.address.clone().or(known.address.take());
            known.places.push(place);
            match std::mem::take(&mut child.lease) {
                lease if lease.is_empty() => known.gone.push(plan.resource_id.clone()),
                lease => known.leases.push(lease),
            }
        }
    }
    below
}
