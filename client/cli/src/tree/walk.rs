//! A walk through a tree of servers, from one of them downwards: each is asked for its status.

use doorward_proto::admin::v1::{GetStatusRequest, GetStatusResponse as Status};
pub(crate) use doorward_proto::tree::Place;
use doorward_proto::tree::TreeWalk;

use crate::caller::MasterCaller;
use crate::caller::named_servers::NamedServers;
use crate::failure::Result;

/// Servers in all, asked or not.
const PLACES_MAX: usize = 10_000;

/// Walks from the master of the servers that are given, each server before those below it. The request asks for one
/// resource, or for none.
pub(crate) async fn walk(caller: &MasterCaller, request: &GetStatusRequest) -> Result<Vec<Place>> {
    let first = ask(caller.clone(), request.clone()).await?;
    let (servers, mut walk) = (
        NamedServers::below(caller),
        TreeWalk::new(first, PLACES_MAX),
    );
    loop {
        let questions = walk.questions();
        if questions.is_empty() {
            return Ok(walk.end(None));
        }
        let questions = questions.into_iter();
        let questions = questions.map(|it| (it.address, request.clone()));
        walk.take(servers.ask(questions, ask).await);
    }
}

async fn ask(caller: MasterCaller, request: GetStatusRequest) -> Result<Status> {
    let is_of_servers = request.without_resources;
    let status = caller.status(request, false).await?;
    if !status.address.is_empty() || !is_of_servers {
        return Ok(status);
    }
    // It is of the previous release: its resources name its child servers.
    let with_resources = GetStatusRequest::default();
    caller.status(with_resources, false).await
}
