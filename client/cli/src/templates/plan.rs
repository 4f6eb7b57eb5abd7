//! Asks the root for the plan of a change, and the servers below it.

use std::str::FromStr;

use doorward_etcd::DocumentPlace;
use doorward_proto::admin::v1::{GetStatusRequest, PlanRequest, PlanResponse};
pub(super) use doorward_proto::plan::{
    NAMED_MAX, NamedClient, ResourcePlan, TreePlan, is_cut, planner,
};

use crate::caller::MasterCaller;
use crate::caller::named_servers::NamedServers;
use crate::common::Common;
use crate::documents::Store;
use crate::documents::flags::Search;
use crate::failure::{Failure, Result};

/// The node that decides, unless --server names one: the default name of a node.
const ROOT: &str = "etcd:///root";

/// Pages of an answer that are read.
const PAGES_MAX: usize = 1_000;

/// Clients on a page, and those of one server that are listed.
const CLIENTS_OF_PAGE: u32 = 10_000;
const CLIENTS_MAX: usize = 100_000;

/// Returns where the truth is, if a server goes by templates from `source` and not by those of a store. Of a file only
/// the name is compared: the path may lead there from elsewhere.
pub(super) fn elsewhere(node: &str, source: &str, store: &Store<'_>) -> Option<String> {
    let place = store.name.as_str();
    let is_same = match [source, place].map(DocumentPlace::from_str) {
        [Ok(DocumentPlace::File(own)), Ok(DocumentPlace::File(other))] => {
            own.file_name() == other.file_name()
        }
        [own, other] => own == other,
    };
    let planner = planner(node, source);
    let so = "a change here changes nothing there";
    (!is_same).then(|| format!("{planner} does not read {place}: {so}. Change {source}"))
}

/// Plan of a change for all resources in use.
#[derive(Debug)]
pub(super) struct Planned {
    pub(super) plan: TreePlan,
    /// The resource that was searched for, with its clients, if it is in use and its terms change.
    pub(super) found: Option<ResourcePlan>,
}

/// Returns a caller of the root, and whether etcd says where that is.
fn root(common: &Common) -> Result<(MasterCaller, bool)> {
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
    let truth = elsewhere(&status.node, &status.templates_source, store);
    truth.filter(|_| status.parent.is_none())
}

/// Returns the plan of templates.
///
/// # Errors
///
/// If there is none, with the reason.
pub(super) async fn ask(common: &Common, templates: &str, search: &Search) -> Result<Planned> {
    let (caller, is_root_looked_up) = root(common)?;
    let mut request = PlanRequest {
        templates: Some(templates.to_owned()),
        ..PlanRequest::default()
    };
    let plan = through_tree(&caller, request.clone()).await;
    let plan = plan.map_err(|failure| {
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
        found = through_tree(&caller, request).await?.resources.pop();
    }
    Ok(Planned { plan, found })
}

/// Asks the root, and then the servers below it.
async fn through_tree(root: &MasterCaller, request: PlanRequest) -> Result<TreePlan> {
    let answer = pages(root.clone(), request.clone()).await?;
    let servers = NamedServers::below(root);
    let mut plan = TreePlan::of_root(answer, request);
    loop {
        let questions = plan.questions();
        if questions.is_empty() {
            return Ok(plan);
        }
        let questions = questions.into_iter().map(|it| (it.address, it.request));
        plan.take(servers.ask(questions, pages).await);
    }
}

/// Reads all pages of the master's plan.
async fn pages(caller: MasterCaller, mut request: PlanRequest) -> Result<PlanResponse> {
    let mut all = page(&caller, &request).await?;
    for _page in 0..PAGES_MAX {
        let Some(token) = all.next_token.take() else {
            break;
        };
        request.token = token;
        all.append(page(&caller, &request).await?);
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
async fn page(caller: &MasterCaller, request: &PlanRequest) -> Result<PlanResponse> {
    let answer = caller.plan(request).await?;
    let problem = || format!("{} is not the master, and knows of none", answer.node);
    match answer.is_master {
        true => Ok(answer),
        false => Err(Failure::No(problem())),
    }
}
