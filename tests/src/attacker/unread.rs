//! Attacks by never reading: the server is asked for much, and keeps what it cannot send.
//!
//! The window of every stream is 0, so that HTTP/2 itself keeps the server from sending answers. What it sends
//! besides is read, for it says how much more may be asked; [`pings`] do not read even that.

use std::io;
use std::time::Duration;

use futures_util::future::join_all;
use prost::Message;
use tokio::time::timeout;

use super::claims::child_request;
use super::connection::Connection;
use super::frames::{DATA, END_STREAM, INITIAL_WINDOW_SIZE, PING, begin_call, frame, message};
use super::waiting::STREAM;
use super::{Siege, Target};

/// The path of the call for operators, with the largest answer.
pub const GET_STATUS: &str = "/doorward.admin.v1.Admin/GetStatus";
/// The path of the call that streams changes of health.
pub const WATCH: &str = "/grpc.health.v1.Health/Watch";
/// The path of the call that lists the services.
pub const REFLECTION: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

const NO_WINDOW: &[(u16, u32)] = &[(INITIAL_WINDOW_SIZE, 0)];

/// How long a server that takes nothing more is pressed.
const PRESSED: Duration = Duration::from_millis(500);

/// Asks on streams of a connection each, so often, and reads no answer.
async fn ask(
    target: Target,
    path: &str,
    connections: usize,
    streams: usize,
    messages: &[Vec<u8>],
    ends: bool,
) -> Siege {
    // At the same time: the server may take nothing more from one of them, which is waited for.
    let asking = (0..connections).map(|_| async {
        let mut connection = Connection::greet(target.from, target.grpc, NO_WINDOW).await?;
        let mut done = 0;
        for _ in 0..streams {
            let asked = ask_on(&mut connection, path, messages, ends, &mut done).await;
            if asked.is_err() {
                break;
            }
        }
        Ok((connection, done))
    });
    let mut siege = Siege::default();
    for asked in join_all(asking).await {
        siege.outcome.done += asked.as_ref().map_or(0, |(_, done)| *done);
        siege.take(asked.map(|(connection, _)| connection));
    }
    siege
}

async fn ask_on(
    connection: &mut Connection,
    path: &str,
    messages: &[Vec<u8>],
    ends: bool,
    done: &mut u64,
) -> io::Result<()> {
    let stream = connection.next_stream();
    connection.look_at(stream);
    let mut out = Vec::new();
    begin_call(&mut out, stream, path);
    connection.send(&out).await?;
    for body in messages {
        timeout(PRESSED, connection.send_data(stream, body, false)).await??;
        *done += 1;
    }
    if ends {
        out.clear();
        frame(&mut out, DATA, END_STREAM, stream, &[]);
        connection.send(&out).await?;
    }
    Ok(())
}

/// Child servers that ask again and again for ten resources, and read no answer.
pub async fn child_streams(target: Target, streams: usize, messages: usize) -> Siege {
    let body = message(&child_request("unread", "unread", 10));
    let messages = vec![body; messages];
    ask(target, STREAM, streams, 1, &messages, false).await
}

/// The whole status, so often on every connection, and no answer is read.
pub async fn statuses(target: Target, connections: usize, streams: usize) -> Siege {
    let request = doorward_proto::admin::v1::GetStatusRequest {
        leases_max: u32::MAX,
        ..Default::default()
    };
    let messages = [message(&request)];
    ask(target, GET_STATUS, connections, streams, &messages, true).await
}

/// Asks the health service to stream every change.
pub async fn health_watches(target: Target, connections: usize, streams: usize) -> Siege {
    // The empty message: the server as a whole.
    let messages = [message(&())];
    ask(target, WATCH, connections, streams, &messages, true).await
}

/// The reflection service is asked again and again on one stream for all that it has.
pub async fn reflections(target: Target, connections: usize, streams: usize) -> Siege {
    /// As `ServerReflectionRequest` with `file_containing_symbol`.
    #[derive(Clone, PartialEq, Message)]
    struct Request {
        #[prost(string, tag = "4")]
        file_containing_symbol: String,
    }
    let request = Request {
        file_containing_symbol: "doorman.Capacity".to_owned(),
    };
    let messages = vec![message(&request); 100];
    ask(target, REFLECTION, connections, streams, &messages, false).await
}

/// Pings whose answers are not read.
pub async fn pings(target: Target, connections: usize, each: usize) -> Siege {
    let mut siege = Siege::default();
    let mut batch = Vec::new();
    for _ in 0..100 {
        frame(&mut batch, PING, 0, 0, &[7; 8]);
    }
    for _ in 0..connections {
        let connection = Connection::greet(target.from, target.grpc, NO_WINDOW).await;
        let Some(connection) = siege.take(connection) else {
            continue;
        };
        let mut done = 0;
        for _ in 0..each.div_ceil(100) {
            if connection.send_unread(&batch, PRESSED).await.is_err() {
                break;
            }
            done += 100;
        }
        siege.outcome.done += done;
    }
    siege
}
