//! An attacker on the wire: HTTP/2 frames written by hand, because no client library would send them.
//!
//! The modules, from the bottom up:
//!
//! | | |
//! | --- | --- |
//! | [`frames`] | HTTP/2 frames, header blocks and gRPC messages as bytes. No I/O. |
//! | [`seen`] | Frames that a server sent, as far as an attacker needs them. No I/O. |
//! | [`connection`] | A socket from a chosen address that writes such bytes. |
//! | [`waiting`] | Attacks by silence and slowness, and by calls that never end. |
//! | [`unread`] | Attacks by never reading answers. |
//! | [`flood`] | Attacks by frames that cost the server more than their sender. |
//! | [`claims`] | Attacks by well-formed requests: invented names, forged children, lies. |
//! | [`catalogue`] | All of them by name, in three sizes. |
//! | [`rounds`] | Attacks again and again, for benches. |
//!
//! An attacker has its own address on loopback (127.0.1.1 and up; honest clients are at 127.0.0.1), because servers
//! distinguish callers by address.

pub mod catalogue;
pub mod claims;
pub mod connection;
pub mod flood;
pub mod frames;
pub mod rounds;
pub mod seen;
pub mod unread;
pub mod waiting;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use connection::Connection;

/// Addresses of an attack.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Address of the server's gRPC.
    pub grpc: SocketAddr,
    /// Address of the server's pages. Absent: it has none.
    pub http: Option<SocketAddr>,
    /// Address of the attacker.
    pub from: IpAddr,
}

impl Target {
    /// Returns the same target, attacked from another address.
    pub fn from(self, from: IpAddr) -> Self {
        Self { from, ..self }
    }
}

/// Returns the address of an attacker. 0 is the first.
pub fn attacker(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 1, number.saturating_add(1)))
}

/// Result of an attack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Number of connections.
    pub opened: u64,
    /// Number of connections that the server did not accept.
    pub not_opened: u64,
    /// Number of connections that the server ended, or reset.
    pub cut: u64,
    /// Number of frames, calls or requests, as the attack counts.
    pub done: u64,
    /// Number of streams that the server reset, and of requests that it refused.
    pub refused: u64,
    /// Number of granted requests.
    pub granted: u64,
    /// Bytes that the system accepted from the attacker.
    pub bytes_sent: u64,
}

impl Outcome {
    /// Adds the result of another part of an attack.
    pub fn add(&mut self, other: Self) {
        self.opened += other.opened;
        self.not_opened += other.not_opened;
        self.cut += other.cut;
        self.done += other.done;
        self.refused += other.refused;
        self.granted += other.granted;
        self.bytes_sent += other.bytes_sent;
    }

    /// Adds a connection that is no longer needed.
    pub fn add_connection(&mut self, connection: &Connection) {
        self.bytes_sent += connection.bytes_sent();
        self.refused += connection.seen().resets;
        self.cut += u64::from(connection.is_cut());
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            opened,
            not_opened,
            cut,
            done,
            refused,
            granted,
            bytes_sent,
        } = self;
        write!(
            f,
            "{opened} connections, {not_opened} not taken, {cut} cut; {done} done, {refused} refused, {granted} \
             granted; {bytes_sent} bytes sent"
        )
    }
}

/// Connections that an attack holds, and its result so far.
#[derive(Debug, Default)]
pub struct Siege {
    /// The held connections.
    pub held: Vec<Connection>,
    /// Result of everything else.
    pub outcome: Outcome,
    not_taken_in_a_row: u64,
}

impl Siege {
    /// Adds a connection, or records that there is none.
    pub fn take(&mut self, connection: std::io::Result<Connection>) -> Option<&mut Connection> {
        match connection {
            Ok(connection) => {
                self.outcome.opened += 1;
                self.not_taken_in_a_row = 0;
                self.held.push(connection);
                self.held.last_mut()
            }
            Err(_) => {
                self.outcome.not_opened += 1;
                self.not_taken_in_a_row += 1;
                None
            }
        }
    }

    /// Returns whether the server has accepted none of the last connections, after a wait for each. More would achieve
    /// nothing.
    pub fn accepts_nothing(&self) -> bool {
        self.not_taken_in_a_row >= 4
    }

    /// Waits until the server has ended all but `left` connections.
    pub async fn until_cut_to(&mut self, left: usize) {
        while self.held.len() > left {
            let mut held = std::mem::take(&mut self.held);
            // Any of them: the connections that stay may be anywhere in the list.
            let ended = {
                let ends = held.iter_mut().map(|it| Box::pin(it.until_cut()));
                futures_util::future::select_all(ends).await.1
            };
            let cut = held.swap_remove(ended);
            self.outcome.add_connection(&cut);
            // Others may have ended meanwhile, and are checked without waiting.
            for mut connection in held {
                connection.look();
                if connection.is_cut() {
                    self.outcome.add_connection(&connection);
                } else {
                    self.held.push(connection);
                }
            }
        }
    }

    /// Drops all connections.
    pub fn lift(mut self) -> Outcome {
        for connection in &mut self.held {
            connection.look();
            self.outcome.add_connection(connection);
        }
        self.outcome
    }
}
