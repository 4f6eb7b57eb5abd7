//! Entry of the server: accepts connections, and limits what one address can cause.
//!
//! - [`registry`] holds the connections, and picks the one to close at a limit.
//! - [`guarded`] observes the bytes of each connection.
//! - [`calls`] receives a message in full before work on it starts ([`request_body`]), and counts an answer until the
//!   client reads it ([`response_body`]).
//! - [`accepting`] accepts connections; [`grpc`] and [`http`] serve them.
//!
//! Nothing here depends on the service behind it.
//!
//! Every limit holds for each [address](caller_address), and for all addresses together.
//! The door checks no permissions.

mod accepting;
pub mod budget;
pub mod caller_address;
pub mod calls;
pub mod connection;
mod density;
pub mod frames;
pub mod grpc;
pub mod guarded;
mod gzip;
pub mod http;
mod listening;
pub mod rate;
pub mod registry;
pub mod request_body;
pub mod response_body;

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use doorward_clock::Instant;
use doorward_session::time::millis;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status as RpcStatus;

use crate::door::caller_address::CallerAddress;
use crate::door::connection::Connection;
use crate::door::registry::{AddressSettings, Bounds, Registry, TooManyConnections};
use crate::limits::{ServerLimit, ServerLimits};

/// Limits on connections, calls and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DoorConfig {
    /// gRPC connections.
    pub grpc: Bounds,
    /// HTTP connections.
    pub http: Bounds,
    /// Connections that the operating system queues until they are accepted. The system may have a lower limit.
    pub listen_backlog: NonZeroU32,
    /// Calls in progress on one connection.
    pub streams_per_connection_max: NonZeroU32,
    /// Frames a second on one connection that carry no call.
    pub control_frames_per_second_max: NonZeroU32,
    /// Longest time for a handshake, headers or a message to arrive, and for a client to read an answer.
    pub patience: Duration,
    /// Bytes in a message of a client.
    pub message_bytes_max: usize,
    /// Bytes in a message of a child server.
    pub child_message_bytes_max: usize,
    /// Bytes in incomplete messages.
    pub incoming_bytes_max: u64,
    /// Bytes in incomplete messages from one address.
    pub incoming_bytes_per_address_max: u64,
    /// Bytes in unread answers.
    pub outgoing_bytes_max: u64,
    /// Bytes in unread answers to one address.
    pub outgoing_bytes_per_address_max: u64,
    /// gRPC calls a second from one address.
    pub calls_per_second_per_address_max: u64,
    /// HTTP requests a second from one address.
    pub http_requests_per_second_per_address_max: u64,
    /// Longest time that the server spends each second on pages, metrics and the status for one address.
    pub look_time_per_second_per_address_max: Duration,
    /// Open streams of child servers.
    pub child_servers_max: usize,
    /// Open streams of child servers from one address.
    pub child_servers_per_address_max: usize,
}

/// File descriptors reserved for parents, etcd, templates and logs. With few descriptors, half of them are reserved.
const FILES_KEPT: usize = 64;

/// Default backlog: as many connections as the system allows. Linux keeps at most `net.core.somaxconn`.
pub const LISTEN_BACKLOG: NonZeroU32 = const { NonZeroU32::new(65_535).unwrap() };

/// Returns how many of `files` file descriptors may be connections.
pub fn files_for_connections(files: usize) -> usize {
    files - FILES_KEPT.min(files / 2)
}

impl DoorConfig {
    /// Returns the limits for a process that may open `files` files.
    pub fn for_files(files: usize) -> Self {
        const MIB: u64 = 1024 * 1024;
        let available = files_for_connections(files);
        let http = (available / 4).clamp(1, 1_024);
        let grpc = (available - http.min(available)).clamp(1, 65_536);
        Self {
            grpc: Bounds {
                connections: grpc,
                per_address: (grpc - grpc / 4).clamp(1, 20_000),
            },
            http: Bounds {
                connections: http,
                per_address: (http - http / 4).max(1),
            },
            listen_backlog: LISTEN_BACKLOG,
            streams_per_connection_max: const { NonZeroU32::new(64).unwrap() },
            control_frames_per_second_max: const { NonZeroU32::new(200).unwrap() },
            patience: Duration::from_secs(10),
            message_bytes_max: 256 * 1024,
            child_message_bytes_max: 4 * 1024 * 1024,
            incoming_bytes_max: 256 * MIB,
            incoming_bytes_per_address_max: 64 * MIB,
            outgoing_bytes_max: 256 * MIB,
            outgoing_bytes_per_address_max: 64 * MIB,
            calls_per_second_per_address_max: 20_000,
            http_requests_per_second_per_address_max: 1_000,
            look_time_per_second_per_address_max: Duration::from_millis(250),
            child_servers_max: 1_000,
            child_servers_per_address_max: 64,
        }
    }
}

/// Limits for a process that may open 20,000 files.
impl Default for DoorConfig {
    fn default() -> Self {
        Self::for_files(20_000)
    }
}

/// An entry for gRPC or for HTTP.
#[derive(Debug)]
pub struct Door {
    config: DoorConfig,
    kind: DoorKind,
    started: Instant,
    limits: Arc<ServerLimits>,
    /// One permit: a look at everything blocks a whole thread, so only one runs at a time.
    looking: Arc<Semaphore>,
    registry: Mutex<Registry>,
}

/// The protocol of a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DoorKind {
    Grpc,
    Http,
}

impl DoorKind {
    const fn bounds(self, config: &DoorConfig) -> Bounds {
        match self {
            Self::Grpc => config.grpc,
            Self::Http => config.http,
        }
    }
}

impl Door {
    /// Makes the door for gRPC. It shares `looking` with the door for HTTP.
    pub fn grpc(
        config: DoorConfig,
        limits: Arc<ServerLimits>,
        looking: Arc<Semaphore>,
    ) -> Arc<Self> {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        for (limit, max) in [
            (ServerLimit::Connections, count(config.grpc.connections)),
            (
                ServerLimit::ConnectionsPerAddress,
                count(config.grpc.per_address),
            ),
            (
                ServerLimit::StreamsPerConnection,
                config.streams_per_connection_max.get().into(),
            ),
            (
                ServerLimit::ControlFrames,
                config.control_frames_per_second_max.get().into(),
            ),
            (ServerLimit::ChildServers, count(config.child_servers_max)),
            (
                ServerLimit::ChildServersPerAddress,
                count(config.child_servers_per_address_max),
            ),
            (ServerLimit::MessageBytes, count(config.message_bytes_max)),
            (
                ServerLimit::ChildMessageBytes,
                count(config.child_message_bytes_max),
            ),
            (
                ServerLimit::IncomingBytesPerAddress,
                config.incoming_bytes_per_address_max,
            ),
            (
                ServerLimit::OutgoingBytesPerAddress,
                config.outgoing_bytes_per_address_max,
            ),
            (
                ServerLimit::CallsPerAddress,
                config.calls_per_second_per_address_max,
            ),
        ] {
            limits.set_max(limit, max);
        }
        limits.set_max(ServerLimit::Patience, millis(config.patience));
        let look_time = config.look_time_per_second_per_address_max;
        limits.set_max(ServerLimit::LookTimePerAddress, millis(look_time));
        Self::new(config, DoorKind::Grpc, limits, looking)
    }

    /// Makes the door for HTTP. It shares `looking` with the door for gRPC.
    pub fn http(
        config: DoorConfig,
        limits: Arc<ServerLimits>,
        looking: Arc<Semaphore>,
    ) -> Arc<Self> {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        for (limit, max) in [
            (ServerLimit::HttpConnections, count(config.http.connections)),
            (
                ServerLimit::HttpConnectionsPerAddress,
                count(config.http.per_address),
            ),
            (
                ServerLimit::HttpRequestsPerAddress,
                config.http_requests_per_second_per_address_max,
            ),
        ] {
            limits.set_max(limit, max);
        }
        Self::new(config, DoorKind::Http, limits, looking)
    }

    fn new(
        config: DoorConfig,
        kind: DoorKind,
        limits: Arc<ServerLimits>,
        looking: Arc<Semaphore>,
    ) -> Arc<Self> {
        let calls_per_second = match kind {
            DoorKind::Grpc => config.calls_per_second_per_address_max,
            DoorKind::Http => config.http_requests_per_second_per_address_max,
        };
        let settings = AddressSettings {
            calls_per_second,
            vital_calls_per_second: config.calls_per_second_per_address_max,
            look_time_per_second: config.look_time_per_second_per_address_max,
            incoming_bytes: config.incoming_bytes_per_address_max,
            outgoing_bytes: config.outgoing_bytes_per_address_max,
        };
        for (limit, max) in [
            (ServerLimit::IncomingBytes, config.incoming_bytes_max),
            (ServerLimit::OutgoingBytes, config.outgoing_bytes_max),
        ] {
            limits.set_max(limit, max);
            limits.take_up(limit);
        }
        let door = Self {
            config,
            kind,
            started: Instant::now(),
            limits,
            looking,
            registry: Mutex::new(Registry::new(kind.bounds(&config), settings)),
        };
        door.report_use(0, 0);
        Arc::new(door)
    }

    /// Returns the limits.
    pub fn config(&self) -> &DoorConfig {
        &self.config
    }

    /// Returns the limits on connections.
    fn bounds(&self) -> Bounds {
        self.kind.bounds(&self.config)
    }

    /// Waits for the turn to look at everything. None: the semaphore is closed.
    async fn turn_to_look(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.looking).acquire_owned().await.ok()
    }

    /// Returns the longest time for a handshake, headers or a message to arrive, and for a client to read an answer.
    pub fn patience(&self) -> Duration {
        self.config.patience
    }

    /// Returns the time since the start.
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Counts a refusal for `limit`. Returns the number of earlier ones.
    pub fn refuse(&self, limit: ServerLimit) -> u64 {
        self.limits.refuse(limit, self.now())
    }

    /// Admits a new connection. At a limit, evicts another connection in its stead. None: the new connection is
    /// refused.
    pub(crate) fn admit(&self, peer: SocketAddr) -> Option<Arc<Connection>> {
        let mut registry = self.registry();
        let admission = registry.admit(CallerAddress::of(peer.ip()), self.now());
        self.report_use(registry.len(), registry.largest());
        drop(registry);
        if let Some(full) = admission.full {
            self.refuse(match (self.kind, full) {
                (DoorKind::Grpc, TooManyConnections::InAll) => ServerLimit::Connections,
                (DoorKind::Grpc, TooManyConnections::OfAddress) => {
                    ServerLimit::ConnectionsPerAddress
                }
                (DoorKind::Http, TooManyConnections::InAll) => ServerLimit::HttpConnections,
                (DoorKind::Http, TooManyConnections::OfAddress) => {
                    ServerLimit::HttpConnectionsPerAddress
                }
            });
        }
        if let Some(evicted) = admission.evicted {
            evicted.evict();
        }
        admission.admitted
    }

    /// Evicts a silent connection, because the system has no room for another one.
    fn make_room(&self) {
        let silent = self.registry().make_room(self.now());
        if let Some(silent) = silent {
            silent.evict();
        }
    }

    /// Removes a connection, and returns its bytes to the budgets.
    fn close(&self, connection: &Connection) {
        let mut registry = self.registry();
        registry.remove(connection, self.now());
        self.report_use(registry.len(), registry.largest());
        drop(registry);
        connection.close();
        self.note_written(connection, connection.unread());
    }

    fn report_use(&self, connections: usize, largest: usize) {
        let (all, of_address) = match self.kind {
            DoorKind::Grpc => (ServerLimit::Connections, ServerLimit::ConnectionsPerAddress),
            DoorKind::Http => (
                ServerLimit::HttpConnections,
                ServerLimit::HttpConnectionsPerAddress,
            ),
        };
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.limits.set_used(all, count(connections));
        self.limits.set_used(of_address, count(largest));
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        // No code panics half-way through a change of the registry.
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts more bytes of an incomplete message.
    fn charge_incoming(&self, connection: &Connection, bytes: u64) -> Result<(), RpcStatus> {
        let of_address = &connection.of_address().incoming;
        if !of_address.charge(bytes) {
            return Err(self.exhausted(ServerLimit::IncomingBytesPerAddress));
        }
        if !self.limits.take(ServerLimit::IncomingBytes, bytes) {
            of_address.refund(bytes);
            return Err(self.exhausted(ServerLimit::IncomingBytes));
        }
        Ok(())
    }

    fn refund_incoming(&self, connection: &Connection, bytes: u64) {
        if bytes > 0 {
            connection.of_address().incoming.refund(bytes);
            self.limits.give_back(ServerLimit::IncomingBytes, bytes);
        }
    }

    /// Counts an answer on its way. If there is no room for it, evicts the connection with the most unread bytes.
    /// Refuses the answer only if that connection is this one.
    ///
    /// # Errors
    ///
    /// If the answer is refused: a number that spreads the retries of refused clients.
    fn note_answer(&self, connection: &Connection, bytes: u64) -> Result<(), u64> {
        let of_address = &connection.of_address().outgoing;
        let mut goes = None;
        if !of_address.charge(bytes) {
            goes = Some(ServerLimit::OutgoingBytesPerAddress);
            of_address.overcharge(bytes);
        }
        if !self.limits.take(ServerLimit::OutgoingBytes, bytes) {
            goes = Some(ServerLimit::OutgoingBytes);
            self.limits.overtake(ServerLimit::OutgoingBytes, bytes);
        }
        connection.note_answer(bytes);
        if connection.is_closed() {
            self.note_written(connection, bytes);
            return Err(connection.id());
        }
        goes.map_or(Ok(()), |limit| self.evict_most_unread(limit, connection))
    }

    /// Evicts the connection with the most unread bytes.
    ///
    /// # Errors
    ///
    /// If it is `connection`, or no connection is left to evict: the number of earlier refusals.
    fn evict_most_unread(&self, limit: ServerLimit, connection: &Connection) -> Result<(), u64> {
        let number = self.refuse(limit);
        let of = (limit == ServerLimit::OutgoingBytesPerAddress).then(|| connection.address());
        let most = self.registry().most_unread(of);
        let Some(most) = most else {
            // All connections are already evicted.
            return Err(number);
        };
        most.evict();
        if most.id() == connection.id() {
            return Err(number);
        }
        Ok(())
    }

    /// Counts written bytes of answers.
    fn note_written(&self, connection: &Connection, bytes: u64) {
        let counted = connection.note_written(bytes);
        if counted > 0 {
            connection.of_address().outgoing.refund(counted);
            self.limits.give_back(ServerLimit::OutgoingBytes, counted);
        }
    }
}
