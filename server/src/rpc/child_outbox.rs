//! What is on its way to a child server and not taken yet: so many messages, and so many bytes; and how
//! its stream ends.
//!
//! A child that takes nothing costs its parent no more than that: its stream is closed then, and it opens a
//! new one, or polls. The end of a stream has a place of its own, so that a child hears why even then.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
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

/// A message to a child.
pub type ChildMessage = wire::GetServerCapacityResponse;

/// How a stream ends: in order, or with a status that says why.
pub type StreamEnding = Result<(), RpcStatus>;

/// Where answers to a child are put.
#[derive(Clone, Debug)]
pub struct ChildOutbox {
    queue: mpsc::Sender<(usize, ChildMessage)>,
    shared: Arc<Shared>,
}

/// The answers, as the child takes them.
#[derive(Debug)]
pub struct Outgoing {
    queue: mpsc::Receiver<(usize, ChildMessage)>,
    shared: Arc<Shared>,
    /// Its child has heard how it ends.
    is_over: bool,
}

#[derive(Debug, Default)]
struct Shared {
    /// Those that are not taken.
    bytes: AtomicUsize,
    ending: OnceLock<StreamEnding>,
}

/// A place for one answer.
#[derive(Debug)]
pub struct OutboxPlace<'a> {
    permit: mpsc::Permit<'a, (usize, ChildMessage)>,
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
pub fn channel() -> (ChildOutbox, Outgoing) {
    let (sender, receiver) = mpsc::channel(BACKLOG_MAX);
    let shared = Arc::new(Shared::default());
    let answers = ChildOutbox {
        queue: sender,
        shared: Arc::clone(&shared),
    };
    let outgoing = Outgoing {
        queue: receiver,
        shared,
        is_over: false,
    };
    (answers, outgoing)
}

impl ChildOutbox {
    /// Puts an answer on its way, if the child has taken enough of what was before it.
    ///
    /// # Errors
    ///
    /// If it has not, or the stream is over.
    pub fn try_send(&self, answer: ChildMessage) -> Result<(), NotSent> {
        if self.is_full() {
            return Err(NotSent::Full);
        }
        let permit = self.queue.try_reserve().map_err(|error| match error {
            mpsc::error::TrySendError::Full(()) => NotSent::Full,
            mpsc::error::TrySendError::Closed(()) => NotSent::Closed,
        })?;
        let bytes = &self.shared.bytes;
        OutboxPlace { permit, bytes }.send(answer);
        Ok(())
    }

    /// Waits for a place. Cancel safe.
    ///
    /// # Errors
    ///
    /// If the child has too many bytes to take, or the stream is over.
    pub async fn reserve(&self) -> Result<OutboxPlace<'_>, NotSent> {
        let permit = self.queue.reserve().await.map_err(|_| NotSent::Closed)?;
        if self.is_full() {
            return Err(NotSent::Full);
        }
        let bytes = &self.shared.bytes;
        Ok(OutboxPlace { permit, bytes })
    }

    /// Says how the stream ends when nobody sends any more, after all that was put on its way. Returns
    /// whether nobody had said it before: the first word counts. If nobody says it, it ends in order.
    pub fn end(&self, ending: StreamEnding) -> bool {
        self.shared.ending.set(ending).is_ok()
    }

    /// How the stream ends, if somebody has said it.
    pub fn ending(&self) -> Option<&StreamEnding> {
        self.shared.ending.get()
    }

    fn is_full(&self) -> bool {
        self.shared.bytes.load(Ordering::Relaxed) >= BACKLOG_BYTES_MAX
    }
}

impl OutboxPlace<'_> {
    /// Puts an answer there.
    pub fn send(self, answer: ChildMessage) {
        let size = answer.encoded_len();
        self.bytes.fetch_add(size, Ordering::Relaxed);
        self.permit.send((size, answer));
    }
}

impl Stream for Outgoing {
    type Item = Result<ChildMessage, RpcStatus>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = std::task::ready!(self.queue.poll_recv(cx));
        if let Some((size, answer)) = next {
            self.shared.bytes.fetch_sub(size, Ordering::Relaxed);
            return Poll::Ready(Some(Ok(answer)));
        }
        if std::mem::replace(&mut self.is_over, true) {
            return Poll::Ready(None);
        }
        let status = self.shared.ending.get().and_then(|it| it.clone().err());
        Poll::Ready(status.map(Err))
    }
}

#[cfg(test)]
mod tests;
