//! A thread that does nothing but accept connections.
//!
//! When all clients come back at once, the system keeps only so many of them waiting (`--listen-backlog`, and never
//! more than `net.core.somaxconn`). What it has no room for it drops, and then a client tries again after a second,
//! three, seven, fifteen. A task beside those that serve has its turn only once all of these had theirs, and that is
//! too late. A thread is given its share by the system, and taking a connection costs a tenth of serving one: so
//! whoever comes is taken at once, and waits here for little more than memory.
//!
//! No more sockets are open than there may be connections, and a few: those that are asked to go make room first.

use std::io;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tracing::warn;

use crate::door::Door;

/// How long to wait after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// So many sockets may be open beyond the connections that there may be: newcomers, in whose stead others are
/// asked to go.
const NEWCOMERS: usize = 16;

/// Somebody who has connected.
#[derive(Debug)]
pub(super) struct Arrival {
    /// Of no runtime yet.
    pub(super) socket: TcpStream,
    pub(super) peer: SocketAddr,
    /// To be kept for as long as the socket is open.
    pub(super) room: OwnedSemaphorePermit,
}

/// Begins to accept, until `stop` or until nobody takes the arrivals any more. The socket is closed before the
/// arrivals end.
///
/// # Errors
///
/// If the system has no thread for it.
pub(super) fn start(
    listener: TcpListener,
    door: Arc<Door>,
    stop: CancellationToken,
) -> io::Result<UnboundedReceiver<Arrival>> {
    let listener = listener.into_std()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (sender, arrivals) = mpsc::unbounded_channel();
    thread::Builder::new()
        .name("accept".to_owned())
        .spawn(move || {
            let accepting = async {
                match TcpListener::from_std(listener) {
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
    listener: TcpListener,
    door: &Door,
    sender: &UnboundedSender<Arrival>,
    stop: &CancellationToken,
) {
    let most = door.bounds().connections.saturating_add(NEWCOMERS);
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
            // Nobody closes the semaphore.
            return;
        };
        let accepted = accepted.and_then(|(socket, peer)| Ok((socket.into_std()?, peer)));
        match accepted {
            Ok((socket, peer)) => {
                let arrival = Arrival { socket, peer, room };
                if sender.send(arrival).is_err() {
                    return;
                }
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
