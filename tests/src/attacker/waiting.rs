//! Attacks by silence and slowness: each holds as much of the server as it can, for as long as the server allows.

use std::net::SocketAddr;
use std::time::Duration;

use futures_util::future::join_all;

use super::connection::Connection;
use super::frames::{
    DATA, END_HEADERS, HEADERS, announcement, begin_call, call_headers, frame, message,
};
use super::{Siege, Target};
use crate::attacker::claims::child_request;

/// Path of a client's call.
pub const GET_CAPACITY: &str = "/doorman.Capacity/GetCapacity";
/// Path of a child server's stream.
pub const STREAM: &str = "/doorward.v1.CapacityStream/StreamServerCapacity";

/// Largest message of a child server.
pub const MESSAGE_BYTES: u32 = 4 << 20;

/// Opens calls that announce a large message and never send it, on some connections.
pub async fn half_open_calls(target: Target, connections: usize, calls: usize) -> Siege {
    announced_calls(target, connections, calls, GET_CAPACITY).await
}

/// Does the same with a given call.
pub async fn announced_calls(
    target: Target,
    connections: usize,
    calls: usize,
    path: &str,
) -> Siege {
    let mut siege = Siege::default();
    for _ in 0..connections {
        let connection = Connection::greet(target.from, target.grpc, &[]).await;
        let Some(connection) = siege.take(connection) else {
            continue;
        };
        let mut done = 0;
        for _ in 0..calls {
            let stream = connection.next_stream();
            let mut out = Vec::new();
            begin_call(&mut out, stream, path);
            frame(&mut out, DATA, 0, stream, &announcement(MESSAGE_BYTES));
            if connection.send(&out).await.is_err() {
                break;
            }
            done += 1;
        }
        siege.outcome.done += done;
    }
    siege
}

/// Opens streams of child servers that stop shortly before the end of their first message, each on its own connection:
/// the server has nearly all of it, and can use none.
pub async fn stopped_child_streams(target: Target, streams: usize) -> Siege {
    const MISSING: u32 = MESSAGE_BYTES / 400;
    let body = vec![0; (MESSAGE_BYTES - MISSING) as usize];
    let sending = (0..streams).map(|_| async {
        let mut connection = Connection::greet(target.from, target.grpc, &[]).await?;
        let stream = connection.next_stream();
        connection.look_at(stream);
        let mut out = Vec::new();
        begin_call(&mut out, stream, STREAM);
        let announced = announcement(MESSAGE_BYTES);
        let arrived = async {
            connection.send(&out).await?;
            connection.send_data(stream, &announced, false).await?;
            connection.send_data(stream, &body, false).await
        };
        let arrived = arrived.await.is_ok();
        Ok((connection, arrived))
    });
    let mut siege = Siege::default();
    for sent in join_all(sending).await {
        siege.outcome.done += sent.as_ref().map_or(0, |(_, arrived)| u64::from(*arrived));
        siege.take(sent.map(|(connection, _)| connection));
    }
    siege
}

/// Opens child servers that ask once and then stay silent, as an honest one does between changes.
pub async fn quiet_child_streams(target: Target, streams: usize) -> Siege {
    let mut siege = Siege::default();
    for number in 0..streams {
        let connection = Connection::greet(target.from, target.grpc, &[]).await;
        let Some(connection) = siege.take(connection) else {
            continue;
        };
        let stream = connection.next_stream();
        connection.look_at(stream);
        let mut out = Vec::new();
        begin_call(&mut out, stream, STREAM);
        let request = message(&child_request(&format!("quiet-{number}"), "quiet", 1));
        let arrived = async {
            connection.send(&out).await?;
            connection.send_data(stream, &request, false).await
        };
        siege.outcome.done += u64::from(arrived.await.is_ok());
    }
    siege
}

/// Opens connections to an address that send the same few bytes, and nothing more.
async fn said(target: Target, to: SocketAddr, connections: usize, bytes: &[u8]) -> Siege {
    let mut siege = Siege::default();
    for _ in 0..connections {
        if siege.accepts_nothing() {
            break;
        }
        let connection = Connection::open(target.from, to).await;
        if let Some(connection) = siege.take(connection) {
            siege.outcome.done += u64::from(connection.send(bytes).await.is_ok());
        }
    }
    siege
}

/// Opens connections that send nothing.
pub async fn silent_sockets(target: Target, connections: usize) -> Siege {
    said(target, target.grpc, connections, &[]).await
}

/// Ends a number of the oldest connections each second, and opens as many new ones, for a while.
pub async fn reopen(siege: &mut Siege, target: Target, per_second: u32, times: usize) {
    let mut turns = tokio::time::interval(Duration::from_secs(1) / per_second.max(1));
    for _ in 0..times {
        if siege.accepts_nothing() {
            break;
        }
        turns.tick().await;
        if !siege.held.is_empty() {
            let mut oldest = siege.held.remove(0);
            oldest.look();
            siege.outcome.add_connection(&oldest);
        }
        siege.take(Connection::open(target.from, target.grpc).await);
    }
}

/// Opens connections that send the first byte of HTTP/2, and nothing more.
pub async fn one_byte(target: Target, connections: usize) -> Siege {
    said(target, target.grpc, connections, b"P").await
}

/// Opens connections to the pages that begin a request and do not end it.
pub async fn slow_http_headers(target: Target, connections: usize) -> Siege {
    let to = target.http.unwrap_or(target.grpc);
    said(
        target,
        to,
        connections,
        b"GET / HTTP/1.1\r\nhost: a\r\nx-a: ",
    )
    .await
}

/// Opens connections to the pages that stay after one answer.
pub async fn idle_http(target: Target, connections: usize) -> Siege {
    let to = target.http.unwrap_or(target.grpc);
    let request = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
    said(target, to, connections, request).await
}

/// Sends one more byte on every connection that is still open.
pub async fn drip(siege: &mut Siege) {
    for connection in &mut siege.held {
        connection.look();
        if !connection.is_cut() {
            // The server may cut it at this moment.
            let _ = connection.send(b"a").await;
        }
    }
}

/// Opens calls whose headers do not end.
pub async fn unfinished_headers(target: Target, connections: usize) -> Siege {
    let mut siege = Siege::default();
    let block = call_headers(GET_CAPACITY);
    for _ in 0..connections {
        let connection = Connection::greet(target.from, target.grpc, &[]).await;
        let Some(connection) = siege.take(connection) else {
            continue;
        };
        let mut out = Vec::new();
        let stream = connection.next_stream();
        frame(&mut out, HEADERS, 0, stream, &block);
        siege.outcome.done += u64::from(connection.send(&out).await.is_ok());
    }
    siege
}

/// Opens connections that complete the greeting, and ask for nothing.
pub async fn greeted(target: Target, connections: usize) -> Siege {
    let mut siege = Siege::default();
    for _ in 0..connections {
        let connection = Connection::greet(target.from, target.grpc, &[]).await;
        siege.outcome.done += u64::from(connection.is_ok());
        siege.take(connection);
    }
    siege
}

/// Appends complete headers of a call, so that the error is elsewhere.
pub fn begin(out: &mut Vec<u8>, stream: u32, ends: bool) {
    let flags = END_HEADERS | u8::from(ends);
    frame(out, HEADERS, flags, stream, &call_headers(GET_CAPACITY));
}
