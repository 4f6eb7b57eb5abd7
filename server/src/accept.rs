//! Accepting connections, patiently.
//!
//! When the process has no file descriptor left, accepting fails at once, again and again, until a
//! connection is closed. Without a pause in between, the server would spend its time on failing.

use std::io;
use std::time::Duration;

use tokio_stream::{Stream, StreamExt};
use tracing::warn;

/// How long to wait after a connection could not be accepted.
pub const PAUSE: Duration = Duration::from_millis(100);

/// The connections, with a pause after each that could not be accepted.
pub fn patiently<C>(
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

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use super::*;

    #[tokio::test]
    async fn connections_are_accepted_again_after_a_failure() {
        let arriving = [
            Ok(1),
            Err(io::Error::from(io::ErrorKind::OutOfMemory)),
            Ok(2),
        ];
        let mut accepted = pin!(patiently(tokio_stream::iter(arriving), Duration::ZERO));
        assert!(matches!(accepted.next().await, Some(Ok(1))));
        assert!(matches!(accepted.next().await, Some(Err(_))));
        assert!(matches!(accepted.next().await, Some(Ok(2))));
        assert!(accepted.next().await.is_none());
    }
}
