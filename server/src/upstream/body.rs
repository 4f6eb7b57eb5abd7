//! Requests to the parent and its answers, as far as the session ignores them: the node writes the requests, and brings
//! the answers into force.

use std::time::Duration;

use doorward_engine::messages::{GetServerCapacity, GetServerCapacityReply, NodeEvent};
use doorward_engine::node::Node;
use doorward_engine::node::upstream::UpstreamAnswered;
use doorward_engine::resource::parent::ParentPace;
use doorward_proto::doorman as wire;
use doorward_session::parent_session::{AnsweredResource, MasterInfo, Transport};
use tonic::Status as RpcStatus;

use super::Upstream;
use crate::clock;
use crate::node_handle::log;
use crate::rpc::convert::server_capacity::{self, ReadAnswer};
use crate::rpc::cycle;

/// Number of resources whose leases are read while requests wait.
const RESOURCES_PER_LOOK: usize = 128;

/// Returns a server's statement about the mastership of its node.
pub(super) fn mastership(is_master: bool, named: &wire::Mastership) -> MasterInfo<'_> {
    MasterInfo {
        is_master,
        master: named.master_address.as_deref(),
        epoch: named.epoch,
    }
}

/// Returns the numbers of the requested resources.
pub(super) fn numbers(request: &GetServerCapacity) -> impl Iterator<Item = u64> {
    let asks = request.asks.iter();
    asks.map(|ask| AnsweredResource::number_of(ask.resource.as_str()))
}

/// Returns the answered resources.
pub(super) fn answered(answer: &ReadAnswer) -> Vec<AnsweredResource> {
    let leases = answer.reply.leases.iter();
    let leases = leases.map(|lease| (&lease.resource, lease.sequence));
    // These do not name the request that they answer, but a parent sends them only on request.
    let refused = answer.reply.refused.iter();
    let refused = refused.map(|refused| (&refused.resource, None));
    let nonsense = answer.nonsense.iter();
    let nonsense = nonsense.map(|(resource, _)| (resource, None));
    let all = leases.chain(refused).chain(nonsense);
    all.map(|(resource, to)| AnsweredResource {
        resource: AnsweredResource::number_of(resource.as_str()),
        to,
    })
    .collect()
}

impl Upstream {
    /// Returns the request that is due now.
    // Here and below, `&mut`: other threads may run in between, and a link with a request under way cannot be shared.
    pub(super) async fn due(&mut self) -> Option<GetServerCapacity> {
        let micros = u64::try_from(clock::wall().as_micros()).unwrap_or(u64::MAX);
        let begin = |node: &mut Node, now| node.begin_upstream_request(micros, now);
        let mut begun = self.node.change(begin)?;
        let next = |node: &mut Node, now| node.upstream_request_next(&mut begun, now);
        self.node.finish(next).await
    }

    /// Returns the first message of a stream if no request is due.
    pub(super) fn greeting(&self) -> Option<GetServerCapacity> {
        self.node.read(Node::upstream_greeting)
    }

    /// Returns the remaining length of the parent's lease that ends last.
    pub(super) async fn leases_last(&mut self) -> Duration {
        let (mut last, mut after) = (None, None);
        loop {
            let end;
            (end, after) = self.node.read(|node, now| {
                node.upstream_leases_end_after(after.as_ref(), RESOURCES_PER_LOOK, now)
            });
            last = last.max(end);
            if after.is_none() {
                let now = self.node.clock().now();
                return last.map_or(Duration::ZERO, |end| end.since(now));
            }
            tokio::task::yield_now().await;
        }
    }

    /// Passes an answer to the node.
    pub(super) async fn apply(&mut self, answer: ReadAnswer) {
        let mut answered = UpstreamAnswered::default();
        let next =
            |node: &mut Node, now| node.upstream_reply_next(&answer.reply, &mut answered, now);
        if self.node.finish(next).await {
            for (resource, problem) in answer.nonsense {
                self.node.change(|node, now| {
                    node.handle_invalid_upstream_answer(&resource, problem, now);
                });
            }
        }
        self.node.note_answered();
    }

    /// Sets the time for which changes are gathered with this transport.
    pub(super) fn set_pace(&self, way: Transport) {
        let round = match way {
            Transport::Stream => self.config.round,
            Transport::Calls => self.config.slow_round,
        };
        let slow = self.config.slow_round.max(round);
        self.node
            .change(|node, now| node.handle_upstream_pace(ParentPace { round, slow }, now));
    }

    /// Learns from a refusal that this node is its own ancestor, if the parent tells so with its path from the root.
    /// The nodes above this one on the path go to child servers, since one of them is on it.
    pub(super) fn hear_of_cycle(&self, status: &RpcStatus) {
        let Some(answer) = cycle::heard(status) else {
            return;
        };
        let way = server_capacity::parents_answer(answer, clock::wall())
            .reply
            .ancestors;
        let name = self.board.node_name();
        let Some(own) = way.iter().position(|node| node == name) else {
            return;
        };
        if self.board.post_refused_as_ancestor() {
            log(&NodeEvent::Cycle {
                ancestors: way.clone(),
            });
        }
        let above = GetServerCapacityReply {
            ancestors: way.into_iter().take(own).collect(),
            ..GetServerCapacityReply::default()
        };
        self.node
            .change(|node, now| node.handle_upstream_reply(&above, now));
        self.node.note_answered();
    }

    /// Notes that the parent answered a request, or is there while no request is due. It does not count if the parent
    /// refuses every request: another process of this node was there first, or this node is its own ancestor.
    pub(super) fn note_answered(&self) {
        let is_in_cycle = self.node.read(|node, _| node.is_in_cycle());
        let is_second = self.session.is_second(self.now());
        if !is_second && !is_in_cycle && self.board.post_parent_answered() {
            log(&NodeEvent::CycleEnded);
        }
    }
}
