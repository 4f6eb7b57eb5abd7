//! A walk through a tree of servers, from one of them downwards: each is asked for its status.
//!
//! A child server that is gone is asked after the others of its level: it may live, and only its link may be broken; and
//! one that has moved below another parent is found there. A node that was found already is not asked again, so a cycle
//! ends.

use doorward_proto::admin::v1::{GetStatusRequest, GetStatusResponse as Status};
pub(crate) use doorward_proto::tree::Place;
use doorward_proto::tree::sort;

use crate::caller::MasterCaller;
use crate::caller::named_servers::NamedServers;
use crate::failure::Failure;

/// Servers in all, asked or not.
const PLACES_MAX: usize = 10_000;

/// Walks from the master of the servers that are given, each server before those below it. The request asks for one
/// resource, or for none.
pub(crate) async fn walk(
    caller: &MasterCaller,
    request: &GetStatusRequest,
) -> Result<Vec<Place>, Failure> {
    let first = ask(caller.clone(), request.clone()).await?;
    let mut servers = NamedServers::below(caller, &first.node);
    let mut places = vec![Place::first(first)];
    let mut level_from = 0;
    while let Some(level @ [_, ..]) = places.get(level_from..) {
        let left = PLACES_MAX.saturating_sub(places.len());
        let mut children: Vec<Place> = level.iter().flat_map(Place::children).take(left).collect();
        children.sort_by_key(Place::is_gone);
        let questions = children
            .iter()
            .map(|it| (it.node.clone(), it.address.clone(), request.clone()));
        let answers = servers.ask(questions, ask, |status| &status.node).await;
        for (child, answer) in children.iter_mut().zip(answers) {
            match answer {
                Ok(status) => child.status = Some(status),
                Err(problem) => child.problem = Some(problem),
            }
        }
        level_from = places.len();
        places.extend(children);
    }
    sort(&mut places);
    Ok(places)
}

async fn ask(caller: MasterCaller, request: GetStatusRequest) -> Result<Status, Failure> {
    let is_of_servers = request.without_resources;
    let status = caller.status(request, false).await?;
    if !status.address.is_empty() || !is_of_servers {
        return Ok(status);
    }
    // It is of the previous release: its resources name its child servers.
    let with_resources = GetStatusRequest::default();
    caller.status(with_resources, false).await
}
