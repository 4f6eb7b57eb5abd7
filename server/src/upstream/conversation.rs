//! Asking a server of the parent, on a stream or by calls, until that ends.

use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::node::Node;
use doorward_engine::node::event::Event;
use doorward_engine::request::server::{GetServerCapacity, GetServerCapacityReply};
use doorward_engine::resource::upstream::Pace;
use doorward_proto::doorman as wire;
use doorward_proto::doorman::capacity_client::CapacityClient;
use doorward_proto::doorward::v1::capacity_stream_client::CapacityStreamClient;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Code, Status as RpcStatus, Streaming};

use super::flood::{Flood, MESSAGES_PER_SECOND_MAX};
use super::problem::told_by;
use super::unanswered::Unanswered;
use super::{ANSWER_TIMEOUT, End, MASTERSHIP_CHECK, Upstream};
use crate::clock;
use crate::node_handle::{NodeHandle, log};
use crate::rpc::MESSAGE_BYTES_MAX;
use crate::rpc::convert::tree::{self, Answer};
use crate::rpc::cycle;
use crate::rpc::stream::REPLACED;
use crate::status::{ParentLink, learning};

/// Requests on a stream of which something is not answered, at most. What is due beyond waits.
const UNANSWERED_MAX: usize = 8;

/// Messages on their way into a stream, at most. Of one request there are more than one only if it
/// is very large.
const OUTGOING_MAX: usize = 128;

impl Upstream {
    /// Asks on a stream until it ends.
    pub(super) async fn stream(&mut self, channel: Channel) -> End {
        let mut client = CapacityStreamClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        let (requests, outgoing) = mpsc::channel(OUTGOING_MAX);
        let opening = client.stream_server_capacity(ReceiverStream::new(outgoing));
        let answers = match tokio::time::timeout(ANSWER_TIMEOUT, opening).await {
            Ok(Ok(answers)) => answers.into_inner(),
            Ok(Err(status)) if status.code() == Code::Unimplemented => return End::NoStreams,
            Ok(Err(status)) if status.code() == Code::AlreadyExists => {
                return End::Taken(told_by(&status));
            }
            Ok(Err(status)) => return self.refused(&status),
            Err(_) => return End::Broken(format!("no stream within {ANSWER_TIMEOUT:?}")),
        };
        self.set_pace(self.config.round);
        self.converse(&requests, answers).await
    }

    async fn converse(
        &mut self,
        requests: &mpsc::Sender<wire::GetServerCapacityRequest>,
        mut answers: Streaming<wire::GetServerCapacityResponse>,
    ) -> End {
        // Connecting took its time.
        if !self.is_master() {
            return End::Resigned;
        }
        let mut unanswered = Unanswered::default();
        let mut next = self.due().or_else(|| self.greeting());
        let mut flood = Flood::new(doorward_clock::Instant::now());
        let mut well = false;
        loop {
            while let Some(request) = next {
                unanswered.note_sent(&request, Instant::now());
                for message in tree::get_server_capacity_requests(&request, clock::wall()) {
                    if requests.try_send(message).is_err() {
                        return End::Broken("the stream takes no more requests".to_owned());
                    }
                }
                next = self.due_unless_full(&unanswered);
            }
            let late = unanswered.since().map(|since| since + ANSWER_TIMEOUT);
            tokio::select! {
                answer = answers.message() => {
                    let response = match answer {
                        Ok(Some(response)) => response,
                        Ok(None) => return End::Broken("the parent ended the stream".to_owned()),
                        Err(status) if status.code() == Code::Unimplemented => {
                            return End::NoStreams;
                        }
                        Err(status) if status.code() == Code::AlreadyExists => {
                            return End::Taken(told_by(&status));
                        }
                        Err(status) if is_replacement(&status) => {
                            return End::Replaced(told_by(&status));
                        }
                        Err(status) => return self.refused(&status),
                    };
                    if flood.note_message(doorward_clock::Instant::now()) {
                        return End::Broken(format!(
                            "it sends more than {MESSAGES_PER_SECOND_MAX} messages a second"
                        ));
                    }
                    if let Some(mastership) = response.mastership {
                        return End::NotMaster(mastership);
                    }
                    let answer = tree::parents_answer(response, clock::wall());
                    unanswered.note_answer(&answer, Instant::now());
                    self.apply(answer);
                    if !std::mem::replace(&mut well, true) {
                        self.succeed(ParentLink::Stream);
                    }
                }
                () = next_request(&self.node), if unanswered.len() < UNANSWERED_MAX => {}
                moved = self.addresses.moved_from(&self.address) => {
                    return End::NotMaster(moved);
                }
                () = until(late) => {
                    return End::Broken(format!("no answer on the stream within {ANSWER_TIMEOUT:?}"));
                }
            }
            if !self.is_master() {
                return End::Resigned;
            }
            next = self.due_unless_full(&unanswered);
        }
    }

    /// Asks by calls, until the connection breaks or it is time to try a stream.
    pub(super) async fn poll(&mut self, channel: Channel) -> End {
        let mut client = CapacityClient::new(channel)
            .max_decoding_message_size(MESSAGE_BYTES_MAX)
            .max_encoding_message_size(MESSAGE_BYTES_MAX);
        self.set_pace(self.config.slow_round);
        let mut well = false;
        loop {
            while let Some(request) = self.due() {
                let sent_at = clock::wall();
                let mut whole = wire::GetServerCapacityResponse::default();
                for message in tree::get_server_capacity_requests(&request, sent_at) {
                    let call = client.get_server_capacity(message);
                    let response = match tokio::time::timeout(ANSWER_TIMEOUT, call).await {
                        Ok(Ok(response)) => response.into_inner(),
                        Ok(Err(status)) => return self.refused(&status),
                        Err(_) => {
                            return End::Broken(format!("no answer within {ANSWER_TIMEOUT:?}"));
                        }
                    };
                    if let Some(mastership) = response.mastership {
                        return End::NotMaster(mastership);
                    }
                    whole.response.extend(response.response);
                    whole.refused.extend(response.refused);
                    whole.ancestor = response.ancestor;
                }
                let mut answer = tree::parents_answer(whole, sent_at);
                tree::refuse_unanswered(&request, &mut answer);
                self.apply(answer);
                if !std::mem::replace(&mut well, true) {
                    self.succeed(ParentLink::Poll);
                }
            }
            let is_idle = self
                .node
                .read(|node, _| node.poll_upstream_timeout().is_none());
            if is_idle && !std::mem::replace(&mut well, true) {
                // There is nothing to ask: what is known of the parent is that it is there.
                self.succeed(ParentLink::Poll);
                self.note_answered();
            }
            tokio::select! {
                () = next_request(&self.node) => {}
                moved = self.addresses.moved_from(&self.address) => {
                    return End::NotMaster(moved);
                }
                () = until(self.poll_until) => return End::TryStream,
            }
            if !self.is_master() {
                return End::Resigned;
            }
        }
    }

    /// The parent answers a whole request, or a stream, with an error.
    fn refused(&self, status: &RpcStatus) -> End {
        let Some(way) = cycle::heard(status) else {
            return End::Broken(told_by(status));
        };
        let ancestors = tree::parents_answer(way, clock::wall()).reply.ancestors;
        self.hear_of_cycle(ancestors);
        End::Cycle(told_by(status))
    }

    /// The parent says that this node is its own ancestor, by the way that it tells. What is above this
    /// node is what child servers are told: one of them is on that way.
    fn hear_of_cycle(&self, way: Vec<String>) {
        let name = self.board.node_name();
        let Some(own) = way.iter().position(|node| node == name) else {
            return;
        };
        if self.board.post_refused_as_ancestor() {
            log(&Event::Cycle {
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

    /// What is to be asked now.
    fn due(&self) -> Option<GetServerCapacity> {
        let micros = u64::try_from(clock::wall().as_micros()).unwrap_or(u64::MAX);
        self.node
            .change(|node, now| node.poll_upstream_request(micros, now))
    }

    fn due_unless_full(&self, unanswered: &Unanswered) -> Option<GetServerCapacity> {
        (unanswered.len() < UNANSWERED_MAX)
            .then(|| self.due())
            .flatten()
    }

    /// What a stream begins with if there is nothing to ask.
    fn greeting(&self) -> Option<GetServerCapacity> {
        self.node.read(Node::upstream_greeting)
    }

    fn apply(&self, answer: Answer) {
        // The first answer tells for how long to learn.
        let begun = self.node.change(|node, now| {
            let leases = answer.reply.leases.iter();
            let mut resources: Vec<&ResourceId> = leases.map(|lease| &lease.resource).collect();
            resources.retain(|resource| learning::left(node, resource, now).is_none());
            node.handle_upstream_reply(&answer.reply, now);
            for (resource, problem) in answer.nonsense {
                node.handle_upstream_nonsense(&resource, problem, now);
            }
            let begun = resources.into_iter().filter_map(|resource| {
                let left = learning::left(node, resource, now)?;
                Some((resource.clone(), left))
            });
            begun.collect::<Vec<_>>()
        });
        for (resource, left) in begun {
            learning::log_beginning(&resource, left);
        }
        self.node.note_answered();
        self.note_answered();
    }

    fn set_pace(&self, round: Duration) {
        let slow = self.config.slow_round.max(round);
        self.node
            .change(|node, _| node.handle_upstream_pace(Pace { round, slow }));
    }
}

/// Waits until something is to be asked, or may be, or a while has passed.
async fn next_request(node: &NodeHandle) {
    let at = node.read(|node, _| node.poll_upstream_timeout());
    let due = async {
        match at {
            Some(at) => node.clock().sleep_until(at).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = due => {}
        () = node.upstream_moved() => {}
        () = tokio::time::sleep(MASTERSHIP_CHECK) => {}
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn is_replacement(status: &RpcStatus) -> bool {
    status.code() == Code::Aborted && status.message().starts_with(REPLACED)
}
