//! What is on its way to a child server and not taken yet: so many messages, and so many bytes.
//!
//! A child that takes nothing costs its parent no more than that: its stream is closed then, and it opens a
//! new one, or polls.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use doorward_proto::doorman as wire;
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tonic::Status as RpcStatus;

use crate::rpc::MESSAGE_BYTES_MAX;

/// Messages to a child that it has not taken yet.
const BACKLOG_MAX: usize = 64;

/// Bytes to a child that it has not taken yet: one message may always wait.
const BACKLOG_BYTES_MAX: usize = MESSAGE_BYTES_MAX;

/// A message, or the end of the stream and why.
pub type Answer = Result<wire::GetServerCapacityResponse, RpcStatus>;

/// Where answers to a child are put.
#[derive(Clone, Debug)]
pub struct Answers {
    queue: mpsc::Sender<(usize, Answer)>,
    bytes: Arc<AtomicUsize>,
}

/// The answers, as the child takes them.
#[derive(Debug)]
pub struct Outgoing {
    queue: mpsc::Receiver<(usize, Answer)>,
    bytes: Arc<AtomicUsize>,
}

/// A place for one answer.
#[derive(Debug)]
pub struct Place<'a> {
    permit: mpsc::Permit<'a, (usize, Answer)>,
    bytes: &'a AtomicUsize,
}

/// Why an answer was not put on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotSent {
    /// The child takes nothing.
    Full,
    /// The stream is over.
    Closed,
}

/// A way to a child.
pub fn channel() -> (Answers, Outgoing) {
    let (sender, receiver) = mpsc::channel(BACKLOG_MAX);
    let bytes = Arc::new(AtomicUsize::new(0));
    let answers = Answers {
        queue: sender,
        bytes: Arc::clone(&bytes),
    };
    let outgoing = Outgoing {
        queue: receiver,
        bytes,
    };
    (answers, outgoing)
}

impl Answers {
    /// Puts an answer on its way, if the child has taken enough of what was before it.
    ///
    /// # Errors
    ///
    /// If it has not, or the stream is over.
    pub fn try_send(&self, answer: Answer) -> Result<(), NotSent> {
        if self.is_full() {
            return Err(NotSent::Full);
        }
        let permit = self.queue.try_reserve().map_err(|error| match error {
            mpsc::error::TrySendError::Full(()) => NotSent::Full,
            mpsc::error::TrySendError::Closed(()) => NotSent::Closed,
        })?;
        let bytes = &self.bytes;
        Place { permit, bytes }.send(answer);
        Ok(())
    }

    /// Waits for a place. Cancel safe.
    ///
    /// # Errors
    ///
    /// If the child has too many bytes to take, or the stream is over.
    pub async fn reserve(&self) -> Result<Place<'_>, NotSent> {
        let permit = self.queue.reserve().await.map_err(|_| NotSent::Closed)?;
        if self.is_full() {
            return Err(NotSent::Full);
        }
        let bytes = &self.bytes;
        Ok(Place { permit, bytes })
    }

    fn is_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) >= BACKLOG_BYTES_MAX
    }
}

impl Place<'_> {
    /// Puts an answer there.
    pub fn send(self, answer: Answer) {
        let size = answer.as_ref().map_or(0, Message::encoded_len);
        self.bytes.fetch_add(size, Ordering::Relaxed);
        self.permit.send((size, answer));
    }
}

impl Stream for Outgoing {
    type Item = Answer;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Answer>> {
        let next = std::task::ready!(self.queue.poll_recv(cx));
        Poll::Ready(next.map(|(size, answer)| {
            self.bytes.fetch_sub(size, Ordering::Relaxed);
            answer
        }))
    }
}

#[cfg(test)]
mod tests {
    use tokio_stream::StreamExt;

    use super::*;

    fn answer(bytes: usize) -> Answer {
        Ok(wire::GetServerCapacityResponse {
            ancestor: vec!["x".repeat(bytes)],
            ..wire::GetServerCapacityResponse::default()
        })
    }

    #[tokio::test]
    async fn a_child_that_takes_nothing_has_no_more_than_so_much_waiting() {
        let (answers, mut outgoing) = channel();
        let sent = (0..1_000).take_while(|_| answers.try_send(answer(10)).is_ok());
        assert_eq!(sent.count(), BACKLOG_MAX);
        for _ in 0..BACKLOG_MAX {
            outgoing.next().await.expect("it was sent").expect("well");
        }
        let large = BACKLOG_BYTES_MAX / 4;
        let sent = (0..1_000).take_while(|_| answers.try_send(answer(large)).is_ok());
        assert_eq!(sent.count(), 4);
        assert!(matches!(answers.reserve().await, Err(NotSent::Full)));
        outgoing.next().await.expect("it was sent").expect("well");
        assert!(answers.reserve().await.is_ok());
        drop(outgoing);
        assert_eq!(answers.try_send(answer(1)), Err(NotSent::Closed));
    }
}
