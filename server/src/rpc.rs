//! The gRPC services: Doorman's `Capacity`, our `Admin` and `Rules`, Envoy's, health and reflection.
//!
//! A call is decoded, parsed by [`convert`], decided by the node, and answered. In between, a call waits only for its
//! turn, if it names many resources, and for a moment for the parent's first answer about a resource. If its caller
//! leaves in between, the decisions stand, as if the answer had been lost.
//!
//! - [`bindings`] bind names to identities.
//! - [`plans`] says what a change would give each holder.
//! - [`stream`] serves child servers; [`closed`] and [`cycle`] tell them why a stream or a call
//!   ended. [`client_stream`] serves clients.
//! - [`mod@services`] finds the service of a call; [`unary`](crate::unary) serves `GetCapacity` without streams.

mod bindings;
pub mod child_outbox;
mod client_stream;
pub mod closed;
pub mod convert;
pub mod cycle;
pub mod health;
pub mod plans;
pub mod services;
pub mod stream;

use std::sync::Arc;
use std::task::Poll;

use doorward_door::health::Health;
use doorward_edge::edge::Edge;
use doorward_edge::rlqs::{self, Rlqs};
use doorward_edge::rls::Rls;
use doorward_engine::id::{Caller, ID_BYTES_MAX};
use doorward_engine::node::Node;
use doorward_engine::node::asking::Answers;
use doorward_proto::admin::v1::callers_server::CallersServer;
use doorward_proto::admin::v1::learning_server::LearningServer;
use doorward_proto::admin::v1::plans_server::PlansServer;
use doorward_proto::admin::v1::rules_server::RulesServer;
use doorward_proto::doorman as wire;
use doorward_proto::doorman::capacity_server::Capacity;
use doorward_proto::doorward::v1::capacity_stream_server::CapacityStreamServer;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_service_server::RateLimitQuotaServiceServer;
use doorward_proto::envoy::ratelimit::rate_limit_service_server::RateLimitServiceServer;
use doorward_session::close_reason::CloseReason;
use doorward_tls::identity::Identity;
use tokio_util::sync::CancellationToken;
use tonic::codegen::BoxFuture;
use tonic::service::Routes;
use tonic::{Request, Response, Status as RpcStatus};

use crate::admin::callers_service::CallersService;
use crate::admin::learning_service::LearningService;
use crate::admin::rules_service::RulesService;
use crate::admin::{rules_watch, status_service};
use crate::limits::ServerLimit;
use crate::methods::{GET_STATUS, WATCH_RULES};
use crate::replica_handle::Asked;
use crate::rpc::bindings::Bindings;
use crate::rpc::plans::PlansService;
use crate::rpc::services::Services;
use crate::rules::store::RuleStore;
use crate::security::Security;
use crate::status::ServerState;
use crate::status::model::count;
use crate::{caller, clock};

/// Largest message between servers, in bytes. A thousand resources take a tenth of it.
pub const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Doorman's service, and that of the streams of child servers.
#[derive(Clone, Debug)]
pub struct CapacityService {
    state: Arc<ServerState>,
    names: Arc<Bindings>,
    /// Ends streams of clients.
    stop: CancellationToken,
}

/// First result of a client's request.
enum Answer {
    /// The answer, in nearly all cases.
    Ready(wire::GetCapacityResponse),
    /// The rest of the request waits for its turn or for the parent.
    Later(BoxFuture<wire::GetCapacityResponse, RpcStatus>),
}

impl CapacityService {
    /// Decides as much as it can at once. If this server has no lease yet, the rest waits a little for the parent, so
    /// that the first client that asks for a resource need not return.
    ///
    /// # Errors
    ///
    /// If the request is invalid as a whole.
    fn answer(
        &self,
        request: wire::GetCapacityRequest,
        caller: Option<Caller>,
        identity: Option<&Identity>,
    ) -> Result<Answer, RpcStatus> {
        // The wall clock is read before the decision, so the lease ends no later by it.
        let wall = clock::wall();
        let (request, refused) = convert::get_capacity(request, caller, wall)?;
        let name = request.client.as_str();
        self.names.clients.claim(name, identity)?;
        self.state.asks_malformed.inc_by(count(refused.len()));
        let resources = request.asks.iter().map(|ask| &ask.resource);
        self.state.note_lent(resources);
        let mut answers = Answers::to_client(&request);
        let node = Arc::clone(self.state.node());
        let asked = match node.answer_client_next(&request, &mut answers) {
            Poll::Ready(Asked::Final(outcome)) => {
                let answer = convert::get_capacity_outcome(outcome, refused, wall);
                return Ok(Answer::Ready(answer));
            }
            asked => asked,
        };
        Ok(Answer::Later(Box::pin(async move {
            let outcome = match asked {
                Poll::Ready(Asked::Final(outcome)) => Some(outcome),
                Poll::Ready(Asked::Waits(waiting)) => waiting.answer().await,
                Poll::Pending => node.answer_client(&request, &mut answers).await,
            };
            let anew = || RpcStatus::unavailable("the node was started anew; ask again");
            let outcome = outcome.ok_or_else(anew)?;
            Ok(convert::get_capacity_outcome(outcome, refused, wall))
        })))
    }
}

#[tonic::async_trait]
impl Capacity for CapacityService {
    async fn discovery(
        &self,
        _: Request<wire::DiscoveryRequest>,
    ) -> Result<Response<wire::DiscoveryResponse>, RpcStatus> {
        let mastership = self.state.node().mastership();
        let answer = convert::discovery_response(&mastership, self.state.address());
        Ok(Response::new(answer))
    }

    async fn get_capacity(
        &self,
        request: Request<wire::GetCapacityRequest>,
    ) -> Result<Response<wire::GetCapacityResponse>, RpcStatus> {
        let (caller, identity) = (caller::of(&request), caller::identity(&request).cloned());
        let answer = match self.answer(request.into_inner(), caller, identity.as_ref())? {
            Answer::Ready(answer) => answer,
            Answer::Later(answer) => answer.await?,
        };
        Ok(Response::new(answer))
    }

    async fn get_server_capacity(
        &self,
        request: Request<wire::GetServerCapacityRequest>,
    ) -> Result<Response<wire::GetServerCapacityResponse>, RpcStatus> {
        let (caller, identity) = (caller::of(&request), caller::identity(&request));
        let request = request.get_ref();
        if request.server_id.len() <= ID_BYTES_MAX {
            let claimed = self.names.servers.claim(&request.server_id, identity);
            claimed.map_err(|it| closed::with_reason(CloseReason::AnotherIdentity, it))?;
        }
        let answer = stream::answer(&self.state, request, caller).await;
        answer.map(Response::new)
    }

    async fn release_capacity(
        &self,
        request: Request<wire::ReleaseCapacityRequest>,
    ) -> Result<Response<wire::ReleaseCapacityResponse>, RpcStatus> {
        let identity = caller::identity(&request).cloned();
        let request = convert::release_capacity(request.get_ref(), caller::of(&request))?;
        let name = request.client.as_str();
        self.names.clients.claim(name, identity.as_ref())?;
        let mut released = Vec::with_capacity(request.resources.len());
        let next = |node: &mut Node, now| node.release_next(&request, &mut released, now);
        let outcome = self.state.node().finish(next).await;
        let answer = convert::release_capacity_response(&request, outcome);
        Ok(Response::new(answer))
    }
}

/// Makes every gRPC service of a server.
///
/// # Errors
///
/// If the descriptors compiled into the program are broken.
pub fn services(
    state: &Arc<ServerState>,
    rules: Option<Arc<RuleStore>>,
    stop: CancellationToken,
    edge: Option<&Arc<Edge>>,
) -> Result<(Services, Health), tonic_reflection::server::Error> {
    let (reporter, health_server) = tonic_health::server::health_reporter();
    let reflection = || {
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(doorward_proto::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
    };
    let security = state.security.get();
    let binds = |it: &Arc<Security>| it.access().needs_identity && !it.access().accepts_plain;
    let is_off = !security.is_some_and(binds);
    let memory = state.limits().of(ServerLimit::Memory).max();
    let capacity = CapacityService {
        state: Arc::clone(state),
        stop: stop.clone(),
        names: Arc::new(Bindings::new(is_off, memory)),
    };
    let streams = CapacityStreamServer::new(capacity.clone()).max_decoding_message_size(usize::MAX);
    let get_status = status_service::get_status(Arc::clone(state));
    let routes = Routes::new(streams).into_axum_router();
    let routes = routes.route(GET_STATUS, get_status);
    let watch = rules_watch::watch(rules.clone(), stop);
    let rules = RulesService::new(rules);
    let plans = PlansServer::new(PlansService(Arc::clone(state)));
    let mut others = Routes::from(routes.route(WATCH_RULES, watch))
        .add_service(CallersServer::new(CallersService))
        .add_service(LearningServer::new(LearningService(Arc::clone(state))))
        .add_service(plans.max_decoding_message_size(usize::MAX))
        .add_service(RulesServer::new(rules).max_decoding_message_size(usize::MAX))
        .add_service(health_server)
        .add_service(reflection().build_v1()?)
        .add_service(reflection().build_v1alpha()?);
    let rls = edge.map(|edge| Rls::new(Arc::clone(edge)));
    if let (Some(edge), Some(rls)) = (edge, &rls) {
        let quotas = RateLimitQuotaServiceServer::new(Rlqs::new(Arc::clone(edge)));
        others = others
            .add_service(RateLimitServiceServer::new(rls.clone()))
            .add_service(quotas.max_decoding_message_size(rlqs::MESSAGE_BYTES_MAX));
    }
    let health = Health::new(reporter, &health::SERVICES);
    Ok((Services::new(capacity, rls, others), health))
}
