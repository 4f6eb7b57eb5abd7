//! The status at the end of a stream: a text for people. The child decides by the name of the reason beside it.

use doorward_door::overload;
use doorward_engine::id::HolderName;
use doorward_engine::time::Time;
use doorward_replica::StreamEnd;
use doorward_session::child_streams::FIRST_MESSAGE_WITHIN;
use doorward_session::close_reason::CloseReason;
use tonic::Status as RpcStatus;

use crate::limits::ServerLimit;
use crate::rpc::closed::REPLACED;
use crate::rpc::cycle;
use crate::status::ServerState;

/// Returns the status that ends the stream of a child. The child and its epoch are those of its first message.
pub(super) fn end_status(
    state: &ServerState,
    of: Option<&(HolderName, Option<u64>)>,
    end: &StreamEnd,
) -> RpcStatus {
    let (child, epoch) = of.map_or(("", None), |(child, epoch)| (child.as_str(), *epoch));
    match end {
        StreamEnd::Cycle(cycle) => cycle::refusal(cycle),
        StreamEnd::NotMaster(_) => {
            RpcStatus::aborted("the mastership that it was opened in is over")
        }
        StreamEnd::OlderMaster { newer } => RpcStatus::aborted(format!(
            "{REPLACED} master of {child} is connected, of epoch {newer}; this one is of {}",
            epoch.unwrap_or_default(),
        )),
        StreamEnd::Other(reason) => other(state, child, *reason),
    }
}

fn other(state: &ServerState, child: &str, reason: CloseReason) -> RpcStatus {
    match reason {
        CloseReason::Replaced => RpcStatus::aborted(format!(
            "{REPLACED} stream of {child} took the place of this one; if that happens again and \
                 again, two servers have the same --node"
        )),
        CloseReason::AnotherProcess => RpcStatus::already_exists(format!(
            "another live process asks as {child}, and is connected: two servers have the same --node"
        )),
        CloseReason::Full => RpcStatus::resource_exhausted("the child takes nothing"),
        CloseReason::Stopping => RpcStatus::unavailable("the server is shutting down"),
        CloseReason::TooMany => exhausted(state, ServerLimit::ChildServers),
        CloseReason::TooManyOfAddress => exhausted(state, ServerLimit::ChildServersPerAddress),
        CloseReason::Late => {
            RpcStatus::deadline_exceeded(format!("no message within {FIRST_MESSAGE_WITHIN:?}"))
        }
        CloseReason::OtherChild => RpcStatus::invalid_argument(format!(
            "this stream is {child}'s; open another one for each other node"
        )),
        // The others have an end of their own.
        CloseReason::Malformed
        | CloseReason::AnotherIdentity
        | CloseReason::NotMaster
        | CloseReason::Cycle
        | CloseReason::OlderMaster => {
            RpcStatus::invalid_argument("the message is wrong as a whole")
        }
    }
}

fn exhausted(state: &ServerState, limit: ServerLimit) -> RpcStatus {
    let now = state.node().clock().now().since(Time::ZERO);
    overload::exhausted(limit.texts(), state.limits().of(limit).refuse(now))
}
