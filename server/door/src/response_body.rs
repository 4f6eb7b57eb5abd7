//! The answer to a call, until its client has read it.
//!
//! Each byte of an answer counts from when the HTTP library gets it until it is written to the socket
//! ([`Guarded`](crate::guarded::Guarded) sees that). Each caller has a budget, and all share one. Beyond a
//! budget, the connection with the most unread bytes is closed.
//!
//! If a caller gives a call up, the library drops an answer that it has begun to send. These bytes count until the
//! connection closes. At worst, an idle connection is closed because of them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Bytes, HttpBody};
use axum::http::Request;
use http_body::{Frame, SizeHint};

use crate::access::Denied;
use crate::door::Door;
use crate::limit::Limit;
use crate::tasks::joined;
use crate::visit::Visit;

/// Reason why a request is refused before work on it begins.
#[derive(Debug)]
pub(crate) enum Refusal {
    Limit(Arc<Limit>),
    Denied(Denied),
}

/// A call in progress. It ends when this is dropped.
#[derive(Debug)]
pub struct InFlightCall {
    visit: Visit,
    is_busy: bool,
}

impl InFlightCall {
    /// Begins a call. `is_busy`: whether the call keeps its connection busy.
    pub fn begin(visit: Visit, is_busy: bool, now: Duration) -> Self {
        if is_busy {
            visit.connection.begin_call(now);
        }
        Self { visit, is_busy }
    }

    /// Begins the call of a request: takes it from the rate of its caller, and adds the proof of its caller to it.
    pub(crate) fn admit<B>(
        visit: Visit,
        request: &mut Request<B>,
        now: Duration,
    ) -> (Self, Result<(), Refusal>) {
        let path = request.uri().path();
        let is_busy = !visit.door.paths().silent.contains(&path);
        let call = Self::begin(visit, is_busy, now);
        let Visit { door, connection } = &call.visit;
        if !connection.takes_call(door.paths().vital.contains(&path), now) {
            let limit = Arc::clone(&door.limits().calls_per_caller);
            return (call, Err(Refusal::Limit(limit)));
        }
        let proof = door.prove(connection, path, request.headers());
        let admitted = proof.map(|proof| proof.extend(request.extensions_mut()));
        (call, admitted.map_err(Refusal::Denied))
    }

    /// Returns the limit, if the caller has used up its time to look.
    pub fn refusal_to_look(&self, now: Duration) -> Option<Arc<Limit>> {
        let may_look = self.visit.connection.of_caller.may_look(now);
        (!may_look).then(|| Arc::clone(&self.door().limits().look_time_per_caller))
    }

    /// Returns the door that the call came through.
    pub fn door(&self) -> &Door {
        &self.visit.door
    }

    /// Pauses reading from the connection for a moment.
    pub fn pause(&self) {
        self.visit.connection.pause(self.door().now());
    }

    /// Looks at something whose cost grows with the whole state of the server. Only one look runs at a time, and its
    /// time counts for its caller. A caller that gives up while it waits for its turn loses its place.
    /// If it gives up later, the look still finishes, counts, and delays the next one.
    ///
    /// # Errors
    ///
    /// The limit, if the caller has used up its time to look. It learns that only at its turn.
    pub async fn look<T>(
        &self,
        look: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Arc<Limit>>
    where
        T: Send + 'static,
    {
        let Visit { door, connection } = self.visit.clone();
        let turn = door.turn_to_look().await;
        let looking = tokio::spawn(async move {
            let _turn = turn;
            let caller = &connection.of_caller;
            let began = door.now();
            if !caller.may_look(began) {
                return Err(Arc::clone(&door.limits().look_time_per_caller));
            }
            let seen = look.await;
            let now = door.now();
            caller.charge_look(now.saturating_sub(began), now);
            Ok(seen)
        });
        joined(looking).await
    }
}

impl Drop for InFlightCall {
    fn drop(&mut self) {
        if self.is_busy {
            self.visit.connection.end_call(self.door().now());
        }
    }
}

/// Makes the last frame of an answer for which there is no room. The number spreads the retries of answers that end
/// together.
type Ending = fn(u64) -> Result<Frame<Bytes>, BoxError>;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// An answer on its way to its client.
#[derive(Debug)]
pub struct ResponseBody<B> {
    /// None: the answer was cut off.
    body: Option<B>,
    ending: Ending,
    call: InFlightCall,
    /// Bytes of the newest frame, which are counted, and which the library holds until the client has room.
    waiting: u64,
}

impl<B> ResponseBody<B> {
    /// Wraps the answer to `call`. The call ends with the answer.
    pub fn new(body: B, ending: Ending, call: InFlightCall) -> Self {
        Self {
            body: Some(body),
            ending,
            call,
            waiting: 0,
        }
    }
}

impl<B> HttpBody for ResponseBody<B>
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
        // The library asks for a frame once it has sent the one before.
        self.waiting = 0;
        let Some(body) = &mut self.body else {
            return Poll::Ready(None);
        };
        let frame = std::task::ready!(Pin::new(body).poll_frame(cx));
        let bytes = match &frame {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            Some(Err(_)) | None => 0,
        };
        let bytes = bytes as u64;
        let Visit { door, connection } = &self.call.visit;
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
        // False until the library asks once more: then it has sent the last frame.
        self.waiting == 0 && self.body.as_ref().is_none_or(HttpBody::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        let body = self.body.as_ref();
        body.map_or_else(|| SizeHint::with_exact(0), HttpBody::size_hint)
    }
}

impl<B> Drop for ResponseBody<B> {
    fn drop(&mut self) {
        // The caller gave the call up before the last frame was sent.
        let Visit { door, connection } = &self.call.visit;
        if self.waiting > 0 && !connection.is_closed() {
            door.note_written(connection, self.waiting);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use tokio::sync::{Semaphore, oneshot};
    use tokio::task::yield_now;

    use super::*;
    use crate::caller_id::CallerId;
    use crate::door_limits::testing::limits;
    use crate::paths::Paths;

    fn enter(looking: &Arc<Semaphore>) -> Visit {
        let limits = limits(1, 1);
        // With this rate, any look uses up the time of the caller for long.
        limits.look_time_per_caller.set_max(0);
        let door = Door::new(limits, Paths::default(), Arc::clone(looking));
        let connection = door.admit(CallerId::of(Ipv4Addr::LOCALHOST.into()), None);
        let connection = connection.unwrap();
        Visit { door, connection }
    }

    #[tokio::test]
    async fn who_gives_a_look_up_has_it_counted_and_it_is_nobody_elses_turn_before() {
        let looking = Arc::new(Semaphore::new(1));
        let visit = enter(&looking);
        let call = InFlightCall::begin(visit.clone(), true, visit.door.now());
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
        let caller = &visit.connection.of_caller;
        assert!(!caller.is_at_rest(visit.door.now()), "it is counted");
        drop(turn);
    }

    #[tokio::test]
    async fn who_gives_up_before_it_is_its_turn_never_looks() {
        let looking = Arc::new(Semaphore::new(1));
        let visit = enter(&looking);
        let call = InFlightCall::begin(visit.clone(), true, visit.door.now());
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
        // This would be its turn, but the look was dropped with its caller.
        assert!(looks.await.is_err(), "it does not look");
        assert_eq!(looking.available_permits(), 1);
    }
}
