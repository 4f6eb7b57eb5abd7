//! The plan of a change, through the tree.
//!
//! The root plans for its own holders. A child server among them has a planned lease, which it is asked about in turn:
//! it names its clients, and has children of its own.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use doorward_etcd::DocumentPlace;
use doorward_proto::admin::v1::{
    GetStatusRequest, PlanRequest, PlanResponse, PlannedHolder, PlannedResource,
};

use crate::caller::MasterCaller;
use crate::common::Common;
use crate::documents::Store;
use crate::documents::flags::Search;
use crate::failure::Failure;

/// The node that decides, unless --server names one: the default name of a node.
const ROOT: &str = "etcd:///root";

/// Resources whose clients are named, through the tree.
pub(super) const NAMED_MAX: usize = 50;

/// Servers below the root that are asked.
const SERVERS_MAX: usize = 500;

/// Clients on a page of those.
const PAGE: u32 = 10_000;

/// Clients of a resource that are listed on request.
const LISTED_MAX: usize = 100_000;

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
    pub(super) fn goes_by(&self, store: &Store<'_>) -> bool {
        let [own, other] = [self.source.as_str(), store.name()].map(DocumentPlace::from_str);
        match (own, other) {
            (Ok(DocumentPlace::File(own)), Ok(DocumentPlace::File(other))) => {
                own.file_name() == other.file_name()
            }
            (own, other) => own == other,
        }
    }
}

impl fmt::Display for PlannedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, source } = self;
        write!(f, "{node} (templates from {source})")
    }
}

/// Returns where the truth is, if nobody reads a place.
pub(super) fn truth(who: &PlannedBy, place: &str) -> String {
    let source = &who.source;
    format!("{who} does not read {place}: a change here changes nothing there. Change {source}")
}

/// Plan of a change for all resources in use.
#[derive(Debug)]
pub(super) struct TreePlan {
    pub(super) who: PlannedBy,
    /// Resources whose terms change; those that lose most come first.
    pub(super) resources: Vec<ResourcePlan>,
    /// Number of resources whose terms stay.
    pub(super) unchanged: u64,
}

/// Plan for a resource.
#[derive(Debug, Default)]
pub(super) struct ResourcePlan {
    /// The root's, without its clients.
    pub(super) root: PlannedResource,
    pub(super) clients: ClientsPlan,
    /// Child servers whose clients are not known, and why.
    pub(super) unnamed: Vec<(String, String)>,
}

/// A client of a server, and what it would have.
#[derive(Clone, Debug)]
pub(super) struct NamedClient {
    pub(super) server: String,
    pub(super) client: PlannedHolder,
}

/// What changes for the clients of one or more servers.
#[derive(Debug, Default)]
pub(super) struct ClientsPlan {
    pub(super) losing_count: u64,
    pub(super) gaining_count: u64,
    pub(super) same_count: u64,
    /// Clients that want more than counts, because of `wants_max`.
    pub(super) cut_wants: u64,
    /// Those that lose most, first.
    pub(super) losing: Vec<NamedClient>,
    /// Those that gain most, first.
    pub(super) gaining: Vec<NamedClient>,
    /// The clients that were searched for.
    pub(super) listed: Vec<NamedClient>,
    /// Longest refresh intervals of those that lose, and of those that gain.
    pub(super) shrinks_in: Option<Duration>,
    pub(super) grows_in: Option<Duration>,
    /// Time until the last lease of those that lose ends.
    pub(super) shrinks_max: Option<Duration>,
    /// Longest rest of learning mode.
    pub(super) learning: Option<Duration>,
}

impl ClientsPlan {
    /// Adds the clients of a server, and takes them out of its answer.
    fn add(&mut self, server: &str, plan: &mut PlannedResource) {
        self.losing_count += plan.losing_count;
        self.gaining_count += plan.gaining_count;
        self.same_count += plan.same_count;
        self.cut_wants += plan.cut_wants_count;
        for (longest, millis) in [
            (&mut self.shrinks_in, plan.shrinks_in_ms),
            (&mut self.grows_in, plan.grows_in_ms),
            (&mut self.shrinks_max, plan.shrinks_max_ms),
            (&mut self.learning, plan.learning_remaining_ms),
        ] {
            *longest = (*longest).max(millis.map(Duration::from_millis));
        }
        for (known, of_server) in [
            (&mut self.losing, &mut plan.losing),
            (&mut self.gaining, &mut plan.gaining),
        ] {
            known.extend(named(server, of_server));
            known.sort_by(|a, b| b.by().total_cmp(&a.by()));
            known.truncate(EXTREMES_MAX);
        }
        self.listed.extend(named(server, &mut plan.holders));
    }

    /// Returns when the plan holds, if all clients ask as they should: those that lose first, then those that gain.
    pub(super) fn holds_in(&self) -> Duration {
        let learning = self.learning.filter(|_| self.grows_in.is_some());
        let shrinks = self.shrinks_in.unwrap_or_default();
        shrinks.max(learning.unwrap_or_default()) + self.grows_in.unwrap_or_default()
    }
}

impl NamedClient {
    /// Returns by how much its amount changes.
    fn by(&self) -> f64 {
        (self.client.planned - self.client.granted).abs()
    }
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

/// Returns the root, if it does not read the templates of a store.
pub(super) async fn root_elsewhere(store: &Store<'_>) -> Option<PlannedBy> {
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
    Some(who).filter(|who| status.parent.is_none() && !who.goes_by(store))
}

/// Returns the plan of templates, or the reason why there is none.
pub(super) async fn ask(
    common: &Common,
    templates: &str,
    search: &Search,
) -> Result<TreePlan, String> {
    let (caller, is_root_looked_up) = root(common).map_err(|failure| failure.to_string())?;
    let request = PlanRequest {
        templates: Some(templates.to_owned()),
        resource_id: search.resource.clone().unwrap_or_default(),
        holder: search.client.clone().unwrap_or_default(),
        holders_max: search.resource.as_ref().map_or(0, |_| PAGE),
        ..PlanRequest::default()
    };
    let answer = pages(&caller, request.clone()).await;
    let answer = answer.map_err(|problem| {
        let is_said = !is_root_looked_up || problem.contains("--server");
        let advice = if is_said {
            ""
        } else {
            ". --server names the server to ask"
        };
        format!("{problem}{advice}")
    })?;
    let node = answer.node;
    if !answer.is_master {
        return Err(format!("{node} is not the master, and knows of none"));
    }
    let resources = answer.resources.into_iter();
    let mut resources: Vec<ResourcePlan> = resources
        .map(|mut root| {
            let mut clients = ClientsPlan::default();
            clients.add(&node, &mut root);
            ResourcePlan {
                root,
                clients,
                unnamed: Vec::new(),
            }
        })
        .collect();
    let loss = |plan: &ResourcePlan| plan.root.granted - plan.root.planned;
    resources.sort_by(|a, b| loss(b).total_cmp(&loss(a)));
    name_clients(&caller, &mut resources, request).await;
    Ok(TreePlan {
        who: PlannedBy {
            node,
            source: answer.templates_source,
        },
        resources,
        unchanged: answer.unchanged_count,
    })
}

/// Reads all pages of a server's plan.
async fn pages(caller: &MasterCaller, mut request: PlanRequest) -> Result<PlanResponse, String> {
    let ask = async |request: &PlanRequest| {
        let answer = caller.plan(request).await;
        answer.map_err(|failure| failure.to_string())
    };
    let mut all = ask(&request).await?;
    while let Some(token) = all
        .next_token
        .take()
        .filter(|token| *token != request.token)
    {
        request.token = token;
        let page = ask(&request).await?;
        all.unchanged_count += page.unchanged_count;
        all.resources.extend(page.resources);
        all.next_token = page.next_token;
    }
    // Of a single resource, the holders have pages.
    let mut token = all
        .resources
        .first()
        .and_then(|it| it.next_holders_token.clone());
    while let Some(place) = token.take().filter(|place| *place != request.holders_token) {
        request.holders_token = place;
        let page = ask(&request).await?.resources.pop();
        let (Some(page), Some(first)) = (page, all.resources.first_mut()) else {
            break;
        };
        first.holders.extend(page.holders);
        token = page
            .next_holders_token
            .filter(|_| first.holders.len() < LISTED_MAX);
    }
    Ok(all)
}

/// Planned leases for a child server, by place of the resource.
#[derive(Default)]
struct Below {
    address: Option<String>,
    leases: BTreeMap<usize, Vec<u8>>,
}

/// Asks the servers below the root, one after the other, about the first resources.
async fn name_clients(root: &MasterCaller, resources: &mut [ResourcePlan], request: PlanRequest) {
    let (mut queue, mut asked) = (VecDeque::new(), 0);
    let named = resources.iter_mut().take(NAMED_MAX).enumerate();
    let of_root: Vec<_> = named
        .map(|(place, plan)| (place, plan.root.clone()))
        .collect();
    queue.extend(below(of_root.iter().map(|(place, plan)| (*place, plan))));
    while let Some((child, Below { address, leases })) = queue.pop_front() {
        asked += 1;
        let answer = match address {
            _ if asked > SERVERS_MAX => Err(format!("only {SERVERS_MAX} servers are asked")),
            None => {
                Err("its address is not known, as of a server of an earlier release".to_owned())
            }
            Some(address) => match root.at(&address) {
                Ok(caller) => {
                    let request = PlanRequest {
                        templates: None,
                        leases: leases.values().cloned().collect(),
                        ..request.clone()
                    };
                    pages(&caller, request).await
                }
                Err(failure) => Err(failure.to_string()),
            },
        };
        let answer = answer.and_then(|answer| match answer.is_master {
            true => Ok(answer),
            false => Err("it is not the master, and knows of none".to_owned()),
        });
        let answer = match answer {
            Ok(answer) => answer,
            Err(problem) => {
                for place in leases.into_keys() {
                    if let Some(plan) = resources.get_mut(place) {
                        plan.unnamed.push((child.clone(), problem.clone()));
                    }
                }
                continue;
            }
        };
        let mut found = Vec::new();
        for mut of_child in answer.resources {
            let place = resources
                .iter()
                .position(|plan| plan.root.resource_id == of_child.resource_id);
            if let Some(plan) = place.and_then(|place| resources.get_mut(place)) {
                plan.clients.add(&answer.node, &mut of_child);
            }
            found.extend(place.map(|place| (place, of_child)));
        }
        queue.extend(below(found.iter().map(|(place, plan)| (*place, plan))));
    }
}

/// Returns the child servers in the answers of a server, and what is planned for each.
fn below<'a>(plans: impl Iterator<Item = (usize, &'a PlannedResource)>) -> BTreeMap<String, Below> {
    let mut below: BTreeMap<String, Below> = BTreeMap::new();
    for (place, plan) in plans {
        for child in plan.children.iter().filter(|child| !child.lease.is_empty()) {
            let known = below.entry(child.child.clone()).or_default();
            known.address = child.address.clone().or(known.address.take());
            known.leases.insert(place, child.lease.clone());
        }
    }
    below
}
