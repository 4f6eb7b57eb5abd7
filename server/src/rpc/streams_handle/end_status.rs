//! The status at the end of a stream: a text for people. The child decides by the name of the reason beside it.

use doorward_door::overload;
use doorward_engine::messages::Cycle;
use doorward_engine::time::Time;
use doorward_session::child_streams::{ChildStreams, FIRST_MESSAGE_WITHIN};
use doorward_session::close_reason::CloseReason;
use tonic::Status as RpcStatus;

use crate::limits::ServerLimit;
use crate::rpc::closed::REPLACED;
use crate::rpc::cycle;
use crate::status::Board;

/// Returns the status that ends the stream of a child. The child and its epoch are those of its first message.
pub(super) fn end_status(
    board: &Board,
    streams: &ChildStreams,
    of: Option<(&str, Option<u64>)>,
    closing: CloseReason,
) -> RpcStatus {
    let (child, epoch) = of.unwrap_or_default();
    match closing {
        CloseReason::Replaced => RpcStatus::aborted(format!(
            "{REPLACED} stream of {child} took the place of this one; if that happens again and \
                 again, two servers have the same --node"
        )),
        CloseReason::OlderMaster => RpcStatus::aborted(format!(
            "{REPLACED} master of {child} is connected, of epoch {}; this one is of {}",
            streams.epoch_of(child).unwrap_or_default(),
            epoch.unwrap_or_default(),
        )),
        CloseReason::AnotherProcess => RpcStatus::already_exists(format!(
            "another live process asks as {child}, and is connected: two servers have the same --node"
        )),
        CloseReason::Full => RpcStatus::resource_exhausted("the child takes nothing"),
        CloseReason::NotMaster => {
            RpcStatus::aborted("the mastership that it was opened in is over")
        }
        CloseReason::Cycle => cycle::refusal(&cycle_of(board, child)),
        CloseReason::Stopping => RpcStatus::unavailable("the server is shutting down"),
        CloseReason::TooMany => exhausted(board, ServerLimit::ChildServers),
        CloseReason::TooManyOfAddress => exhausted(board, ServerLimit::ChildServersPerAddress),
        CloseReason::Late => {
            RpcStatus::deadline_exceeded(format!("no message within {FIRST_MESSAGE_WITHIN:?}"))
        }
        CloseReason::OtherChild => RpcStatus::invalid_argument(format!(
            "this stream is {child}'s; open another one for each other node"
        )),
        CloseReason::Malformed => RpcStatus::invalid_argument("the message is wrong as a whole"),
    }
}

fn exhausted(board: &Board, limit: ServerLimit) -> RpcStatus {
    let now = board.node().clock().now().since(Time::ZERO);
    overload::exhausted(limit, board.limits().refuse(limit, now))
}

/// Returns the nodes from this one up to a child that is its ancestor.
fn cycle_of(board: &Board, child: &str) -> Cycle {
    let node = board.node_name().to_owned();
    let ancestors = board.node().read(|node, _| node.ancestors().to_vec());
    let above = ancestors.iter().position(|ancestor| ancestor == child);
    let above = above.map_or(0, |position| position + 1);
    Cycle {
        child: child.to_owned(),
        path: std::iter::once(node.clone())
            .chain(ancestors.into_iter().take(above))
            .collect(),
        node,
    }
}
