//! The message that tells a child server that it is its own ancestor.
//!
//! A parent learns from its own parent's answers which nodes are above it. It refuses every request of a child that is
//! one of them. So that child never sees an answer with its own name among the ancestors, and would take the refusal
//! for an unreachable parent. Therefore the refusal carries the nodes from the parent up to the child in a trailer, in
//! the form of an answer. The child then knows the nodes above it, and can refuse the next one. In a cycle of any
//! length, every node learns of the cycle.

use doorward_engine::messages::Cycle;
use doorward_proto::doorman as wire;
use doorward_session::close_reason::CloseReason;
use prost::Message;
use tonic::Status as RpcStatus;
use tonic::metadata::MetadataValue;

use crate::rpc::closed;

/// Trailer with a `GetServerCapacityResponse` that only names the ancestors.
const ANCESTORS: &str = "doorward-ancestors-bin";

/// Returns the refusal of a child server that is an ancestor of its parent.
pub fn refusal(cycle: &Cycle) -> RpcStatus {
    let status = RpcStatus::failed_precondition(cycle.to_string());
    let mut status = closed::with_reason(CloseReason::Cycle, status);
    let way = wire::GetServerCapacityResponse {
        ancestor: cycle.path.clone(),
        ..wire::GetServerCapacityResponse::default()
    };
    let way = MetadataValue::from_bytes(&way.encode_to_vec());
    status.metadata_mut().insert_bin(ANCESTORS, way);
    status
}

/// Returns the nodes from the parent up to this one, if the parent refuses this node as its own ancestor.
pub fn heard(status: &RpcStatus) -> Option<wire::GetServerCapacityResponse> {
    let answer = status.metadata().get_bin(ANCESTORS)?;
    wire::GetServerCapacityResponse::decode(answer.to_bytes().ok()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_hears_the_way_that_its_parent_tells() {
        let path = vec!["b".to_owned(), "c".to_owned(), "a".to_owned()];
        let cycle = Cycle {
            child: "a".to_owned(),
            node: "b".to_owned(),
            path: path.clone(),
        };
        let status = refusal(&cycle);
        assert_eq!(heard(&status).expect("an answer").ancestor, path);
        assert!(status.message().contains("b → c → a"), "{status}");
        assert_eq!(heard(&RpcStatus::failed_precondition("no")), None);
    }
}
