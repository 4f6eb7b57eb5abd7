//! The queue of messages to a child server, and the end of its stream.
//!
//! The queue has a limit on messages and on bytes. At a limit, the parent closes the stream of the child, which opens a
//! new stream or polls. The end of the stream does not go through the queue, so a child learns the reason even when the
//! queue is full.

use std::future::ready;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use doorward_proto::doorman as wire;
use futures_util::stream::{self, BoxStream, StreamExt};
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status as RpcStatus;

use crate::rpc::MESSAGE_BYTES_MAX;

/// Messages to a child that it has not taken yet.
const BACKLOG_MAX: usize = 64;

/// Bytes to a child that it has not taken yet. An empty queue takes one message of any size.
const BACKLOG_BYTES_MAX: usize = MESSAGE_BYTES_MAX;

/// A message to a child.
pub type ChildMessage = wire::GetServerCapacityResponse;

/// Sender of messages to a child.
#[derive(Clone, Debug)]
pub struct ChildOutbox {
    queue: mpsc::Sender<(usize, ChildMessage)>,
    shared: Arc<Shared>,
}

/// The stream of messages to a child.
pub type Outgoing = BoxStream<'static, Result<ChildMessage, RpcStatus>>;

#[derive(Debug, Default)]
struct Shared {
    /// Bytes that the child has not taken.
    bytes: AtomicUsize,
    ending: OnceLock<RpcStatus>,
}

/// Reason why a message was not queued: the child has not taken earlier messages, or the stream is over.
pub type NotSent = mpsc::error::TrySendError<()>;

/// Makes a queue.
pub fn channel() -> (ChildOutbox, Outgoing) {
    let (sender, receiver) = mpsc::channel(BACKLOG_MAX);
    let shared = Arc::new(Shared::default());
    let answers = ChildOutbox {
        queue: sender,
        shared: Arc::clone(&shared),
    };
    let of_end = Arc::clone(&shared);
    let taken = ReceiverStream::new(receiver).map(move |(size, answer)| {
        shared.bytes.fetch_sub(size, Ordering::Relaxed);
        Ok(answer)
    });
    let end = stream::once(async move { of_end.ending.get().cloned() });
    let outgoing = taken.chain(end.filter_map(|status| ready(status.map(Err))));
    (answers, outgoing.boxed())
}

impl ChildOutbox {
    /// Queues a message.
    ///
    /// # Errors
    ///
    /// If the child has not taken enough of the earlier messages, or the stream is over.
    pub fn try_send(&self, answer: ChildMessage) -> Result<(), NotSent> {
        if self.shared.bytes.load(Ordering::Relaxed) >= BACKLOG_BYTES_MAX {
            return Err(NotSent::Full(()));
        }
        let permit = self.queue.try_reserve()?;
        let size = answer.encoded_len();
        self.shared.bytes.fetch_add(size, Ordering::Relaxed);
        permit.send((size, answer));
        Ok(())
    }

    /// Sets the end of the stream, which follows all queued messages once no sender is left. Returns whether it was not
    /// set before: only the first call counts. A stream without a set end ends in order.
    pub fn end(&self, status: RpcStatus) -> bool {
        self.shared.ending.set(status).is_ok()
    }

    /// Returns the end of the stream, if it is set.
    pub fn ending(&self) -> Option<&RpcStatus> {
        self.shared.ending.get()
    }
}

#[cfg(test)]
mod tests;
