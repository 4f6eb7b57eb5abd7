//! What is said to the parent and by it, as far as the session does not look at it: the node decides
//! what to ask, and what an answer does.

use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::node::Node;
use doorward_engine::node::event::NodeEvent;
use doorward_engine::request::server::{GetServerCapacity, GetServerCapacityReply};
use doorward_engine::resource::parent_request::Pace;
use doorward_proto::doorman as wire;
use doorward_session::parent_session::{AnsweredResource, MasterInfo, Transport};
use tonic::Status as RpcStatus;

use super::Upstream;
use crate::clock;
use crate::node_handle::log;
use crate::rpc::convert::server_capacity::{self, ReadAnswer};
use crate::rpc::cycle;
use crate::status::learning;

/// What a server says of the mastership of its node.
pub(super) fn mastership(is_master: bool, named: &wire::Mastership) -> MasterInfo<'_> {
    MasterInfo {
        is_master,
        master: named.master_address.as_deref(),
        epoch: named.epoch,
    }
}

/// The numbers of the resources that are asked for.
pub(super) fn numbers(request: &GetServerCapacity) -> impl Iterator<Item = u64> {
    let asks = request.asks.iter();
    asks.map(|ask| AnsweredResource::number_of(ask.resource.as_str()))
}

/// What is answered.
pub(super) fn answered(answer: &ReadAnswer) -> Vec<AnsweredResource> {
    let leases = answer.reply.leases.iter();
    let leases = leases.map(|lease| (&lease.resource, lease.sequence));
    // These do not say to what; but they are only sent when asked.
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
    /// What is to be asked now.
    pub(super) fn due(&self) -> Option<GetServerCapacity> {
        let micros = u64::try_from(clock::wall().as_micros()).unwrap_or(u64::MAX);
        self.node
            .change(|node, now| node.poll_upstream_request(micros, now))
    }

    /// What a stream begins with if there is nothing to ask.
    pub(super) fn greeting(&self) -> Option<GetServerCapacity> {
        self.node.read(Node::upstream_greeting)
    }

    /// How long the last lease of the parent is still valid.
    pub(super) fn leases_last(&self) -> Duration {
        self.node.read(|node, now| {
            let end = node.upstream_leases_end(now);
            end.map_or(Duration::ZERO, |end| end.since(now))
        })
    }

    /// Hands an answer to the node.
    pub(super) fn apply(&self, answer: ReadAnswer) {
        // The first answer tells for how long to learn.
        let begun = self.node.change(|node, now| {
            let leases = answer.reply.leases.iter();
            let mut resources: Vec<&ResourceId> = leases.map(|lease| &lease.resource).collect();
            resources.retain(|resource| node.learning_left(resource, now).is_none());
            node.handle_upstream_reply(&answer.reply, now);
            for (resource, problem) in answer.nonsense {
                node.handle_invalid_upstream_answer(&resource, problem, now);
            }
            let begun = resources.into_iter().filter_map(|resource| {
                let left = node.learning_left(resource, now)?;
                Some((resource.clone(), left))
            });
            begun.collect::<Vec<_>>()
        });
        for (resource, left) in begun {
            learning::log_beginning(&resource, left);
        }
        self.node.note_answered();
    }

    /// How long changes are gathered, in that way.
    pub(super) fn set_pace(&self, way: Transport) {
        let round = match way {
            Transport::Stream => self.config.round,
            Transport::Calls => self.config.slow_round,
        };
        let slow = self.config.slow_round.max(round);
        self.node
            .change(|node, now| node.handle_upstream_pace(Pace { round, slow }, now));
    }

    /// The parent says perhaps that this node is its own ancestor, by the way that it tells. What is above
    /// this node is what child servers hear: one of them is on that way.
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

    /// The parent answered a request, or is there while there is nothing to ask. That does not count if
    /// all that it would answer is no: another process of this node was there first, or this node is its
    /// own ancestor.
    pub(super) fn note_answered(&self) {
        let is_in_cycle = self.node.read(|node, _| node.is_in_cycle());
        let is_second = self.session.is_second(self.now());
        if !is_second && !is_in_cycle && self.board.post_parent_answered() {
            log(&NodeEvent::CycleEnded);
        }
    }
}
