//! An entry for gRPC, HTTP or another protocol: its connections, and the bytes that wait in it.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::HeaderMap;
use doorward_clock::Instant;
use doorward_tls::identity::Identity;
use doorward_tls::server::{Certificate, Protocol};
use doorward_tls::tokens::{self, Holder, Role, Tokens};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status as RpcStatus;
use tracing::field::display;
use tracing::{debug, warn};

use crate::access::{self, Access, Denied, Proof};
use crate::caller_id::CallerId;
use crate::connection::Connection;
use crate::door_limits::DoorLimits;
use crate::limit::{self, Limit};
use crate::overload;
use crate::paths::Paths;
use crate::proofs::Proofs;
use crate::registry::Registry;
use crate::socket::Socket;

/// Roles of which one suffices for the call of a client.
const CLIENT_ROLES: [Role; 2] = [Role::Client, Role::Operator];

/// All roles.
const ANY_ROLE: [Role; 3] = [Role::Client, Role::Server, Role::Operator];

/// Work of the first handshake, in nanoseconds.
const HANDSHAKE: u64 = 1_000_000;

/// An entry.
#[derive(Debug)]
pub struct Door {
    limits: Arc<DoorLimits>,
    paths: Paths,
    access: Arc<Access>,
    protocol: Protocol,
    started: Instant,
    /// One permit: a look at everything blocks a whole thread, so only one runs at a time.
    looking: Arc<Semaphore>,
    registry: Mutex<Registry>,
    /// Rates of all callers together.
    proofs: Proofs,
    /// Average work of a handshake, in nanoseconds.
    pub(crate) handshake: AtomicU64,
}

/// Work of a handshake. It counts at the end, also if the caller leaves or hangs before.
struct Work<'a> {
    door: &'a Door,
    of_caller: &'a Proofs,
    /// Work that was counted at the start.
    expected: Duration,
    took: Duration,
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        let (door, took) = (self.door, self.took);
        let more = took.saturating_sub(self.expected);
        for proofs in [self.of_caller, &door.proofs] {
            proofs.note_work(more, door.now());
        }
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let next = |average: u64| Some(average - average / 8 + took / 8);
        let (order, average) = (Ordering::Relaxed, &door.handshake);
        // It always returns a value.
        let _ = average.fetch_update(order, order, next);
    }
}

impl Door {
    /// Makes a door. Doors of one server share `looking`, which has one permit.
    pub fn new(limits: DoorLimits, paths: Paths, looking: Arc<Semaphore>) -> Arc<Self> {
        Self::secured(limits, paths, looking, Arc::default(), Protocol::Other)
    }

    /// Makes a door with requirements on its callers. They speak `protocol`.
    pub fn secured(
        limits: DoorLimits,
        paths: Paths,
        looking: Arc<Semaphore>,
        access: Arc<Access>,
        protocol: Protocol,
    ) -> Arc<Self> {
        limits.incoming_bytes.take_up();
        limits.outgoing_bytes.take_up();
        let limits = Arc::new(limits);
        let door = Self {
            paths,
            access,
            protocol,
            started: Instant::now(),
            looking,
            registry: Mutex::new(Registry::new(Arc::clone(&limits))),
            proofs: Proofs::new(&limits, true),
            handshake: AtomicU64::new(HANDSHAKE),
            limits,
        };
        door.report_use(&door.registry.lock());
        Arc::new(door)
    }

    /// Returns the limits.
    pub fn limits(&self) -> &DoorLimits {
        &self.limits
    }

    /// Returns the paths of special calls.
    pub fn paths(&self) -> &Paths {
        &self.paths
    }

    /// Opens a connection, by TLS if that is required. Returns the certificate of its caller.
    ///
    /// # Errors
    ///
    /// If the caller does not do what is required.
    pub(crate) async fn open(
        &self,
        socket: TcpStream,
        connection: &Connection,
    ) -> io::Result<(Socket, Option<Certificate>)> {
        let (socket, tls) = self.access.look(socket, self.protocol).await?;
        let Some(tls) = tls else {
            return Ok((Socket::Left(socket), None));
        };
        let handshake = tls.accept(socket, self.protocol);
        let (stream, certificate) = self.in_turn(connection, handshake).await?;
        Ok((Socket::Right(Box::new(stream)), certificate))
    }

    /// Does a handshake within the rates of its caller and of all.
    pub(crate) async fn in_turn<T>(
        &self,
        connection: &Connection,
        handshake: impl Future<Output = T>,
    ) -> T {
        let expected = Duration::from_nanos(self.handshake.load(Ordering::Relaxed));
        let of_caller = &connection.of_caller.proofs;
        for proofs in [of_caller, &self.proofs] {
            let refuse = || _ = self.refuse(&self.limits.handshake_time_per_caller);
            proofs.begin(expected, || self.now(), refuse).await;
        }
        let mut handshake = pin!(handshake);
        let mut work = Work {
            door: self,
            of_caller,
            expected,
            took: Duration::ZERO,
        };
        let done = poll_fn(|cx| {
            let started = Instant::now();
            let polled = handshake.as_mut().poll(cx);
            work.took += started.elapsed();
            polled
        });
        done.await
    }

    /// Returns whether all that was proved on a connection is still valid.
    pub(crate) fn is_valid(&self, connection: &Connection) -> bool {
        let holders = connection.holders.lock();
        self.access
            .is_valid(connection.certificate.as_ref(), &holders)
    }

    /// Returns the holder of a token. Beyond the rates of unknown tokens, it knows only those that the connection has
    /// proved before.
    fn holder(
        &self,
        connection: &Connection,
        tokens: &Tokens,
        token: &[u8],
    ) -> Result<Arc<Holder>, Denied> {
        let (hash, now) = (tokens::hash(token), self.now());
        let has_proved = connection.holders.lock().iter().any(|it| it.hash == hash);
        let rates = [&connection.of_caller.proofs, &self.proofs];
        if !has_proved && rates.iter().any(|it| !it.may_guess(now)) {
            let limit = &self.limits.unknown_tokens_per_caller;
            return Err(Denied::Guesses(limit.texts(), self.refuse(limit)));
        }
        let Some(holder) = tokens.find(&hash) else {
            rates.iter().for_each(|it| it.note_guess(now));
            return Err(Denied::UnknownToken);
        };
        if !has_proved {
            connection.holders.lock().push(Arc::clone(&holder));
        }
        Ok(holder)
    }

    /// Counts a failed handshake, and logs each reason once a minute.
    pub(crate) fn note_handshake_failure(&self, peer: Option<SocketAddr>, error: &io::Error) {
        // A probe that connects and closes at once, or a caller that refuses this server.
        let peer = peer.map(display);
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return debug!(peer, "a connection ended before its handshake");
        }
        match self.access.failures.note(&error.to_string(), self.now()) {
            Some(failures) => warn!(peer, %error, failures, "a connection was refused"),
            None => debug!(peer, %error, "a connection was refused"),
        }
    }

    /// Counts a refused call, and logs each reason once a minute.
    fn note_denied(&self, connection: &Connection, path: &str, denied: &Denied) {
        let (caller, reason) = (connection.caller, denied.to_string());
        match self.access.denied.note(&reason, self.now()) {
            Some(calls) => warn!(%caller, path, reason, calls, "a call was refused"),
            None => debug!(%caller, path, reason, "a call was refused"),
        }
    }

    /// Returns the proof of a call on a connection.
    ///
    /// # Errors
    ///
    /// If it needs an identity or a role that its caller does not have.
    pub(crate) fn prove(
        &self,
        connection: &Connection,
        path: &str,
        headers: &HeaderMap,
    ) -> Result<Proof, Denied> {
        if !self.paths.only.is_empty() && !self.paths.only.contains(&path) {
            return Err(Denied::NotHere);
        }
        if !self.access.needs_identity {
            return Ok(Proof::default());
        }
        let needs: &[Role] = if self.paths.open.contains(&path) {
            &[]
        } else if self.paths.of_all.contains(&path) {
            &ANY_ROLE
        } else if self.paths.of_servers.contains(&path) {
            &[Role::Server]
        } else {
            &CLIENT_ROLES
        };
        let token = access::token(headers);
        let find = |tokens: &Tokens, token: &[u8]| self.holder(connection, tokens, token);
        let proof = self.access.prove(connection.identity(), token, needs, find);
        proof.inspect_err(|denied| self.note_denied(connection, path, denied))
    }

    /// Returns the identity of a client, by a token or else by its certificate. None: it needs none.
    ///
    /// # Errors
    ///
    /// If it proves none, or is not a client.
    pub(crate) fn prove_client(
        &self,
        connection: &Connection,
        token: Option<&[u8]>,
    ) -> Result<Option<Identity>, Denied> {
        let certificate = connection.identity();
        let find = |tokens: &Tokens, token: &[u8]| self.holder(connection, tokens, token);
        let proof = self.access.prove(certificate, token, &CLIENT_ROLES, find);
        // A client without a certificate sends its token later.
        if let (Some(_), Err(denied)) = (token, &proof) {
            self.note_denied(connection, "AUTH", denied);
        }
        proof.map(|proof| proof.identity)
    }

    /// Waits for the turn to look at everything. None: the semaphore is closed.
    pub(crate) async fn turn_to_look(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.looking).acquire_owned().await.ok()
    }

    /// Returns the longest time for a handshake, headers or a message to arrive, and for a client to read an answer.
    pub fn patience(&self) -> Duration {
        self.limits.patience.span()
    }

    /// Returns the time since the start.
    pub fn now(&self) -> Duration {
        self.started.elapsed()
    }

    /// Counts a refusal for `limit`. Returns the number of earlier ones.
    pub fn refuse(&self, limit: &Limit) -> u64 {
        limit.refuse(self.now())
    }

    /// Counts a refusal for `limit`. Returns its status, with a retry delay.
    pub fn exhausted(&self, limit: &Limit) -> RpcStatus {
        overload::exhausted(limit.texts(), self.refuse(limit))
    }

    /// Admits a new connection. At a limit, evicts another connection in its stead. None: the new connection is
    /// refused.
    pub fn admit(
        &self,
        caller: CallerId,
        certificate: Option<Certificate>,
    ) -> Option<Arc<Connection>> {
        let mut registry = self.registry.lock();
        let admission = registry.admit(caller, certificate, self.now());
        self.report_use(&registry);
        drop(registry);
        if let Some(full) = admission.full {
            self.refuse(&full);
        }
        if let Some(evicted) = admission.evicted {
            evicted.evict();
        }
        admission.admitted
    }

    /// Evicts a silent connection, because the system has no room for another one.
    pub(crate) fn make_room(&self) {
        let silent = self.registry.lock().make_room(self.now());
        if let Some(silent) = silent {
            silent.evict();
        }
    }

    /// Removes a connection, and returns its bytes to the budgets.
    pub(crate) fn close(&self, connection: &Connection) {
        // Its bytes are free before it is no longer known, or another connection would be evicted for them.
        connection.close();
        self.note_written(connection, connection.unread());
        let mut registry = self.registry.lock();
        registry.remove(connection, self.now());
        self.report_use(&registry);
    }

    fn report_use(&self, registry: &Registry) {
        let count = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        let limits = &self.limits;
        limits.connections.set_used(count(registry.len()));
        let largest = count(registry.largest());
        limits.connections_per_caller.set_used(largest);
    }

    /// Counts an answer on its way. If there is no room for it, evicts the connection with the most unread bytes.
    /// Refuses the answer only if that connection is this one.
    ///
    /// # Errors
    ///
    /// If the answer is refused: a number that spreads the retries of refused clients.
    pub(crate) fn note_answer(&self, connection: &Connection, bytes: u64) -> Result<(), u64> {
        let used = &connection.of_caller.outgoing;
        let limits = &self.limits;
        let mut goes = None;
        if !limits.outgoing_bytes_per_caller.take_of(used, bytes) {
            goes = Some((&limits.outgoing_bytes_per_caller, Some(connection.caller)));
            limit::overtake(used, bytes);
        }
        if !limits.outgoing_bytes.take(bytes) {
            goes = Some((&limits.outgoing_bytes, None));
            limits.outgoing_bytes.overtake(bytes);
        }
        connection.note_answer(bytes);
        if connection.is_closed() || connection.goes() {
            self.note_written(connection, bytes);
            return Err(connection.id);
        }
        goes.map_or(Ok(()), |(limit, of)| {
            self.evict_most_unread(limit, of, connection)
        })
    }

    /// Evicts the connection with the most unread bytes, of one caller or of all, unless connections that close already
    /// make enough room: otherwise callers that read everything would go in their stead.
    ///
    /// # Errors
    ///
    /// If it is `connection`, or no connection is left to evict: the number of earlier refusals.
    fn evict_most_unread(
        &self,
        limit: &Limit,
        of: Option<CallerId>,
        connection: &Connection,
    ) -> Result<(), u64> {
        let (most, leaving) = self.registry.lock().most_unread(of);
        let used = match of {
            Some(_) => connection.of_caller.outgoing.load(Ordering::Relaxed),
            None => limit.used(),
        };
        if used.saturating_sub(leaving) <= limit.max() {
            return Ok(());
        }
        let number = self.refuse(limit);
        let Some(most) = most else {
            // All connections are already evicted.
            return Err(number);
        };
        most.evict();
        if most.id == connection.id {
            return Err(number);
        }
        Ok(())
    }

    /// Counts written bytes of answers.
    pub(crate) fn note_written(&self, connection: &Connection, bytes: u64) {
        let counted = connection.note_written(bytes);
        if counted > 0 {
            limit::give_back(&connection.of_caller.outgoing, counted);
            self.limits.outgoing_bytes.give_back(counted);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door_limits::testing::limits;

    #[test]
    fn an_answer_has_room_while_connections_with_unread_bytes_close() {
        let door = Door::new(limits(3, 3), Paths::default(), Arc::new(Semaphore::new(1)));
        door.limits().outgoing_bytes.set_max(100);
        let connect = |last| {
            let caller = CallerId::of([192, 0, 2, last].into());
            door.admit(caller, None).unwrap()
        };
        let (greedy, honest) = (connect(1), connect(2));
        door.note_answer(&honest, 10).unwrap();
        assert!(door.note_answer(&greedy, 1_000).is_err());
        assert!(greedy.goes());
        assert!(door.note_answer(&greedy, 1).is_err(), "it gets no more");
        door.note_answer(&honest, 10).unwrap();
        door.close(&greedy);
        door.note_answer(&honest, 80).unwrap();
        assert!(!honest.goes());
        assert_eq!(door.limits().outgoing_bytes.used(), 100);
        assert!(door.note_answer(&honest, 1).is_err());
    }
}
