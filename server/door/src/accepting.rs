//! A thread that only accepts connections.
//!
//! When all clients return at once, the system queues a limited number of them (`--listen-backlog`, and at most
//! `net.core.somaxconn`). It drops the others, and their clients retry after 1 s, 3 s, 7 s and 15 s. An accept task on
//! the serving runtime would run only after all serving tasks, which is too late. The system schedules a thread fairly,
//! and accepting a connection costs a tenth of serving it. So this thread accepts each connection at once, and a
//! waiting connection costs little but memory.
//!
//! The number of open sockets is at most the limit on connections plus [`NEWCOMERS`]: evicted connections close first.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::door::Door;
use crate::listener::Listener;
use crate::refusals::Refusals;

/// Delay after a failed accept.
const PAUSE: Duration = Duration::from_millis(100);

/// Sockets that may be open beyond the limit on connections. They are newcomers that replace evicted connections.
const NEWCOMERS: usize = 16;

/// An accepted connection.
#[derive(Debug)]
pub(super) struct Arrival {
    /// Not registered with a runtime yet.
    pub(super) socket: TcpStream,
    /// Absent: a Unix socket.
    pub(super) peer: Option<SocketAddr>,
    /// Permit that its receiver keeps while the socket is open.
    pub(super) room: OwnedSemaphorePermit,
}

/// Accepts connections until `stop`, or until the receiver is dropped. Closes the socket before the arrivals end.
///
/// # Errors
///
/// If the system cannot start another thread.
pub(super) fn start(
    listener: Listener,
    door: Arc<Door>,
    stop: CancellationToken,
) -> io::Result<UnboundedReceiver<Arrival>> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (sender, arrivals) = mpsc::unbounded_channel();
    thread::Builder::new()
        .name("accept".to_owned())
        .spawn(move || {
            let accepting = async {
                match listener.move_here() {
                    Ok(listener) => accept(listener, &door, &sender, &stop).await,
                    Err(error) => warn!(%error, "connections cannot be accepted"),
                }
            };
            runtime.block_on(accepting);
            drop(sender);
        })?;
    Ok(arrivals)
}

async fn accept(
    listener: Listener,
    door: &Door,
    sender: &UnboundedSender<Arrival>,
    stop: &CancellationToken,
) {
    let most = door.limits().connections.count().saturating_add(NEWCOMERS);
    let failures = Refusals::default();
    let rooms = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
    loop {
        let accepting = async {
            let room = Arc::clone(&rooms).acquire_owned().await;
            (room, listener.accept().await)
        };
        let accepted = tokio::select! {
            accepted = accepting => accepted,
            () = stop.cancelled() => return,
            () = sender.closed() => return,
        };
        let (Ok(room), accepted) = accepted else {
            // The semaphore is never closed.
            return;
        };
        match accepted {
            Ok((socket, peer)) => {
                let arrival = Arrival { socket, peer, room };
                if sender.send(arrival).is_err() {
                    return;
                }
            }
            // The client closed it before it was accepted.
            Err(error) if is_of_the_other_side(&error) => {}
            Err(error) => {
                if let Some(failures) = failures.note(&error.to_string(), door.now()) {
                    warn!(%error, failures, "connections cannot be accepted");
                }
                door.make_room();
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

fn is_of_the_other_side(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | Interrupted
    )
}

#[cfg(test)]
mod tests;
