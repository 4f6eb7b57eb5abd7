//! The service by which an operator begins or ends learning mode.

use std::sync::Arc;

use doorward_engine::id::ResourceId;
use doorward_engine::node::Node;
use doorward_engine::node::learning::{LearningRefusal, UnknownLeases};
use doorward_engine::node::mastership::Mastership;
use doorward_proto::admin::v1::learning_server::Learning;
use doorward_proto::admin::v1::{SetLearningRequest, SetLearningResponse};
use tonic::{Request, Response, Status as RpcStatus};
use tracing::warn;

use crate::caller::{self, may_write};
use crate::methods::Answer;
use crate::status::ServerState;

/// The service of a node.
#[derive(Clone, Debug)]
pub struct LearningService(pub Arc<ServerState>);

#[tonic::async_trait]
impl Learning for LearningService {
    async fn set(&self, request: Request<SetLearningRequest>) -> Answer<SetLearningResponse> {
        if !may_write(request.extensions()) {
            let problem = "learning mode is changed from the server's own machine, or with the token of an operator";
            return Err(RpcStatus::permission_denied(problem));
        }
        let by = caller::identity(&request).map(ToString::to_string);
        let request = request.into_inner();
        let (learns, texts) = (request.learns, request.resource_id);
        let leases = match learns {
            true => UnknownLeases::MayExist,
            false => UnknownLeases::AreNone,
        };
        let parsed = texts.iter().map(|text| ResourceId::new(text));
        let bad = |error| RpcStatus::invalid_argument(format!("resource_id {error}"));
        let resources = parsed.collect::<Result<Vec<_>, _>>().map_err(bad)?;
        let all = resources.is_empty().then_some(None).into_iter();
        let mut answer = SetLearningResponse::default();
        for only in all.chain(resources.iter().map(Some)) {
            let change = |node: &mut Node, now| node.handle_unknown_leases(leases, only, now);
            match self.0.node().change(change) {
                Ok(()) => {}
                Err(LearningRefusal::UnknownResource) => {
                    answer.unknown.extend(only.map(ToString::to_string));
                }
                Err(LearningRefusal::BelowRoot) => {
                    let problem = "this server has a parent, which knows what its predecessors had; ask the root";
                    return Err(RpcStatus::failed_precondition(problem));
                }
                Err(LearningRefusal::NotMaster) => {
                    if let Mastership::Elsewhere { master_address, .. } = self.0.node().mastership()
                    {
                        answer.master_address = Some(master_address);
                    }
                    return Ok(Response::new(answer));
                }
            }
        }
        answer.is_master = true;
        let (by, resources) = (by.as_deref().unwrap_or("this machine"), texts.join(", "));
        warn!(learns, by, resources, "an operator changed learning mode");
        Ok(Response::new(answer))
    }
}
