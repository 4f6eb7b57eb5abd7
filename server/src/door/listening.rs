//! Accepting connections, always: at a limit somebody else goes.
//!
//! When the process has no file descriptor left, accepting fails at once, again and again, until a
//! connection is closed: then the oldest silent one is, after a pause, without which the server would spend
//! its time on failing.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::{debug, warn};

use crate::door::Door;
use crate::door::connection::Connection;

/// How long to wait after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

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
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            () = stop.cancelled() => break,
        };
        match accepted {
            Ok((socket, peer)) => {
                let Some(connection) = door.admit(peer) else {
                    debug!(%peer, "a connection too many is closed");
                    continue;
                };
                // Small messages, each waited for.
                let _ = socket.set_nodelay(true);
                let closing = Closing(Arc::clone(&door), Arc::clone(&connection));
                let serving = serve(socket, Arc::clone(&connection));
                let door = Arc::clone(&door);
                connections.spawn(async move {
                    let closing = closing;
                    tokio::select! {
                        () = serving => {}
                        () = connection.evicted() => debug!(%peer, "a silent connection makes room"),
                        why = stuck(&door, &connection) => {
                            door.refuse(crate::limits::Limit::Patience);
                            debug!(%peer, why, "a connection is closed");
                        }
                    }
                    drop(closing);
                });
            }
            // It was gone before it was accepted.
            Err(error) if is_of_the_other_side(&error) => {}
            Err(error) => {
                warn!(%error, "a connection cannot be accepted");
                door.make_room();
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

fn is_of_the_other_side(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | Interrupted
    )
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
