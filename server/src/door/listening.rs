//! Serving connections, always: at a limit somebody else goes.
//!
//! [`accepting`] takes them from the system. When the process has no file descriptor left, that fails at once, again
//! and again, until a connection is closed: then the oldest silent one is, after a pause, without which the server
//! would spend its time on failing.

use std::future::Future;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::door::Door;
use crate::door::accepting::{self, Arrival};
use crate::door::connection::Connection;

/// Connections are looked at so often within the patience.
const LOOKS: u32 = 2;

/// So much of what waits to be read has to be read within the patience.
const MUCH: u64 = 16 * 1024;

/// Accepts connections and serves each until `stop`; then finishes what is in progress. Connections are cut
/// off if this is dropped.
pub(super) async fn serve<F>(
    listener: TcpListener,
    door: Arc<Door>,
    stop: CancellationToken,
    serve: impl Fn(TcpStream, Arc<Connection>) -> F,
) where
    F: Future<Output = ()> + Send + 'static,
{
    let mut arrivals = match accepting::start(listener, Arc::clone(&door), stop) {
        Ok(arrivals) => arrivals,
        Err(error) => {
            warn!(%error, "connections cannot be accepted");
            return;
        }
    };
    let mut connections = JoinSet::new();
    loop {
        let arrival = tokio::select! {
            arrival = arrivals.recv() => arrival,
            Some(_) = connections.join_next() => continue,
        };
        let Some(Arrival { socket, peer, room }) = arrival else {
            break;
        };
        let Some(connection) = door.admit(peer) else {
            debug!(%peer, "a connection too many is closed");
            continue;
        };
        let closing = Closing(Arc::clone(&door), Arc::clone(&connection));
        let socket = match TcpStream::from_std(socket) {
            Ok(socket) => socket,
            Err(error) => {
                warn!(%error, "a connection cannot be served");
                continue;
            }
        };
        // Small messages, each waited for.
        let _ = socket.set_nodelay(true);
        let serving = serve(socket, Arc::clone(&connection));
        let door = Arc::clone(&door);
        connections.spawn(async move {
            // The socket is closed first, then it counts no more, then there is room for another one.
            let (_room, closing) = (room, closing);
            tokio::select! {
                () = serving => {}
                () = connection.evicted() => debug!(%peer, "a silent connection makes room"),
                why = stuck(&door, &connection) => {
                    door.refuse(crate::limits::ServerLimit::Patience);
                    debug!(%peer, why, "a connection is closed");
                }
            }
            drop(closing);
        });
    }
    while connections.join_next().await.is_some() {}
}

/// A connection that is open; dropped, it is not.
#[derive(Debug)]
struct Closing(Arc<Door>, Arc<Connection>);

impl Drop for Closing {
    fn drop(&mut self) {
        let Self(door, connection) = self;
        door.close(connection);
    }
}

/// Waits until the other side has kept us waiting for longer than the patience, and says for what.
async fn stuck(door: &Door, connection: &Connection) -> &'static str {
    let patience = door.patience();
    let pace = patience / LOOKS;
    let mut written = connection.written();
    let mut written_at = door.now();
    loop {
        tokio::time::sleep(pace).await;
        let now = door.now();
        if connection.midway().has_lasted(patience, now) {
            return "a frame, or headers, took too long to arrive";
        }
        if connection.blocked().has_lasted(patience, now) {
            return "nothing is taken from it";
        }
        let unread = connection.unread();
        // Of much that is not read, crumbs that are read do not count.
        let moves = if unread >= MUCH { MUCH } else { 1 };
        if unread == 0 || connection.written().saturating_sub(written) >= moves {
            written = connection.written();
            written_at = now;
        } else if now.saturating_sub(written_at) >= patience {
            return "answers are not read";
        }
    }
}
