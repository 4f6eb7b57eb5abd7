//! The messages of a call, on their way in.
//!
//! gRPC announces the length of each message, and the library reserves that memory at once: a few bytes would cost
//! megabytes. So the door passes a message on only when it is complete. Until then it keeps only the bytes that have
//! arrived, within the patience and within a budget of bytes, for each caller and in all.
//!
//! Nearly all messages arrive in one piece, and are passed on without a copy.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Bytes, HttpBody};
use bytes::{Buf, BytesMut};
use http_body::Frame;
use tokio::time::Sleep;
use tonic::Status as RpcStatus;

use crate::caller_id::CallerId;
use crate::charge::Charge;
use crate::density;
use crate::door::Door;
use crate::limit::Limit;
use crate::overload;
use crate::visit::Visit;

/// Bytes before each message: a flag for compression, which is not supported, and the length.
const PREFIX: usize = 5;

/// Largest message that does not count once it has arrived.
const SMALL_BYTES_MAX: usize = 4 * 1024;

/// Least bytes that a stream counts as, from its first message on: about what its task, its buffers and its state take.
const STREAM_BYTES_MIN: u64 = 12 * 1024;

/// Body of a call, as far as it has arrived.
#[derive(Debug)]
pub struct RequestBody<B> {
    body: B,
    /// Bytes of `held` and `buffer`.
    charge: Charge,
    /// Whether a message may be large.
    is_large: bool,
    /// Beginning of an incomplete message.
    held: BytesMut,
    /// Size of the buffer that the library keeps until the stream ends: its largest message.
    buffer: u64,
    /// Whether no message was passed on yet.
    is_first: bool,
    /// Whether the call has one message. Then the service waits neither for more messages nor for the end of the call.
    is_only: bool,
    deadline: Option<Pin<Box<Sleep>>>,
    /// A frame that has arrived and was not taken yet.
    ready: Option<Frame<Bytes>>,
}

impl<B> RequestBody<B> {
    /// Makes a body to which nothing has arrived yet.
    pub fn new(body: B, visit: Visit, is_large: bool) -> Self {
        Self {
            body,
            charge: Charge::new(visit),
            is_large,
            held: BytesMut::new(),
            buffer: 0,
            is_first: true,
            is_only: false,
            deadline: None,
            ready: None,
        }
    }

    /// Returns the caller.
    pub fn caller(&self) -> CallerId {
        self.charge.visit.connection.caller
    }

    /// Returns the door that the call came through.
    pub fn door(&self) -> &Door {
        &self.charge.visit.door
    }
}

impl<B> RequestBody<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<tonic::codegen::StdError>,
{
    /// Waits until the only message is complete, or the call ends without one.
    ///
    /// # Errors
    ///
    /// The answer to the call, if the message is invalid, too large, too slow, or exceeds a budget.
    pub fn poll_only(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RpcStatus>> {
        self.is_only = true;
        match std::task::ready!(self.poll_next(cx)) {
            Some(Ok(frame)) => {
                self.ready = Some(frame);
                Poll::Ready(Ok(()))
            }
            Some(Err(status)) => Poll::Ready(Err(status)),
            None => Poll::Ready(Ok(())),
        }
    }

    /// Counts the only message in the budgets until the result is dropped. None: it is small.
    ///
    /// # Errors
    ///
    /// The answer to the call, if there is no room.
    pub fn count_large(&self) -> Result<Option<Charge>, RpcStatus> {
        self.count_only(SMALL_BYTES_MAX)
    }

    /// Does the same with a message of more than so many bytes.
    pub(crate) fn count_only(&self, small: usize) -> Result<Option<Charge>, RpcStatus> {
        let message = self.ready.as_ref().and_then(Frame::data_ref);
        let Some(message) = message.filter(|it| it.len() > small) else {
            return Ok(None);
        };
        let mut charge = Charge::new(self.charge.visit.clone());
        charge.add(message.len() as u64)?;
        Ok(Some(charge))
    }

    /// Takes the only message, if it arrived alone, as nearly all do. The rest of the body does not
    /// matter then. None: the body still contains everything.
    pub fn take_only_message(&mut self) -> Option<Bytes> {
        let data = match self.ready.take()?.into_data() {
            Ok(data) => data,
            Err(trailers) => {
                self.ready = Some(trailers);
                return None;
            }
        };
        let is_alone = match data.split_first_chunk::<PREFIX>() {
            Some(([0, length @ ..], message)) => {
                message.len() == u32::from_be_bytes(*length) as usize
            }
            _ => false,
        };
        if is_alone {
            return Some(data.slice(PREFIX..));
        }
        self.ready = Some(Frame::data(data));
        None
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, RpcStatus>>> {
        loop {
            let frame = match Pin::new(&mut self.body).poll_frame(cx) {
                Poll::Pending => return self.poll_deadline(cx).map(|status| Some(Err(status))),
                Poll::Ready(None) if self.held.is_empty() => return Poll::Ready(None),
                Poll::Ready(None) => {
                    self.release();
                    return Poll::Ready(Some(Err(RpcStatus::invalid_argument(
                        "the call ended within a message",
                    ))));
                }
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Some(Err(RpcStatus::from_error(error.into()))));
                }
                Poll::Ready(Some(Ok(frame))) => frame,
            };
            match frame.into_data() {
                Ok(arrived) => match self.pass_on(arrived) {
                    Ok(complete) if complete.is_empty() => {}
                    Ok(complete) => return Poll::Ready(Some(Ok(Frame::data(complete)))),
                    Err(status) => {
                        self.release();
                        return Poll::Ready(Some(Err(status)));
                    }
                },
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
    }

    /// Returns the messages that are complete with these bytes.
    fn pass_on(&mut self, arrived: Bytes) -> Result<Bytes, RpcStatus> {
        let messages = self.take_in(arrived)?;
        if !self.is_only && !messages.is_empty() {
            // A message of a stream costs as much as a call.
            if !self.is_large {
                self.take_calls(&messages)?;
            }
            let bytes = messages.len() as u64;
            self.count_buffer(bytes.max(STREAM_BYTES_MIN))?;
        }
        Ok(messages)
    }

    /// Takes complete messages from the rate of calls.
    fn take_calls(&self, mut messages: &[u8]) -> Result<(), RpcStatus> {
        let Visit { door, connection } = &self.charge.visit;
        while let Some((&[_, length @ ..], rest)) = messages.split_first_chunk::<PREFIX>() {
            if !connection.takes_call(false, door.now()) {
                return Err(door.exhausted(&door.limits().calls_per_caller));
            }
            let length = u32::from_be_bytes(length) as usize;
            messages = rest.get(length..).unwrap_or_default();
        }
        Ok(())
    }

    fn count_buffer(&mut self, bytes: u64) -> Result<(), RpcStatus> {
        let more = bytes.saturating_sub(self.buffer);
        self.charge.add(more)?;
        self.buffer += more;
        Ok(())
    }

    /// Adds bytes that have arrived. Returns the messages that are complete now, and holds the rest.
    fn take_in(&mut self, mut arrived: Bytes) -> Result<Bytes, RpcStatus> {
        if self.held.is_empty() {
            let complete = self.complete(&arrived)?;
            if complete < arrived.len() {
                self.hold(arrived.get(complete..).unwrap_or_default())?;
                arrived.truncate(complete);
            }
            return Ok(arrived);
        }
        self.hold(&arrived)?;
        let complete = self.complete(&self.held)?;
        if complete == 0 {
            return Ok(Bytes::new());
        }
        // A part of the same memory would keep all of it.
        let rest = BytesMut::from(self.held.get(complete..).unwrap_or_default());
        let mut messages = std::mem::replace(&mut self.held, rest);
        messages.truncate(complete);
        self.charge.refund(complete as u64);
        Ok(messages.freeze())
    }

    /// Returns how many of the bytes are complete messages.
    fn complete(&self, bytes: &[u8]) -> Result<usize, RpcStatus> {
        let mut complete = 0;
        loop {
            let rest = bytes.get(complete..).unwrap_or_default();
            let Some(mut prefix) = rest.get(..PREFIX) else {
                return Ok(complete);
            };
            let _is_compressed = prefix.get_u8();
            let length = prefix.get_u32() as usize;
            if length > self.size().count() {
                return Err(self.too_large(&format!("{length} bytes")));
            }
            let Some(message) = rest.get(PREFIX..PREFIX + length) else {
                return Ok(complete);
            };
            density::check(message).map_err(RpcStatus::invalid_argument)?;
            complete += PREFIX + length;
        }
    }

    /// Returns the limit on the size of a message.
    fn size(&self) -> &Limit {
        let limits = self.door().limits();
        if self.is_large {
            &limits.large_message_bytes
        } else {
            &limits.message_bytes
        }
    }

    fn too_large(&self, size: &str) -> RpcStatus {
        let limit = self.size();
        self.door().refuse(limit);
        let (max, flag) = (limit.max(), limit.texts().flag);
        let problem = format!("the message has {size}; at most {max} are taken ({flag})");
        RpcStatus::out_of_range(problem)
    }

    fn hold(&mut self, bytes: &[u8]) -> Result<(), RpcStatus> {
        self.charge.add(bytes.len() as u64)?;
        self.held.extend_from_slice(bytes);
        Ok(())
    }

    /// Drops the held bytes, and returns them to the budgets.
    fn release(&mut self) {
        self.held = BytesMut::new();
        self.charge.refund(self.charge.bytes());
    }

    /// Waits for the deadline of the first message, and of any incomplete message.
    fn poll_deadline(&mut self, cx: &mut Context<'_>) -> Poll<RpcStatus> {
        if !self.is_first && self.held.is_empty() {
            self.deadline = None;
            return Poll::Pending;
        }
        let patience = self.door().patience();
        let sleep = || Box::pin(tokio::time::sleep(patience));
        let deadline = self.deadline.get_or_insert_with(sleep);
        std::task::ready!(deadline.as_mut().poll(cx));
        self.release();
        let number = self.door().refuse(&self.door().limits().patience);
        Poll::Ready(overload::late(patience, number))
    }
}

impl<B> HttpBody for RequestBody<B>
where
    B: HttpBody<Data = Bytes> + Unpin,
    B::Error: Into<tonic::codegen::StdError>,
{
    type Data = Bytes;
    type Error = RpcStatus;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RpcStatus>>> {
        let frame = match self.ready.take() {
            Some(frame) => Some(Ok(frame)),
            None if self.is_only && !self.is_first => match self.poll_next(cx) {
                Poll::Ready(frame) => frame,
                // A caller that does not end its call still gets an answer.
                Poll::Pending => None,
            },
            None => std::task::ready!(self.poll_next(cx)),
        };
        self.is_first = false;
        if self.held.is_empty() {
            self.deadline = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_none() && self.held.is_empty() && self.body.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::net::Ipv4Addr;
    use std::sync::Arc;

    use axum::body::Body;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::door_limits::testing::limits;
    use crate::paths::Paths;

    fn enter(door: &Arc<Door>) -> Visit {
        let connection = door.admit(CallerId::of(Ipv4Addr::LOCALHOST.into()), None);
        Visit {
            door: Arc::clone(door),
            connection: connection.unwrap(),
        }
    }

    #[tokio::test]
    async fn a_message_counts_for_its_caller_while_its_call_waits() {
        let door = Door::new(limits(1, 1), Paths::default(), Arc::new(Semaphore::new(1)));
        let limit = &door.limits().incoming_bytes_per_caller;
        limit.set_max(20);
        let visit = enter(&door);
        let arrived = || {
            let message: &[u8] = &[0, 0, 0, 0, 7, 10, 5, 1, 2, 3, 4, 5];
            RequestBody::new(Body::from(message), visit.clone(), false)
        };
        let (mut first, mut second) = (arrived(), arrived());
        for body in [&mut first, &mut second] {
            poll_fn(|cx| body.poll_only(cx)).await.unwrap();
        }
        let counted = first.count_only(0).unwrap();
        assert_eq!(door.limits().incoming_bytes.used(), 12);
        let refused = second.count_only(0).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        drop(counted);
        second.count_only(0).unwrap();
    }

    #[test]
    fn a_stream_and_its_largest_message_count_until_the_stream_ends() {
        let door = Door::new(limits(1, 1), Paths::default(), Arc::new(Semaphore::new(1)));
        let limits = door.limits();
        limits.message_bytes.set_max(100_000);
        limits.incoming_bytes_per_caller.set_max(25_000);
        let visit = enter(&door);
        let stream = || RequestBody::new(Body::empty(), visit.clone(), false);
        let message = |length: u32| {
            let mut message = vec![0];
            message.extend(length.to_be_bytes());
            message.resize(message.len() + length as usize, 0);
            Bytes::from(message)
        };
        let mut first = stream();
        for (length, counted) in [
            (100, STREAM_BYTES_MIN),
            (10_000, STREAM_BYTES_MIN),
            (15_000, 15_005),
            (10_000, 15_005),
        ] {
            first.pass_on(message(length)).unwrap();
            assert_eq!(limits.incoming_bytes.used(), counted);
        }
        let refused = stream().pass_on(message(100)).unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        drop(first);
        stream().pass_on(message(15_000)).unwrap();
        assert_eq!(limits.incoming_bytes.used(), 0);
    }

    #[tokio::test]
    async fn a_large_message_counts_until_its_call_is_answered() {
        let door = Door::new(limits(1, 1), Paths::default(), Arc::new(Semaphore::new(1)));
        let limits = door.limits();
        limits.message_bytes.set_max(100_000);
        limits.incoming_bytes_per_caller.set_max(15_000);
        let visit = enter(&door);
        let mut bodies = Vec::new();
        for length in [10_000_u32, 10_000, 100] {
            let mut message = vec![0];
            message.extend(length.to_be_bytes());
            message.resize(message.len() + length as usize, 0);
            let mut body = RequestBody::new(Body::from(message), visit.clone(), false);
            poll_fn(|cx| body.poll_only(cx)).await.unwrap();
            bodies.push(body);
        }
        let counted = bodies[0].count_large().unwrap();
        assert!(counted.is_some());
        bodies[0].take_only_message().unwrap();
        let refused = bodies[1].count_large().unwrap_err();
        assert_eq!(refused.code(), tonic::Code::ResourceExhausted);
        assert!(bodies[2].count_large().unwrap().is_none());
        drop(counted);
        bodies[1].count_large().unwrap().unwrap();
    }
}
