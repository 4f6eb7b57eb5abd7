//! The plan of a change, through a tree of servers: the command line and the pages show it.
//!
//! The root plans for its own holders. A child server among them has a planned lease, which it is asked about in turn:
//! it names its clients, and has children of its own. [`TreePlan`] says whom to ask, level by level; its user asks.

use std::collections::BTreeMap;
use std::mem::take;

use serde::Serialize;

use crate::admin::v1::{PlanRequest, PlanResponse, PlannedChild, PlannedHolder, PlannedResource};
use crate::tree::Asked;

/// Resources whose clients are named, through the tree.
pub const NAMED_MAX: usize = 50;

/// Clients that are named of those that lose most, and of those that gain most.
const EXTREMES_MAX: usize = 10;

/// Plan of a change for all resources in use.
#[derive(Debug)]
pub struct TreePlan {
    /// Node that made the plan.
    pub node: String,
    /// Where its templates are from, as it says itself.
    pub source: String,
    /// Resources whose terms change; those of which most is lost come first.
    pub resources: Vec<ResourcePlan>,
    /// Number of resources whose terms stay.
    pub unchanged: u64,
    /// Time for which holders may be missing that have not asked this master yet. None: all have.
    pub unheard_ms: Option<u64>,
    /// Child servers that are gone.
    pub gone: Vec<String>,
    request: PlanRequest,
    /// Child servers to ask next.
    level: BTreeMap<String, Below>,
    /// Child servers that are asked, with the places of their resources.
    asked: Vec<(String, Vec<usize>)>,
    seen: Asked,
}

/// A question to a child server.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanQuestion {
    /// Name of its node.
    pub child: String,
    /// Address of its master. None: it has not said.
    pub address: Option<String>,
    /// The request.
    pub request: PlanRequest,
}

impl PlanResponse {
    /// Adds the next page of the same plan.
    pub fn append(&mut self, mut page: Self) {
        self.unchanged_count = self.unchanged_count.saturating_add(page.unchanged_count);
        self.resources.append(&mut page.resources);
        self.next_token = page.next_token;
    }
}

impl TreePlan {
    /// Begins with the answer of the root to a request.
    pub fn of_root(answer: PlanResponse, request: PlanRequest) -> Self {
        let PlanResponse {
            node, resources, ..
        } = answer;
        let resources = resources.into_iter();
        let resources = resources.map(|root| ResourcePlan::new(&node, root));
        let mut resources: Vec<ResourcePlan> = resources.collect();
        resources.sort_by(|a, b| b.root.lost.total_cmp(&a.root.lost));
        let named = NAMED_MAX.min(resources.len());
        let (named, others) = resources.split_at_mut(named);
        for plan in others {
            let reason = format!("only {NAMED_MAX} resources are followed through the tree");
            let children = take(&mut plan.root.children).into_iter();
            plan.unnamed = children.map(|it| (it.child, reason.clone())).collect();
        }
        let of_root = named.iter_mut().map(|plan| &mut plan.root);
        let level = below(of_root.enumerate());
        Self {
            source: answer.templates_source,
            resources,
            unchanged: answer.unchanged_count,
            unheard_ms: answer.unheard_ms,
            gone: answer.gone_children,
            request,
            level,
            asked: Vec::new(),
            seen: Asked::from(&node),
            node,
        }
    }

    /// Returns the questions to the servers of the next level. Without any, the plan is complete.
    pub fn questions(&mut self) -> Vec<PlanQuestion> {
        let level = take(&mut self.level);
        if level.is_empty() {
            self.resources.iter_mut().for_each(ResourcePlan::finish);
        }
        let mut questions = Vec::new();
        for (child, below) in level {
            if let Err(problem) = self.seen.ask(&child) {
                self.leave_out(&child, below.places, &problem);
                continue;
            }
            self.asked.push((child.clone(), below.places));
            questions.push(PlanQuestion {
                child,
                address: below.address,
                request: PlanRequest {
                    templates: None,
                    resource_id: String::new(),
                    leases: below.leases,
                    gone: below.gone,
                    ..self.request.clone()
                },
            });
        }
        questions
    }

    /// Takes the answers to the questions, in their order, or why there is none.
    pub fn take(&mut self, answers: impl IntoIterator<Item = Result<PlanResponse, String>>) {
        let mut found = Vec::new();
        for ((child, places), answer) in take(&mut self.asked).into_iter().zip(answers) {
            match answer {
                Ok(PlanResponse { node, .. }) if node != child => {
                    let problem = format!("the node {node} is at its address");
                    self.leave_out(&child, places, &problem);
                }
                Ok(mut answer) => {
                    self.gone.append(&mut answer.gone_children);
                    found.extend(add(&mut self.resources, places, &child, answer));
                }
                Err(problem) => self.leave_out(&child, places, &problem),
            }
        }
        self.level = below(found.iter_mut().map(|(place, plan)| (*place, plan)));
    }

    /// Notes why the clients of a child server are not named.
    fn leave_out(&mut self, child: &str, places: Vec<usize>, problem: &str) {
        for place in places {
            if let Some(plan) = self.resources.get_mut(place) {
                plan.unnamed.push((child.to_owned(), problem.to_owned()));
            }
        }
    }

    /// Returns why the plan may miss holders. None: it has all. `span` formats milliseconds.
    pub fn missing(&self, span: impl Fn(u64) -> String) -> Option<String> {
        let planner = planner(&self.node, &self.source);
        let lately = "has begun lately: holders that have not asked it yet are missing, for up to";
        let unheard = self.unheard_ms.map(|left| {
            let left = span(left);
            format!("{planner} {lately} {left}")
        });
        let gone = self.gone.iter();
        let gone = gone.map(|it| format!("{it} is gone: its clients are not known"));
        let all: Vec<String> = unheard.into_iter().chain(gone).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }
}

/// Names a server, and where its templates are from.
pub fn planner(node: &str, source: &str) -> String {
    format!("{node} (templates from {source})")
}

/// Plan for a resource. JSON has the field names of `admin.proto`.
#[derive(Debug, Default, Serialize)]
pub struct ResourcePlan {
    /// The root's, without its clients. Numbers and times of clients are those of all servers.
    #[serde(flatten)]
    pub root: PlannedResource,
    /// The clients that lose most, first. In JSON these lists replace the empty ones of the root.
    pub losing: Vec<NamedClient>,
    /// The clients that gain most, first.
    pub gaining: Vec<NamedClient>,
    /// The clients that were searched for.
    pub holders: Vec<NamedClient>,
    /// Child servers whose clients are not known, and why.
    pub unnamed: Vec<(String, String)>,
    /// Child servers that will ask for less than now, since `subclients_max` cuts the demand of their own children.
    pub estimated: Vec<String>,
    /// Time until the plan holds, if all clients ask as they should: those that lose first, then those that gain.
    /// Absent: it does not.
    pub holds_in_ms: Option<u64>,
    /// The longest that it may take.
    pub holds_max_ms: Option<u64>,
}

/// A client of a server, and what it would have.
#[derive(Clone, Debug, Serialize)]
pub struct NamedClient {
    /// Its server.
    pub server: String,
    /// The client, by its server's account.
    #[serde(flatten)]
    pub client: PlannedHolder,
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
pub fn is_cut(child: &PlannedChild) -> bool {
    child.counted_clients > 0.0 && child.counted_clients < child.clients_count
}

fn named(server: &str, clients: &mut Vec<PlannedHolder>) -> impl Iterator<Item = NamedClient> {
    let clients = take(clients).into_iter();
    clients.map(|client| NamedClient {
        server: server.to_owned(),
        client,
    })
}

/// Planned leases of a child server.
#[derive(Debug, Default)]
struct Below {
    address: Option<String>,
    leases: Vec<Vec<u8>>,
    /// Resources whose template goes.
    gone: Vec<String>,
    /// Places of the resources.
    places: Vec<usize>,
}

/// Adds a child's answer to the plans at these places, and returns it by place.
fn add(
    resources: &mut [ResourcePlan],
    mut places: Vec<usize>,
    child: &str,
    answer: PlanResponse,
) -> Vec<(usize, PlannedResource)> {
    let mut found = Vec::new();
    for mut of_child in answer.resources {
        let is_meant = |place: &usize| {
            let plan = resources.get(*place);
            plan.is_some_and(|plan| plan.root.resource_id == of_child.resource_id)
        };
        // Each resource counts once.
        if let Some(index) = places.iter().position(is_meant) {
            let place = places.swap_remove(index);
            if let Some(plan) = resources.get_mut(place) {
                plan.add(child, &mut of_child);
                found.push((place, of_child));
            }
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
            match take(&mut child.lease) {
                lease if lease.is_empty() => known.gone.push(plan.resource_id.clone()),
                lease => known.leases.push(lease),
            }
        }
    }
    below
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer of a node about the resource `r`, of which its clients lose, with children.
    fn answer(node: &str, losing: u64, children: &[&str]) -> PlanResponse {
        let children = children.iter().map(|child| PlannedChild {
            child: (*child).to_owned(),
            lease: vec![1],
            ..PlannedChild::default()
        });
        PlanResponse {
            is_master: true,
            node: node.to_owned(),
            resources: vec![PlannedResource {
                resource_id: "r".to_owned(),
                losing_count: losing,
                children: children.collect(),
                ..PlannedResource::default()
            }],
            ..PlanResponse::default()
        }
    }

    #[test]
    fn each_server_is_asked_once_and_a_silent_one_is_named() {
        let mut plan = TreePlan::of_root(answer("root", 1, &["a", "b"]), PlanRequest::default());
        let names = |of: Vec<PlanQuestion>| of.into_iter().map(|it| it.child).collect::<Vec<_>>();
        assert_eq!(names(plan.questions()), ["a", "b"]);
        // One names the root, itself and a server of its own; and its resource twice.
        let mut of_a = answer("a", 10, &["a", "c", "root"]);
        of_a.resources.extend(answer("a", 10, &[]).resources);
        plan.take([Ok(of_a), Err("no answer".to_owned())]);
        assert_eq!(names(plan.questions()), ["c"]);
        plan.take([Ok(answer("c", 100, &[]))]);
        assert_eq!(plan.questions(), []);
        let found = &plan.resources[0];
        assert_eq!(found.root.losing_count, 111);
        let twice = "a server of this name is elsewhere in the tree, too";
        let unnamed = [("b", "no answer"), ("a", twice), ("root", twice)];
        assert_eq!(
            found.unnamed,
            unnamed.map(|(name, why)| (name.to_owned(), why.to_owned()))
        );
    }
}
