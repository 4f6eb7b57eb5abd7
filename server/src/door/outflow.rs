//! What a call is answered, as far as it is not read.
//!
//! Every byte of an answer counts from when it is handed to the HTTP library until it is written to the
//! socket ([`Guarded`](crate::door::guarded::Guarded) sees that), in a budget for each address and in all.
//! Beyond it, the connection goes that has the most unread.
//!
//! What the library has begun to send and drops, since the caller gave a call up, stays counted until the
//! connection closes: at the worst an idle connection is closed for it.

use std::future::Future;
use std::panic;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use http_body::{Frame, SizeHint};

use crate::door::Door;
use crate::door::connection::Connection;
use crate::limits::ServerLimit;

/// A call in progress. It is over when this is dropped.
#[derive(Debug)]
pub struct CallOnConnection {
    door: Arc<Door>,
    connection: Arc<Connection>,
    is_busy: bool,
}

impl CallOnConnection {
    /// A call begins now, which keeps its connection busy or not.
    pub fn begin(
        door: &Arc<Door>,
        connection: &Arc<Connection>,
        is_busy: bool,
        now: Duration,
    ) -> Self {
        if is_busy {
            connection.begin_call(now);
        }
        Self {
            door: Arc::clone(door),
            connection: Arc::clone(connection),
            is_busy,
        }
    }
}

impl CallOnConnection {
    /// By which way it came in.
    pub fn door(&self) -> &Door {
        &self.door
    }

    /// Looks at something that costs as much as there is of everything: one at a time, and it counts for the
    /// address by how long it takes. Who gives up before it is its turn loses its place. Who gives up later has it
    /// counted all the same, and the next one's turn comes when it is over.
    ///
    /// # Errors
    ///
    /// If the address has looked at enough for now. Who came with others finds that out when it is its turn.
    pub async fn look<T>(
        &self,
        look: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, ServerLimit>
    where
        T: Send + 'static,
    {
        let (door, connection) = (Arc::clone(&self.door), Arc::clone(&self.connection));
        let turn = door.turn_to_look().await;
        let looking = tokio::spawn(async move {
            let _turn = turn;
            let looks = &connection.of_address().looks;
            let began = door.now();
            if !looks.is_open(began) {
                return Err(ServerLimit::LookTimePerAddress);
            }
            let seen = look.await;
            let now = door.now();
            looks.charge(now.saturating_sub(began), now);
            Ok(seen)
        });
        match looking.await {
            Ok(seen) => seen,
            Err(failed) => match failed.try_into_panic() {
                Ok(panicked) => panic::resume_unwind(panicked),
                // The process ends, and nobody will hear of it.
                Err(_) => std::future::pending().await,
            },
        }
    }
}

impl Drop for CallOnConnection {
    fn drop(&mut self) {
        if self.is_busy {
            self.connection.end_call(self.door.now());
        }
    }
}

/// What ends an answer for which there is no room, with a number that differs among those that end at the same time.
type Ending = fn(u64) -> Result<Frame<Bytes>, BoxError>;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// An answer on its way.
#[derive(Debug)]
pub struct Outflow<B> {
    /// None: it was ended.
    body: Option<B>,
    ending: Ending,
    call: CallOnConnection,
    /// Counted, and held back by the library until the other side has room: bytes of the newest frame.
    waiting: u64,
}

impl<B> Outflow<B> {
    /// An answer to a call, which ends with it.
    pub fn new(body: B, ending: Ending, call: CallOnConnection) -> Self {
        Self {
            body: Some(body),
            ending,
            call,
            waiting: 0,
        }
    }
}

impl<B> HttpBody for Outflow<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        // What was handed out before is on its way.
        self.waiting = 0;
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let frame = std::task::ready!(Pin::new(body).poll_frame(cx));
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            Some(Err(_)) | None => 0,
        };
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let CallOnConnection {
            door, connection, ..
        } = &self.call;
        if bytes > 0 {
            if let Err(number) = door.note_answer(connection, bytes) {
                self.body = None;
                return Poll::Ready(Some((self.ending)(number)));
            }
            connection.prove();
            self.waiting = bytes;
        }
        Poll::Ready(frame.map(|frame| frame.map_err(Into::into)))
    }

    fn is_end_stream(&self) -> bool {
        // Asked once more, it says that the last part is on its way.
        self.waiting == 0 && self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body
            .as_ref()
            .map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl<B> Drop for Outflow<B> {
    fn drop(&mut self) {
        // The caller gave the call up before it had room for that.
        if self.waiting > 0 && !self.call.connection.is_closed() {
            self.call
                .door
                .note_written(&self.call.connection, self.waiting);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{Semaphore, oneshot};
    use tokio::task::yield_now;

    use super::*;
    use crate::door::DoorConfig;
    use crate::limits::ServerLimits;

    #[tokio::test]
    async fn who_gives_a_look_up_has_it_counted_and_it_is_nobody_elses_turn_before() {
        let config = DoorConfig {
            // Whatever a look takes, it is made up for only much later.
            look_time_per_second_per_address_max: Duration::from_nanos(1),
            ..DoorConfig::default()
        };
        let looking = Arc::new(Semaphore::new(1));
        let door = Door::http(
            config,
            Arc::new(ServerLimits::default()),
            Arc::clone(&looking),
        );
        let peer = "127.0.0.1:1".parse().unwrap();
        let connection = door.admit(peer).unwrap();
        let call = CallOnConnection::begin(&door, &connection, true, door.now());
        let (finish, finished) = oneshot::channel::<()>();
        let begun = async {
            while looking.available_permits() > 0 {
                yield_now().await;
            }
        };
        tokio::select! {
            _ = call.look(finished) => panic!("it is not finished"),
            () = begun => {}
        }
        for _ in 0..10 {
            yield_now().await;
        }
        assert_eq!(looking.available_permits(), 0, "it goes on");
        finish.send(()).unwrap();
        let turn = looking.acquire().await.unwrap();
        let looks = &connection.of_address().looks;
        assert!(!looks.is_made_up(door.now()), "it is counted");
        drop(turn);
    }

    #[tokio::test]
    async fn who_gives_up_before_it_is_its_turn_never_looks() {
        let looking = Arc::new(Semaphore::new(1));
        let config = DoorConfig::default();
        let door = Door::http(
            config,
            Arc::new(ServerLimits::default()),
            Arc::clone(&looking),
        );
        let connection = door.admit("127.0.0.1:1".parse().unwrap()).unwrap();
        let call = CallOnConnection::begin(&door, &connection, true, door.now());
        let turn = looking.acquire().await.unwrap();
        let (looked, looks) = oneshot::channel::<()>();
        let given_up = call.look(async move {
            let _ = looked.send(());
        });
        tokio::select! {
            biased;
            _ = given_up => panic!("it is not its turn"),
            () = yield_now() => {}
        }
        drop(turn);
        // It would be its turn now. What it was to look with is gone.
        assert!(looks.await.is_err(), "it does not look");
        assert_eq!(looking.available_permits(), 1);
    }
}
