//! The socket of a connection: it counts the bytes that pass by, and bounds every wait for the client.
//!
//! It reads the headers of incoming HTTP/2 frames. Frames that carry no call have a rate limit, and a frame must be
//! complete within the patience. It subtracts outgoing bytes from the bytes of answers: the rest is what the client has
//! not read yet.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use crate::frames::{ControlFrames, Frame, FrameKind, Scanner};
use crate::visit::Visit;

/// First bytes that a client sends over HTTP/2 (RFC 9113, section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Protocol of a connection.
#[derive(Debug)]
enum Protocol {
    /// All written bytes are answers: HTTP/1, and protocols of other servers.
    Plain,
    Http2 {
        reads: Scanner,
        writes: Scanner,
        control: Box<ControlFrames>,
    },
}

/// Socket of a connection.
#[derive(Debug)]
pub struct Guarded<S> {
    socket: S,
    visit: Visit,
    protocol: Protocol,
    pause: Option<Pin<Box<Sleep>>>,
}

impl<S> Guarded<S> {
    /// Wraps a socket. With `control`, it speaks HTTP/2, and its preface is due as the rest of a frame is; else all
    /// written bytes are answers.
    pub fn new(socket: S, visit: Visit, control: Option<ControlFrames>) -> Self {
        let http2 = |control| {
            visit.connection.midway.begin_anew(visit.door.now());
            Protocol::Http2 {
                reads: Scanner::before(PREFACE.len()),
                writes: Scanner::default(),
                control: Box::new(control),
            }
        };
        let protocol = control.map_or(Protocol::Plain, http2);
        Self {
            socket,
            visit,
            protocol,
            pause: None,
        }
    }

    /// Waits until reading is no longer paused, so that a client that asks too much is served slowly.
    fn poll_paused(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Visit { door, connection } = &self.visit;
        loop {
            if let Some(pause) = &mut self.pause {
                std::task::ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            match connection.paused_for(|| door.now()) {
                Some(left) => self.pause = Some(Box::pin(tokio::time::sleep(left))),
                None => return Poll::Ready(()),
            }
        }
    }

    fn look_at(&mut self, arrived: &[u8]) -> io::Result<()> {
        let Protocol::Http2 { reads, control, .. } = &mut self.protocol else {
            return Ok(());
        };
        let Visit { door, connection } = &self.visit;
        let was_open = reads.is_midway();
        let (mut began, mut too_many) = (false, false);
        reads.scan(arrived, |frame| {
            // A continuation frame belongs to headers that have begun.
            began |= frame.kind != FrameKind::Continuation;
            too_many |= control.note(frame, || door.now());
        });
        let midway = &connection.midway;
        if !reads.is_midway() {
            midway.end();
        } else if began || !was_open {
            midway.begin_anew(door.now());
        }
        if too_many {
            door.refuse(&door.limits().control_frames);
            let problem = "too many HTTP/2 frames that carry no call";
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, problem));
        }
        Ok(())
    }

    fn note_written(&mut self, bufs: &[IoSlice<'_>], written: usize) {
        let mut left = written;
        let mut counts: u64 = 0;
        match &mut self.protocol {
            Protocol::Plain => counts = written as u64,
            Protocol::Http2 { writes, .. } => {
                for buf in bufs {
                    let part = left.min(buf.len());
                    left -= part;
                    let part = buf.get(..part).unwrap_or_default();
                    writes.scan(part, |frame: Frame| {
                        if frame.kind == FrameKind::Data {
                            counts += u64::from(frame.length);
                        }
                    });
                    if left == 0 {
                        break;
                    }
                }
            }
        }
        if counts > 0 {
            let Visit { door, connection } = &self.visit;
            door.note_written(connection, counts);
        }
    }

    fn noted(
        &mut self,
        bufs: &[IoSlice<'_>],
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let Visit { door, connection } = &self.visit;
        match &written {
            Poll::Ready(Ok(written)) => {
                connection.blocked.end();
                self.note_written(bufs, *written);
            }
            Poll::Ready(Err(_)) => {}
            Poll::Pending => connection.blocked.begin(|| door.now()),
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guarded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        std::task::ready!(self.poll_paused(cx));
        let before = buf.filled().len();
        std::task::ready!(Pin::new(&mut self.socket).poll_read(cx, buf))?;
        let arrived = buf.filled().get(before..).unwrap_or_default();
        Poll::Ready(self.look_at(arrived))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guarded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write(cx, buf);
        self.noted(&[IoSlice::new(buf)], written)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.socket).poll_write_vectored(cx, bufs);
        self.noted(bufs, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }
}
