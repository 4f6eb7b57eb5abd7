//! Connections of a protocol of its own, such as that of Redis: requests and answers are bytes, and answers have the
//! order of the requests.
//!
//! A conversation takes in the bytes that are there, answers the complete requests among them, and takes in more once
//! its client has the answers. So a slow client costs no more than one read. An idle connection has no buffer here.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use doorward_tls::identity::Identity;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio_util::sync::CancellationToken;

use crate::access::Denied;
use crate::caller_id::CallerId;
use crate::charge::Charge;
use crate::door::Door;
use crate::guarded::Guarded;
use crate::listener::Listener;
use crate::listening;
use crate::response_body::InFlightCall;
use crate::socket::Socket;
use crate::visit::Visit;

/// Largest number of bytes of one read.
const READ_BYTES_MAX: usize = 16 * 1024;

/// Serves connections until `stop`. Then a conversation has to end by itself.
pub async fn serve<F>(
    listener: impl Into<Listener>,
    door: Arc<Door>,
    stop: CancellationToken,
    converse: impl Fn(Conversation) -> F + Send + Sync + 'static,
) where
    F: Future<Output = ()> + Send + 'static,
{
    listening::serve(listener, door, stop, move |socket, visit, _| {
        let conversation = converse(Conversation::new(socket, visit));
        async move {
            conversation.await;
            Ok::<(), Infallible>(())
        }
    })
    .await;
}

/// A connection and its client.
#[derive(Debug)]
pub struct Conversation {
    socket: Guarded<Socket>,
    visit: Visit,
    /// Bytes of an incomplete request.
    held: Charge,
    /// The requests that are being answered.
    call: Option<InFlightCall>,
}

impl Conversation {
    fn new(socket: Socket, visit: Visit) -> Self {
        Self {
            socket: Guarded::new(socket, visit.clone(), None),
            held: Charge::new(visit.clone()),
            visit,
            call: None,
        }
    }

    /// Returns the caller.
    pub fn caller(&self) -> CallerId {
        self.visit.connection.caller
    }

    /// Returns the identity of the caller, if it needs none or has proved one.
    ///
    /// # Errors
    ///
    /// If it has to prove one.
    pub fn identity(&self) -> Result<Option<Identity>, Denied> {
        let Visit { door, connection } = &self.visit;
        door.prove_client(connection, None)
    }

    /// Returns the identity that a token proves.
    ///
    /// # Errors
    ///
    /// If the token is unknown, or not that of a client.
    pub fn prove(&self, token: &[u8]) -> Result<Option<Identity>, Denied> {
        let Visit { door, connection } = &self.visit;
        door.prove_client(connection, Some(token))
    }

    /// Returns the number of the connection.
    pub fn id(&self) -> u64 {
        self.visit.connection.id
    }

    /// Returns the largest size of a request in bytes.
    pub fn request_bytes_max(&self) -> usize {
        self.visit.door.limits().message_bytes.count()
    }

    /// Waits for bytes, and appends them. Returns false at the end of the connection. Cancel safe.
    ///
    /// # Errors
    ///
    /// If the connection is broken.
    pub async fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<bool> {
        let socket = &mut self.socket;
        let count = poll_fn(|cx| {
            // On the stack, so that a connection that waits has no buffer.
            let mut buffer = [MaybeUninit::<u8>::uninit(); READ_BYTES_MAX];
            let mut buffer = ReadBuf::uninit(&mut buffer);
            std::task::ready!(Pin::new(&mut *socket).poll_read(cx, &mut buffer))?;
            bytes.extend_from_slice(buffer.filled());
            std::task::Poll::Ready(io::Result::Ok(buffer.filled().len()))
        });
        Ok(count.await? > 0)
    }

    /// Begins to answer. Returns the time for [`Self::takes_request`].
    pub fn begin(&mut self) -> Duration {
        let now = self.visit.door.now();
        let begin = || InFlightCall::begin(self.visit.clone(), true, now);
        self.call.get_or_insert_with(begin);
        now
    }

    /// Takes a request from the rate of the caller. If there is none left, reading pauses after the answers.
    pub fn takes_request(&self, now: Duration) -> bool {
        let Visit { door, connection } = &self.visit;
        let takes = connection.takes_call(false, now);
        if !takes {
            door.refuse(&door.limits().calls_per_caller);
        }
        takes
    }

    /// Writes answers.
    ///
    /// # Errors
    ///
    /// If the connection is broken, or if the caller has too many unread answers.
    pub async fn write(&mut self, answers: &[u8]) -> io::Result<()> {
        let Visit { door, connection } = &self.visit;
        if door.note_answer(connection, answers.len() as u64).is_err() {
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        self.socket.write_all(answers).await?;
        connection.prove();
        Ok(())
    }

    /// Ends the answers. `held` bytes of an incomplete request are left, which must be complete within the patience;
    /// `is_new`: it began after another request. Returns false if there are too many bytes in incomplete requests.
    #[must_use]
    pub fn end(&mut self, held: usize, is_new: bool) -> bool {
        let Visit { door, connection } = &self.visit;
        let midway = &connection.midway;
        match (held, is_new) {
            (0, _) => midway.end(),
            (_, true) => midway.begin_anew(door.now()),
            (_, false) => midway.begin(|| door.now()),
        }
        self.call = None;
        let (held, before) = (held as u64, self.held.bytes());
        self.held.refund(before.saturating_sub(held));
        self.held.add(held.saturating_sub(before)).is_ok()
    }
}
