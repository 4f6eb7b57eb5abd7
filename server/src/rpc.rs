//! The gRPC services: Doorman's `Capacity`, our `Admin`, health and reflection.
//!
//! A call is decoded by tonic, parsed by [`convert`], decided by the node, and answered. Nothing
//! is awaited in between but, for a moment, the parent's first answer about a resource, so a call
//! that was accepted is always finished. [`caller`] says whom it is attributed to; [`stream`] serves child servers, [`cycle`] is what an ancestor is
//! told that asks as one; [`meter`] counts and
//! times every call; [`overload`] refuses what is too much.

pub mod answers;
pub mod caller;
pub mod closed;
pub mod convert;
pub mod cycle;
pub mod health;
pub mod meter;
pub mod overload;
pub mod stream;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::node::mastership::Outcome;
use doorward_engine::request::{GetCapacity, GetCapacityReply, Refusal, RefusalReason};
use doorward_proto::admin::v1 as admin;
use doorward_proto::admin::v1::admin_server::{Admin, AdminServer};
use doorward_proto::doorman as wire;
use doorward_proto::doorman::capacity_server::{Capacity, CapacityServer};
use doorward_proto::doorward::v1::capacity_stream_server::CapacityStreamServer;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::{Request, Response, Status as RpcStatus};

use crate::clock;
use crate::metrics::Metrics;
use crate::rpc::health::Health;
use crate::rpc::stream::{CapacityStreamService, Pushes};
use crate::status::Board;

/// The largest message between servers. A thousand resources take a tenth of it.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long a client's call waits for the parent, should this server have no lease yet.
pub const PARENT_WAIT: Duration = Duration::from_secs(1);

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
        let mut answers = node.answers();
        let came_at = node.clock().now();
        let mut outcome = node.change(|node, now| node.handle_get_capacity(request, now));
        let deadline = tokio::time::Instant::now() + PARENT_WAIT;
        loop {
            let Outcome::Served(reply) = &mut outcome else {
                return outcome;
            };
            let is_waiting = |refused: &Refusal| refused.reason == RefusalReason::NotReady;
            let parent = self.board.parent_news();
            let is_down = parent.is_some_and(|news| news.problem.is_some());
            if is_down || !reply.refused.iter().any(is_waiting) {
                return outcome;
            }
            match tokio::time::timeout_at(deadline, answers.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) | Err(_) => return outcome,
            }
            let waiting: BTreeSet<ResourceId> = reply
                .refused
                .extract_if(.., |refused| is_waiting(refused))
                .map(|refused| refused.resource)
                .collect();
            let mut again = request.after_waiting(node.clock().now().since(came_at));
            again.asks.retain(|ask| waiting.contains(&ask.resource));
            match node.change(|node, now| node.handle_get_capacity(&again, now)) {
                Outcome::Served(more) => {
                    reply.leases.extend(more.leases);
                    reply.refused.extend(more.refused);
                }
                not_master @ Outcome::NotMaster(_) => return not_master,
            }
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
        let (request, refused) =
            convert::get_capacity(request.into_inner(), caller, clock::wall())?;
        self.metrics.count_malformed(refused.len());
        let outcome = self.decide(&request).await;
        Ok(Response::new(match outcome {
            Outcome::Served(reply) => convert::get_capacity_response(reply, refused, clock::wall()),
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
        let outcome = self
            .board
            .node()
            .change(|node, now| node.handle_release_capacity(&request, now));
        Ok(Response::new(convert::release_capacity_response(
            &request, outcome,
        )))
    }
}

/// What operators and tools ask.
#[derive(Clone, Debug)]
pub struct AdminService {
    board: Arc<Board>,
}

#[tonic::async_trait]
impl Admin for AdminService {
    async fn get_status(
        &self,
        request: Request<admin::GetStatusRequest>,
    ) -> Result<Response<admin::GetStatusResponse>, RpcStatus> {
        let request = request.get_ref();
        let only = convert::status_resource(request)?;
        let leases_max = usize::try_from(request.leases_max).unwrap_or(usize::MAX);
        let mut status = if request.without_resources {
            self.board.status_without_resources()
        } else {
            self.board.status(only.as_ref(), leases_max)
        };
        if request.limits {
            status = status.with_limits(&self.board);
        }
        Ok(Response::new(convert::status_response(status)))
    }
}

/// Every gRPC service of a server.
///
/// # Errors
///
/// If the descriptors compiled into the program are broken.
pub fn routes(
    board: &Arc<Board>,
    metrics: &Arc<Metrics>,
    pushes: &Arc<Pushes>,
    stopping: &CancellationToken,
) -> Result<(Routes, Health), tonic_reflection::server::Error> {
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
    let streams = CapacityStreamService::new(
        Arc::clone(board),
        Arc::clone(metrics),
        Arc::clone(pushes),
        stopping.clone(),
    );
    let streams = CapacityStreamServer::new(streams).max_decoding_message_size(usize::MAX);
    let admin = AdminServer::new(AdminService {
        board: Arc::clone(board),
    })
    .max_decoding_message_size(usize::MAX);
    let routes = Routes::new(capacity)
        .add_service(streams)
        .add_service(admin)
        .add_service(health_server)
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?);
    Ok((routes, Health::new(reporter)))
}
