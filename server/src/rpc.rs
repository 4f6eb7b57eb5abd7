//! The gRPC services: Doorman's `Capacity`, our `Admin`, health and reflection.
//!
//! A call is decoded by tonic, parsed by [`convert`], decided by the node, and answered. Nothing
//! is awaited in between but its turn, if it names many resources, and for a moment the parent's first answer about a
//! resource, so a call that was accepted is always finished. [`caller`] says whom it is attributed to; [`stream`] and
//! [`streams_handle`] serve child servers, [`closed`] and [`cycle`] tell them why a stream or a call ended;
//! [`mod@services`] finds the service of a call; [`meter`] counts and times every call; [`overload`] refuses what is too much.

pub mod admin;
pub mod caller;
pub mod child_outbox;
pub mod closed;
pub mod convert;
pub mod cycle;
pub mod health;
pub mod meter;
pub mod overload;
pub mod services;
pub mod stream;
pub mod streams_handle;

use std::sync::Arc;

use doorward_engine::node::client_calls::{GetCapacityCall, ReleaseCall};
use doorward_engine::node::mastership::Outcome;
use doorward_engine::request::{GetCapacity, GetCapacityReply};
use doorward_proto::doorman as wire;
use doorward_proto::doorman::capacity_server::{Capacity, CapacityServer};
use doorward_proto::doorward::v1::capacity_stream_server::CapacityStreamServer;
use doorward_session::waiting_calls::{CallAction, CallDecision, WaitingCall};
use tonic::service::Routes;
use tonic::{Request, Response, Status as RpcStatus};

use crate::clock;
use crate::metrics::Metrics;
use crate::rpc::admin::AdminService;
use crate::rpc::health::Health;
use crate::rpc::services::Services;
use crate::rpc::stream::CapacityStreamService;
use crate::rpc::streams_handle::StreamsHandle;
use crate::status::Board;

/// The largest message between servers. A thousand resources take a tenth of it.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Doorman's service.
#[derive(Clone, Debug)]
pub struct CapacityService {
    board: Arc<Board>,
    metrics: Arc<Metrics>,
}

impl CapacityService {
    /// Decides, and waits a little for the parent should this server have no lease yet: whoever
    /// asks first for a resource would else have to come back.
    async fn decide(&self, request: &GetCapacity) -> Outcome<GetCapacityReply> {
        let node = self.board.node();
        let clock = node.clock();
        // From before the node is asked: what the parent answers since counts.
        let mut answers = node.answers();
        let call = GetCapacityCall::new(request);
        let (outcome, came_at) = node.change_in_parts(call).await;
        let mut call = WaitingCall::new(came_at);
        let Outcome::Served(mut reply) = outcome else {
            return outcome;
        };
        call.handle_decision(self.decision(&reply), came_at);
        loop {
            match call.poll_action() {
                Some(CallAction::Answer) => return Outcome::Served(reply),
                Some(CallAction::AskAgain { waited }) => {
                    let again = request.again(&mut reply, waited);
                    let asks = GetCapacityCall::new(&again);
                    match node.change_in_parts(asks).await.0 {
                        Outcome::Served(more) => reply.add(more),
                        not_master @ Outcome::NotMaster(_) => return not_master,
                    }
                    call.handle_decision(self.decision(&reply), clock.session_now());
                }
                None => tokio::select! {
                    Ok(()) = answers.changed() => call.handle_parent_answered(clock.session_now()),
                    () = clock.sleep_until_due(call.poll_timeout()) => {
                        call.handle_timeout(clock.session_now());
                    }
                },
            }
        }
    }

    fn decision(&self, reply: &GetCapacityReply) -> CallDecision {
        if reply.is_ready() {
            return CallDecision::Complete;
        }
        CallDecision::NotReady {
            is_parent_down: self.board.is_parent_down(),
        }
    }
}

#[tonic::async_trait]
impl Capacity for CapacityService {
    async fn discovery(
        &self,
        _: Request<wire::DiscoveryRequest>,
    ) -> Result<Response<wire::DiscoveryResponse>, RpcStatus> {
        let mastership = self
            .board
            .node()
            .read(|node, now| node.mastership(now).clone());
        Ok(Response::new(convert::discovery_response(
            &mastership,
            self.board.address(),
        )))
    }

    async fn get_capacity(
        &self,
        request: Request<wire::GetCapacityRequest>,
    ) -> Result<Response<wire::GetCapacityResponse>, RpcStatus> {
        let caller = caller::of(&request);
        // Read once: the lease ends no later for whoever goes by it.
        let wall = clock::wall();
        let (request, refused) = convert::get_capacity(request.into_inner(), caller, wall)?;
        self.metrics.count_malformed(refused.len());
        let outcome = self.decide(&request).await;
        Ok(Response::new(match outcome {
            Outcome::Served(reply) => convert::get_capacity_response(reply, refused, wall),
            Outcome::NotMaster(mastership) => wire::GetCapacityResponse {
                mastership: Some(convert::redirection(&mastership)),
                ..wire::GetCapacityResponse::default()
            },
        }))
    }

    async fn get_server_capacity(
        &self,
        request: Request<wire::GetServerCapacityRequest>,
    ) -> Result<Response<wire::GetServerCapacityResponse>, RpcStatus> {
        let caller = caller::of(&request);
        let request = request.get_ref();
        stream::answer(&self.board, &self.metrics, request, caller).map(Response::new)
    }

    async fn release_capacity(
        &self,
        request: Request<wire::ReleaseCapacityRequest>,
    ) -> Result<Response<wire::ReleaseCapacityResponse>, RpcStatus> {
        let request = convert::release_capacity(request.get_ref(), caller::of(&request))?;
        let call = ReleaseCall::new(&request);
        let (outcome, _) = self.board.node().change_in_parts(call).await;
        Ok(Response::new(convert::release_capacity_response(
            &request, outcome,
        )))
    }
}

/// Every gRPC service of a server.
///
/// # Errors
///
/// If the descriptors compiled into the program are broken.
pub fn services(
    board: &Arc<Board>,
    metrics: &Arc<Metrics>,
    streams: &Arc<StreamsHandle>,
) -> Result<(Services, Health), tonic_reflection::server::Error> {
    let (reporter, health_server) = tonic_health::server::health_reporter();
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(doorward_proto::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let capacity = CapacityServer::new(CapacityService {
        board: Arc::clone(board),
        metrics: Arc::clone(metrics),
    })
    .max_decoding_message_size(usize::MAX);
    let streams =
        CapacityStreamService::new(Arc::clone(board), Arc::clone(metrics), Arc::clone(streams));
    let streams = CapacityStreamServer::new(streams).max_decoding_message_size(usize::MAX);
    let admin = AdminService::new(Arc::clone(board));
    let others = Routes::new(streams)
        .add_service(admin)
        .add_service(health_server)
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?);
    Ok((Services::new(capacity, others), Health::new(reporter)))
}
