//! Accepting connections: patient with the system, impatient with those who say nothing.
//!
//! When the process has no file descriptor left, accepting fails at once, again and again, until a
//! connection is closed: without a pause in between, the server would spend its time on failing.
//!
//! A connection is served once its first byte has arrived, for in HTTP the client speaks first.
//! One that says nothing (a port scan, a health check of a load balancer) is closed after a while,
//! and at once when the server stops: it is not in flight.

use std::future::ready;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use axum::serve::Listener;
use futures_util::{Stream, StreamExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_stream::wrappers::TcpListenerStream;
use tracing::{debug, warn};

/// How long to wait after a connection could not be accepted.
const PAUSE: Duration = Duration::from_millis(100);

/// How long a connection may say nothing.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// How many connections may say nothing at the same time. While there are as many, no more are
/// accepted.
const SILENT_MAX: usize = 1024;

/// The connections to a listener that have something to say.
pub fn connections(listener: TcpListener) -> impl Stream<Item = io::Result<TcpStream>> + Send {
    patiently(TcpListenerStream::new(listener), PAUSE)
        .filter_map(|connection| ready(connection.ok()))
        .map(|connection| first_byte(connection, SILENCE_MAX))
        .buffer_unordered(SILENT_MAX)
        .filter_map(|connection| ready(connection.map(Ok)))
}

/// The connections, with a pause after each that could not be accepted.
fn patiently<C>(
    connections: impl Stream<Item = io::Result<C>>,
    pause: Duration,
) -> impl Stream<Item = io::Result<C>> {
    connections.then(move |connection| async move {
        if let Err(error) = &connection {
            warn!(%error, "a connection cannot be accepted");
            tokio::time::sleep(pause).await;
        }
        connection
    })
}

/// The connection, once its first byte has arrived, or nothing if that takes too long.
async fn first_byte(connection: TcpStream, silence_max: Duration) -> Option<TcpStream> {
    // Small messages, each waited for.
    let _ = connection.set_nodelay(true);
    // Not `readable`, which may complete without anything to read.
    match tokio::time::timeout(silence_max, connection.peek(&mut [0])).await {
        Ok(Ok(_)) => Some(connection),
        Ok(Err(_)) => None,
        Err(_) => {
            debug!("a connection said nothing and is closed");
            None
        }
    }
}

/// [`connections`] in the form that axum serves.
pub struct HttpListener {
    connections: Pin<Box<dyn Stream<Item = io::Result<TcpStream>> + Send>>,
}

impl HttpListener {
    /// The connections to a listener.
    pub fn new(listener: TcpListener) -> Self {
        Self {
            connections: Box::pin(connections(listener)),
        }
    }
}

impl Listener for HttpListener {
    type Io = TcpStream;
    /// Whoever wants to know it has it from where the listener was bound.
    type Addr = ();

    async fn accept(&mut self) -> (TcpStream, ()) {
        loop {
            match self.connections.next().await {
                Some(Ok(connection)) => return (connection, ()),
                Some(Err(_)) => {}
                // A listener never ends; should it, nobody comes any more.
                None => std::future::pending().await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use tokio::io::AsyncWriteExt;

    use super::*;

    #[tokio::test]
    async fn connections_are_accepted_again_after_a_failure() {
        let arriving = [
            Ok(1),
            Err(io::Error::from(io::ErrorKind::OutOfMemory)),
            Ok(2),
        ];
        let arriving = futures_util::stream::iter(arriving);
        let mut accepted = pin!(patiently(arriving, Duration::ZERO));
        assert!(matches!(accepted.next().await, Some(Ok(1))));
        assert!(matches!(accepted.next().await, Some(Err(_))));
        assert!(matches!(accepted.next().await, Some(Ok(2))));
        assert!(accepted.next().await.is_none());
    }

    #[tokio::test]
    async fn who_says_nothing_is_passed_over() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let silent = TcpStream::connect(address).await.expect("it listens");
        let mut speaking = TcpStream::connect(address).await.expect("it listens");
        speaking.write_all(b"PRI").await.expect("sent");
        let mut served = pin!(connections(listener));
        let first = served.next().await.expect("one").expect("in order");
        assert_eq!(
            first.peer_addr().expect("connected"),
            speaking.local_addr().expect("connected")
        );
        drop(silent);
    }

    #[tokio::test]
    async fn silence_has_an_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("bound");
        let _silent = TcpStream::connect(address).await.expect("it listens");
        let (accepted, _) = listener.accept().await.expect("accepted");
        assert!(first_byte(accepted, Duration::ZERO).await.is_none());
    }
}
