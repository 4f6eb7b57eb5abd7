//! An attacker on the wire: HTTP/2 frames written by hand, so that it can send what no client library would.
//!
//! What there is, from the bottom up:
//!
//! | | |
//! | --- | --- |
//! | [`frames`] | HTTP/2 frames, header blocks and gRPC messages as bytes. No I/O. |
//! | [`seen`] | What a server sent, frame by frame, as far as an attacker cares. No I/O. |
//! | [`connection`] | A socket from an address of our choice that writes such bytes. |
//! | [`waiting`] | Attacks by saying little or nothing: silence, slowness, calls that never end. |
//! | [`unread`] | Attacks by never reading what was asked for. |
//! | [`flood`] | Attacks by frames that cost the server more than their sender. |
//! | [`claims`] | Attacks by well-formed requests: invented names, forged children, lies. |
//! | [`catalogue`] | All of them by name, in three sizes. |
//! | [`process`] | The attacker as a process, for benches. |
//!
//! An attacker has an address of its own on loopback (127.0.0.2 and up; the honest are at 127.0.0.1), because
//! servers distinguish callers by address.

pub mod catalogue;
pub mod claims;
pub mod connection;
pub mod flood;
pub mod frames;
pub mod process;
pub mod seen;
pub mod unread;
pub mod waiting;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use connection::Connection;

/// Who attacks whom.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Where the server has gRPC.
    pub grpc: SocketAddr,
    /// Where it has its pages. Absent: nowhere.
    pub http: Option<SocketAddr>,
    /// Where the attack comes from.
    pub from: IpAddr,
}

impl Target {
    /// The same, attacked from another address.
    pub fn from(self, from: IpAddr) -> Self {
        Self { from, ..self }
    }
}

/// An attacker's address. 0 is the first.
pub fn attacker(number: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(127, 0, 1, number.saturating_add(1)))
}

/// What an attack came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Connections that were made.
    pub opened: u64,
    /// Connections that the server did not take.
    pub not_opened: u64,
    /// Connections that the server ended, or reset.
    pub cut: u64,
    /// Things that were done: frames, calls, requests, as the attack counts.
    pub done: u64,
    /// Streams that the server reset, and requests that it refused.
    pub refused: u64,
    /// What was asked for and given.
    pub granted: u64,
    /// Bytes that the system took from the attacker.
    pub bytes_sent: u64,
}

impl Outcome {
    /// Adds what another part of an attack came to.
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

/// Connections that an attack holds, and what it came to so far.
#[derive(Debug, Default)]
pub struct Siege {
    /// Those that are held.
    pub held: Vec<Connection>,
    /// Of everything but those.
    pub outcome: Outcome,
    not_taken_in_a_row: u64,
}

impl Siege {
    /// Takes a connection, or notes that there is none.
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

    /// Whether the server has not taken any of the last connections, each of which was waited for: nothing is
    /// gained by more.
    pub fn is_hopeless(&self) -> bool {
        self.not_taken_in_a_row >= 4
    }

    /// Waits until the server has ended all connections but so many.
    pub async fn until_cut_to(&mut self, left: usize) {
        while self.held.len() > left {
            let mut held = std::mem::take(&mut self.held);
            // Whichever: those that are to stay may be anywhere among them.
            let ended = {
                let ends = held.iter_mut().map(|it| Box::pin(it.until_cut()));
                futures_util::future::select_all(ends).await.1
            };
            let cut = held.swap_remove(ended);
            self.outcome.add_connection(&cut);
            // Others may have ended meanwhile, and are looked at without waiting.
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

    /// Lets go of all connections.
    pub fn lift(mut self) -> Outcome {
        for connection in &mut self.held {
            connection.look();
            self.outcome.add_connection(connection);
        }
        self.outcome
    }
}
