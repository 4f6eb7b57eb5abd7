//! A running server: sockets, services and tasks around one node.
//!
//! [`Server::start`] binds its sockets (port 0 picks free ones), takes part in the election and serves.
//! [`Server::shutdown`] stops accepting, finishes the requests in flight and ends. The binary, the demonstration and
//! the tests all run this. Dropping a server without a shutdown stops its tasks; open connections end by themselves.

mod outcome;
mod ports;
mod state;

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use doorward_door::Door;
use doorward_door::access::Access;
use doorward_door::bounded::Bounded;
use doorward_door::calls::CallService;
use doorward_door::health::Health;
use doorward_door::listener::{Address, Listener};
use doorward_door::listening::LISTEN_BACKLOG;
use doorward_door::meter::Metered;
use doorward_door::paths::Paths;
use doorward_door::{grpc, http};
use doorward_edge::edge::Edge;
use doorward_edge::resp;
use doorward_engine::node;
use doorward_engine::templates::Templates;
use doorward_session::child_streams::ChildStreams;
use doorward_tls::server::Protocol;
use hyper::body::Incoming;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

pub use crate::app::outcome::ServerError;
pub use crate::app::ports::Port;
use crate::app::ports::Sockets;
use crate::clock::{self, Clock};
use crate::edge::{self, EdgeDoors};
use crate::flags::LimitFlags;
use crate::limits::{LimitBounds, ServerLimit};
use crate::methods;
use crate::metrics::Metrics;
use crate::otel;
use crate::rpc::services::Services;
use crate::rpc::{self, health};
use crate::rules::store::{RuleStore, RulesPlace};
use crate::security::{Security, SecurityConfig};
use crate::state_directory::place::StateConfig;
use crate::status::ServerState;
use crate::stored_place::StoredPlace;
use crate::templates::{self, Followed};
use crate::transports::election::{self, ElectionConfig, EtcdElection};
use crate::transports::parent::{ParentTransport, ParentTransportConfig};
use crate::web::{self, Served};

/// Configuration of a server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// Name of the node that this server belongs to; unique in the tree.
    pub node_name: String,
    /// Address of gRPC. Port 0: any free one.
    pub listen: Address,
    /// Address of pages and metrics. Absent: they are not served.
    pub http_listen: Option<Address>,
    /// Address that others are given, `host:port`. Absent: the bound one.
    pub advertise: Option<String>,
    /// Templates in force at the start, without a place of their own.
    pub templates: Templates,
    /// Source of these templates, for people.
    pub templates_source: String,
    /// Place where operators change templates, which the server follows. Absent: they cannot be changed here.
    pub templates_place: Option<StoredPlace>,
    /// Settings of the node.
    pub node: node::Config,
    /// Clock of the node.
    pub clock: Clock,
    /// Parent that the node leases capacity from. Absent: this is the root.
    pub parent: Option<ParentTransportConfig>,
    /// Time for which changes are gathered before child servers hear of them.
    pub push_round: Duration,
    /// Election of the master in etcd. Absent: this server is the only one of its node, and always the master.
    pub election: Option<ElectionConfig>,
    /// State directory of a server without an election. Absent: it has none.
    pub state: Option<StateConfig>,
    /// Place of the rule documents. Absent: the server has none.
    pub rules: Option<RulesPlace>,
    /// TLS and identities.
    pub security: SecurityConfig,
    /// Doors for programs without a client library, besides Envoy's. They need rules.
    pub doors: EdgeDoors,
    /// Bounds of what the server accepts over the network.
    pub bounds: LimitBounds,
    /// Connections that the operating system queues until they are accepted. The system may have a lower limit.
    pub listen_backlog: NonZeroU32,
    /// Time that a shutdown waits for requests in flight.
    pub shutdown_grace: Duration,
}

impl ServerConfig {
    /// Whether a server without an election keeps marks: it is a root, and no agent.
    fn keeps_marks(&self) -> bool {
        self.parent.is_none() && !self.doors.makes_templates
    }
}

/// A root on free loopback ports, without templates, with a fresh seed, in a process that may open 20,000 files.
impl Default for ServerConfig {
    fn default() -> Self {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            node_name: "root".to_owned(),
            listen: loopback.into(),
            http_listen: Some(loopback.into()),
            advertise: None,
            templates: Templates::default(),
            templates_source: "nowhere".to_owned(),
            templates_place: None,
            node: node::Config {
                seed: clock::seed(),
                clock_tolerance: clock::tolerance(),
                ..node::Config::default()
            },
            clock: Clock::start(),
            parent: None,
            push_round: Duration::from_millis(50),
            election: None,
            state: None,
            rules: None,
            security: SecurityConfig::default(),
            doors: EdgeDoors::default(),
            bounds: LimitFlags::default().of_door(20_000),
            listen_backlog: LISTEN_BACKLOG,
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

/// Longest time for histories at the end.
const KEPT_WITHIN: Duration = Duration::from_secs(1);

/// Address of a server without one.
const UNSPECIFIED: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// A running server.
#[derive(Debug)]
pub struct Server {
    state: Arc<ServerState>,
    metrics: Arc<Metrics>,
    health: Health,
    election: Option<EtcdElection>,
    /// Unspecified for a Unix socket.
    grpc_address: SocketAddr,
    /// Absent: nowhere, or at a Unix socket.
    http_address: Option<SocketAddr>,
    has_http: bool,
    shutdown_grace: Duration,
    rereads: watch::Sender<()>,
    stop_grpc: CancellationToken,
    stop_http: CancellationToken,
    serving: JoinSet<Port>,
    /// Timer and other background tasks. They stop when this is dropped.
    background: JoinSet<()>,
}

impl Server {
    /// Binds the sockets, takes part in the election, and serves.
    ///
    /// # Errors
    ///
    /// If the file of the templates, a socket or the state directory cannot be opened.
    pub async fn start(mut config: ServerConfig) -> Result<Self, ServerError> {
        let followed = open_templates(&mut config).await?;
        let sockets = Sockets::open(&config)?;
        let grpc_address = sockets.grpc.1.clone();
        warn_of_address(&config, &grpc_address);
        let http_address = sockets.http.as_ref().and_then(|(_, address)| address.tcp());
        let (kept, records, recorded) = state::open(&config)?;
        let begins = (config.keeps_marks(), recorded);
        let state = state::new(&config, &grpc_address, kept.as_ref());
        state.limits().set_bounds(&config.bounds);
        let security = Security::new(&config.security, &sockets.addresses());
        let security = Arc::clone(state.security.get_or_init(|| Arc::new(security)));
        let metrics = Arc::new(Metrics::new(&state));
        templates::count_load(&state, true);
        let in_force = config.parent.is_none().then_some(&config.templates);
        let upstream = config
            .parent
            .map(|parent| ParentTransport::new(parent, config.security.dialer, Arc::clone(&state)));
        let stop_grpc = CancellationToken::new();
        let rules = config.rules.map(RuleStore::new);
        let edge = rules.is_some().then(|| edge::start(&state, records));
        let stop = stop_grpc.clone();
        let (services, health) = rpc::services(&state, rules.clone(), stop, edge.as_ref())?;

        let masterships = state.node().masterships();
        let tolerance = config.node.clock_tolerance;
        let election = config.election.map(|election| {
            let in_etcd = followed.as_ref().and_then(Followed::in_etcd);
            EtcdElection::start(election, http_address, tolerance, in_force, in_etcd, &state)
        });
        let mut background = JoinSet::new();
        if election.is_none() {
            state::begin_alone(&state, kept, begins, &mut background);
        }
        // Set before the first client can ask.
        health.set(state.readiness().is_ok()).await;

        let rereads = watch::Sender::default();
        background.spawn(security.run(rereads.subscribe()));
        background.spawn(Arc::clone(state.node()).run_timer());
        background.spawn(election::announce(Arc::clone(&state), masterships));
        background.spawn(health::report_readiness(Arc::clone(&state), health.clone()));
        if let Some(upstream) = upstream {
            background.spawn(upstream.run());
        }
        let mut server = Self {
            state,
            metrics,
            health,
            election,
            grpc_address: grpc_address.tcp().unwrap_or(UNSPECIFIED),
            http_address,
            has_http: sockets.http.is_some(),
            shutdown_grace: config.shutdown_grace,
            rereads,
            stop_grpc,
            stop_http: CancellationToken::new(),
            serving: JoinSet::new(),
            background,
        };
        if let Some(followed) = followed {
            server.spawn(followed.run(server.state.clone(), server.rereads.subscribe()));
        }
        if let (Some(rules), Some(edge)) = (&rules, &edge) {
            server.follow_rules(rules, edge, config.doors.makes_templates);
        }
        let decisions = edge.clone().filter(|_| config.doors.has_http);
        let served = (decisions, config.templates_place, rules);
        server.serve(sockets, services, edge, served);
        Ok(server)
    }

    fn follow_rules(&mut self, rules: &Arc<RuleStore>, edge: &Arc<Edge>, makes_templates: bool) {
        let (rules, edge, state) = (rules.clone(), edge.clone(), self.state.clone());
        let follow = edge::follow(edge.clone(), rules.clone(), makes_templates, state);
        self.background.spawn(follow);
        self.background.spawn(edge.keep_records());
        self.background.spawn(rules.run(self.rereads.subscribe()));
    }

    fn serve(
        &mut self,
        sockets: Sockets,
        services: Services,
        edge: Option<Arc<Edge>>,
        served: Served,
    ) {
        let looking = Arc::new(Semaphore::new(1));
        let (grpc, address) = sockets.grpc;
        let services = Arc::new(otel::traced(self.metered(services)));
        self.serve_grpc(grpc, &looking, &services, self.access(), methods::PATHS);
        if let Some((listener, address)) = sockets.doorman {
            let (open, paths) = (Arc::default(), methods::DOORMAN_PATHS);
            self.serve_grpc(listener, &looking, &services, open, paths);
            info!(%address, "serving Doorman's clients without TLS");
        }
        info!(node = self.state.node_name(), grpc = %address, "serving gRPC");
        if let (Some((listener, address)), Some(edge)) = (sockets.redis, &edge) {
            self.serve_redis(listener, &looking, Arc::clone(edge));
            info!(%address, "serving Redis clients");
        }
        if let Some((listener, address)) = sockets.http {
            self.serve_http(listener, &looking, served);
            let s = self.access().tls.as_ref().map_or("", |_| "s");
            info!("status page at http{s}://{address}/");
        }
    }

    /// Returns the requirements on callers.
    fn access(&self) -> Arc<Access> {
        let security = self.state.security.get();
        security.map_or_else(Arc::default, |it| Arc::clone(it.access()))
    }

    /// Returns the services with a limit on calls in progress, and with metrics.
    fn metered(&self, services: Services) -> impl CallService<Incoming> + use<> {
        let metrics = Arc::clone(&self.metrics);
        let calls = Arc::clone(self.state.limits().of(ServerLimit::Calls));
        let services = Bounded::new(services, methods::GET_CAPACITY, calls);
        Metered::new(services, &methods::ALL, move |method, code, took| {
            metrics.observe_call(method, code, took);
        })
    }

    fn serve_grpc(
        &mut self,
        listener: Listener,
        looking: &Arc<Semaphore>,
        services: &Arc<impl CallService<Incoming>>,
        access: Arc<Access>,
        paths: Paths,
    ) {
        let limits = self.state.limits().of_grpc();
        let door = Door::secured(limits, paths, Arc::clone(looking), access, Protocol::Http2);
        let stop = self.stop_grpc.clone();
        let served = grpc::serve(listener, door, Arc::clone(services), stop);
        self.spawn_port(Port::Grpc, served);
    }

    fn serve_http(&mut self, listener: Listener, looking: &Arc<Semaphore>, served: Served) {
        if let Some(address) = self.http_address {
            let _address = self.state.pages.get_or_init(|| address);
        }
        let (state, stop) = (Arc::clone(&self.state), self.stop_http.clone());
        self.background.spawn(Arc::clone(&state).record());
        self.background.spawn(Arc::clone(&state).keep_histories());
        let (limits, looking) = (state.limits().of_http(), Arc::clone(looking));
        let pages = web::router(state, Arc::clone(&self.metrics), served, stop.clone());
        let door = Door::secured(limits, web::PATHS, looking, self.access(), Protocol::Http1);
        let served = http::serve(listener, door, pages, stop);
        self.spawn_port(Port::Http, served);
    }

    fn serve_redis(&mut self, listener: Listener, looking: &Arc<Semaphore>, edge: Arc<Edge>) {
        let (limits, looking) = (self.state.limits().of_grpc(), Arc::clone(looking));
        let (access, paths) = (self.access(), Paths::default());
        let door = Door::secured(limits, paths, looking, access, Protocol::Other);
        let served = resp::serve(listener, edge, door, self.stop_grpc.clone());
        self.spawn_port(Port::Redis, served);
    }

    fn spawn_port(&mut self, port: Port, served: impl Future<Output = ()> + Send + 'static) {
        self.serving.spawn(async move {
            served.await;
            port
        });
    }

    /// Returns the address of gRPC. Of a Unix socket, it is unspecified.
    pub fn grpc_address(&self) -> SocketAddr {
        self.grpc_address
    }

    /// Returns the address of the pages, if they are served by TCP.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.http_address
    }

    /// Returns the state of the server and of its node.
    pub fn state(&self) -> &Arc<ServerState> {
        &self.state
    }

    /// Returns the metrics of the server.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Returns the channel that makes all readers of files look at once.
    pub const fn rereads(&self) -> &watch::Sender<()> {
        &self.rereads
    }

    /// Runs a task until the server ends.
    pub fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.background.spawn(task);
    }

    /// Waits until a part stops by itself, which no part should. Cancel safe.
    pub async fn failed(&mut self) -> ServerError {
        let election = &mut self.election;
        let stopped = tokio::select! {
            stopped = self.serving.join_next() => stopped,
            // It ends by itself only by a bug.
            Some(()) = async { election.as_mut()?.stopped().await; Some(()) } => {
                return ServerError::Election;
            }
        };
        match stopped {
            Some(Ok(port)) => ServerError::Stopped(port),
            Some(Err(error)) => error.into(),
            // All parts have ended. That was reported before, and the caller went on.
            None => std::future::pending().await,
        }
    }

    /// Resigns the mastership, stops accepting, finishes the requests in flight within the grace, and ends. The HTTP
    /// port closes last, so that `/readyz` reports the shutdown. Returns whether every request was finished.
    pub async fn shutdown(mut self) -> bool {
        self.state.is_stopping.send_replace(true);
        self.health.stop().await;
        if let Some(election) = self.election.take() {
            election.resign().await;
        }
        let node = self.state.node();
        node.input(|replica, _| replica.change_streams(ChildStreams::handle_stopping));
        if let Some(edge) = self.state.edge() {
            edge.stop();
        }
        self.stop_grpc.cancel();
        let (serving, stop_http, has_http) = (&mut self.serving, &self.stop_http, self.has_http);
        let finished = tokio::time::timeout(self.shutdown_grace, async {
            while serving.len() > usize::from(has_http) {
                serving.join_next().await;
            }
            stop_http.cancel();
            while serving.join_next().await.is_some() {}
        })
        .await;
        let kept = self.state.look(|state| state.history().keep());
        // Charts are not worth a wait for a slow disk.
        let _late = tokio::time::timeout(KEPT_WITHIN, kept).await;
        if finished.is_err() {
            warn!("the grace is over; what is still in flight is cut off");
            self.serving.shutdown().await;
        }
        finished.is_ok()
    }
}

/// Opens the source of the templates, and reads the first ones.
async fn open_templates(config: &mut ServerConfig) -> Result<Option<Followed>, ServerError> {
    let Some(place) = config.templates_place.clone() else {
        return Ok(None);
    };
    config.templates_source = place.to_string();
    let keeps_marks = config.election.is_some() || config.state.is_some();
    let (followed, templates) = Followed::open(place, keeps_marks).await?;
    config.templates = templates;
    Ok(Some(followed))
}

fn warn_of_address(config: &ServerConfig, grpc_address: &Address) {
    let is_unspecified = |address: SocketAddr| address.ip().is_unspecified();
    if config.advertise.is_none() && grpc_address.tcp().is_some_and(is_unspecified) {
        warn!(address = %grpc_address, "clients are given an address that means any; give --advertise");
    }
}
