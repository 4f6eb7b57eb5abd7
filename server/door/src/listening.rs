//! Listeners, and a loop that serves their connections. At a limit, a new connection evicts an old one.
//!
//! [`accepting`] accepts the connections. If the process has no file descriptor left, accepting fails at once until a
//! connection closes. So after each failure the thread evicts the oldest silent connection and pauses; without the
//! pause it would spin.

use std::fmt::Display;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use doorward_tls::server::Certificate;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::accepting::{self, Arrival};
use crate::caller_id::CallerId;
use crate::connection::Connection;
use crate::door::Door;
use crate::listener::Listener;
use crate::socket::Socket;
use crate::visit::Visit;

/// Checks of a connection within the patience.
const LOOKS: u32 = 2;

/// Bytes that a client with at least as many unread has to read within the patience.
const MUCH: u64 = 16 * 1024;

/// Reason to close a connection whose caller is no longer trusted.
const INVALID: &str = "its certificate or token is no longer valid";

/// Default backlog: as many connections as the system allows. Linux keeps at most `net.core.somaxconn`.
pub const LISTEN_BACKLOG: NonZeroU32 = const { NonZeroU32::new(65_535).unwrap() };

/// Accepts connections and serves each until `stop`, then finishes what is in progress. Cuts the connections off when
/// dropped.
pub(super) async fn serve<F, E>(
    listener: impl Into<Listener>,
    door: Arc<Door>,
    stop: CancellationToken,
    serve: impl Fn(Socket, Visit, CancellationToken) -> F + Send + Sync + 'static,
) where
    F: Future<Output = Result<(), E>> + Send + 'static,
    E: Display,
{
    let mut arrivals = match accepting::start(listener.into(), Arc::clone(&door), stop.clone()) {
        Ok(arrivals) => arrivals,
        Err(error) => {
            warn!(%error, "connections cannot be accepted");
            return;
        }
    };
    let serve = Arc::new(serve);
    let mut connections = JoinSet::new();
    loop {
        let arrival = tokio::select! {
            arrival = arrivals.recv() => arrival,
            Some(_) = connections.join_next() => continue,
        };
        let Some(Arrival { socket, peer, room }) = arrival else {
            break;
        };
        let caller = peer.map_or(CallerId::UNIX, |peer| CallerId::of(peer.ip()));
        let Some(admitted) = Admitted::new(&door, caller, None) else {
            debug!(?peer, "a connection too many is closed");
            continue;
        };
        let socket = match TcpStream::from_std(socket) {
            Ok(socket) => socket,
            Err(error) => {
                warn!(%error, "a connection cannot be served");
                continue;
            }
        };
        // The messages are small, and each is waited for.
        let _ = socket.set_nodelay(true);
        let (serve, stop) = (Arc::clone(&serve), stop.child_token());
        connections.spawn(async move {
            // Order of the drops: the socket closes, the connection leaves the registry, and the permit is free again.
            let _room = room;
            let Some((socket, admitted)) = open(socket, admitted, peer).await else {
                return;
            };
            let Visit { door, connection } = &admitted.0;
            tokio::select! {
                served = serve(socket, admitted.0.clone(), stop.clone()) => {
                    if let Err(error) = served {
                        debug!(%error, "a connection ended");
                    }
                }
                () = connection.evicted() => debug!(?peer, "a silent connection makes room"),
                why = stuck(door, connection, &stop) => {
                    if why != INVALID {
                        door.refuse(&door.limits().patience);
                    }
                    debug!(?peer, why, "a connection is closed");
                }
            }
        });
    }
    while connections.join_next().await.is_some() {}
}

/// Opens the socket of a connection, which becomes that of its identity if it proves one. None: it is closed.
async fn open(
    socket: TcpStream,
    admitted: Admitted,
    peer: Option<SocketAddr>,
) -> Option<(Socket, Admitted)> {
    let Visit { door, connection } = &admitted.0;
    let opened = tokio::select! {
        opened = tokio::time::timeout(door.patience(), door.open(socket, connection)) => opened,
        () = connection.evicted() => return None,
    };
    let (socket, certificate) = match opened {
        Ok(Ok(opened)) => opened,
        Ok(Err(error)) => {
            door.note_handshake_failure(peer, &error);
            return None;
        }
        Err(_) => {
            door.refuse(&door.limits().patience);
            return None;
        }
    };
    let Some(certificate) = certificate else {
        return Some((socket, admitted));
    };
    let identity = &certificate.identity;
    let (door, caller) = (Arc::clone(door), connection.caller.identified(identity));
    debug!(?peer, %identity, "a caller has proved its identity");
    drop(admitted);
    let admitted = Admitted::new(&door, caller, Some(certificate))?;
    Some((socket, admitted))
}

/// An open connection. It leaves the registry when this is dropped.
#[derive(Debug)]
struct Admitted(Visit);

impl Admitted {
    /// Admits a connection. None: there is no room for it.
    fn new(door: &Arc<Door>, caller: CallerId, certificate: Option<Certificate>) -> Option<Self> {
        let (door, connection) = (Arc::clone(door), door.admit(caller, certificate)?);
        Some(Self(Visit { door, connection }))
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let Visit { door, connection } = &self.0;
        door.close(connection);
    }
}

/// Waits until the client stalls for longer than the patience, or its proof is no longer valid. Returns the reason. In
/// the latter case, calls in progress may end first: the client may have a new certificate for its next connection.
async fn stuck(door: &Door, connection: &Connection, stop: &CancellationToken) -> &'static str {
    let patience = door.patience();
    let pace = patience / LOOKS;
    let mut written = connection.written();
    let mut written_at = door.now();
    loop {
        tokio::time::sleep(pace).await;
        let now = door.now();
        if !door.is_valid(connection) {
            stop.cancel();
            tokio::time::sleep(pace).await;
            return INVALID;
        }
        if connection.midway.has_lasted(patience, now) {
            return "a frame, or headers, took too long to arrive";
        }
        if connection.blocked.has_lasted(patience, now) {
            return "nothing is taken from it";
        }
        let unread = connection.unread();
        // A client with many unread bytes must read more than crumbs.
        let moves = if unread >= MUCH { MUCH } else { 1 };
        if unread == 0 || connection.written().saturating_sub(written) >= moves {
            written = connection.written();
            written_at = now;
        } else if now.saturating_sub(written_at) >= patience {
            return "answers are not read";
        }
    }
}
