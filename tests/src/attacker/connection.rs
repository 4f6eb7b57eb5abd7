//! A connection that writes bytes, from a chosen address.
//!
//! A server that answers a flood must be read, or it stops reading; [`Connection::send`] reads while it writes. Attacks
//! that never read use [`Connection::send_unread`].

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::frames::{DATA, END_STREAM, FRAME_BYTES_MAX, PREFACE, SETTINGS, frame, settings};
use super::seen::Seen;

/// Time within which a server accepts a connection, or bytes, if at all.
const TAKEN_WITHIN: Duration = Duration::from_secs(5);

/// A connection to a server, from an attacker's address.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    seen: Seen,
    sent: u64,
    next_stream: u32,
    /// Number of acknowledged settings of the server.
    acknowledged: u64,
    is_cut: bool,
}

impl Connection {
    /// Opens a connection.
    ///
    /// # Errors
    ///
    /// If the server does not accept it.
    pub async fn open(from: IpAddr, to: SocketAddr) -> io::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from, 0))?;
        let stream = timeout(TAKEN_WITHIN, socket.connect(to)).await??;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            seen: Seen::default(),
            sent: 0,
            next_stream: 1,
            acknowledged: 0,
            is_cut: false,
        })
    }

    /// Opens a connection, and starts HTTP/2 with these settings.
    ///
    /// # Errors
    ///
    /// If the server does not accept it.
    pub async fn greet(from: IpAddr, to: SocketAddr, with: &[(u16, u32)]) -> io::Result<Self> {
        let mut connection = Self::open(from, to).await?;
        let mut greeting = PREFACE.to_vec();
        settings(&mut greeting, with);
        connection.send(&greeting).await?;
        Ok(connection)
    }

    /// Returns the number of a new stream.
    pub fn next_stream(&mut self) -> u32 {
        let stream = self.next_stream;
        self.next_stream += 2;
        stream
    }

    /// Returns whether the stream numbers are used up; half of them belong to the server.
    pub fn is_used_up(&self) -> bool {
        self.next_stream >= 1 << 31
    }

    /// Returns the frames that the server sent.
    pub fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Returns the number of bytes that the system accepted.
    pub fn bytes_sent(&self) -> u64 {
        self.sent
    }

    /// Returns whether the server has ended the connection, or announced its end.
    pub fn is_cut(&self) -> bool {
        self.is_cut || self.seen.goaway.is_some()
    }

    /// Reads everything that has arrived, without waiting.
    pub fn look(&mut self) {
        let mut buffer = [0; 16_384];
        loop {
            match self.stream.try_read(&mut buffer) {
                Ok(0) => self.is_cut = true,
                Ok(read) => {
                    self.seen.take(buffer.get(..read).unwrap_or_default());
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.is_cut = true,
            }
            return;
        }
    }

    /// Waits until something arrives, and reads it.
    ///
    /// # Errors
    ///
    /// If the connection is cut, or nothing arrives for long.
    pub async fn read_some(&mut self) -> io::Result<()> {
        timeout(TAKEN_WITHIN, self.stream.readable()).await??;
        self.look();
        self.unless_cut()
    }

    /// Waits until the server has ended the connection.
    pub async fn until_cut(&mut self) {
        while !self.is_cut() {
            if self.stream.readable().await.is_err() {
                self.is_cut = true;
            }
            self.look();
        }
    }

    /// Writes all bytes, and reads everything that arrives meanwhile.
    ///
    /// # Errors
    ///
    /// If the connection is cut, or the server accepts nothing for long.
    pub async fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let either = Interest::READABLE | Interest::WRITABLE;
            let ready = timeout(TAKEN_WITHIN, self.stream.ready(either)).await??;
            if ready.is_readable() {
                self.look();
                self.unless_cut()?;
            }
            if ready.is_writable() {
                bytes = self.write_some(bytes)?;
            }
        }
        Ok(())
    }

    /// Writes all bytes, and reads nothing.
    ///
    /// # Errors
    ///
    /// If the connection is cut, or the server accepts nothing for long.
    pub async fn send_unread(&mut self, mut bytes: &[u8], patience: Duration) -> io::Result<()> {
        while !bytes.is_empty() {
            timeout(patience, self.stream.writable()).await??;
            bytes = self.write_some(bytes)?;
        }
        Ok(())
    }

    /// Writes the body of a message on a stream, no faster than the server's window allows.
    ///
    /// # Errors
    ///
    /// If the connection is cut, or the server ends one of its streams, or accepts nothing for long.
    pub async fn send_data(&mut self, stream: u32, body: &[u8], ends: bool) -> io::Result<()> {
        let ended = self.seen.ended;
        let mut rest = body;
        while !rest.is_empty() {
            self.look();
            if self.seen.ended > ended {
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            let window = self.seen.connection_window.min(self.seen.stream_window);
            let window = usize::try_from(window).unwrap_or(0).min(FRAME_BYTES_MAX);
            if window == 0 {
                self.read_some().await?;
                continue;
            }
            let (now, later) = rest.split_at(window.min(rest.len()));
            rest = later;
            let flags = if ends && rest.is_empty() {
                END_STREAM
            } else {
                0
            };
            let mut out = Vec::with_capacity(now.len() + 18);
            while self.acknowledged < self.seen.settings {
                frame(&mut out, SETTINGS, END_STREAM, 0, &[]);
                self.acknowledged += 1;
            }
            frame(&mut out, DATA, flags, stream, now);
            let taken = i64::try_from(now.len()).unwrap_or(i64::MAX);
            self.seen.connection_window -= taken;
            self.seen.stream_window -= taken;
            self.send(&out).await?;
        }
        Ok(())
    }

    /// Makes [`Connection::send_data`] use the window of that stream.
    pub fn look_at(&mut self, stream: u32) {
        self.seen.look_at(stream);
    }

    fn write_some<'a>(&mut self, bytes: &'a [u8]) -> io::Result<&'a [u8]> {
        match self.stream.try_write(bytes) {
            Ok(written) => {
                self.sent += written as u64;
                Ok(bytes.get(written..).unwrap_or_default())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(bytes),
            Err(error) => {
                self.is_cut = true;
                Err(error)
            }
        }
    }

    fn unless_cut(&self) -> io::Result<()> {
        if self.is_cut() {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(())
    }
}
