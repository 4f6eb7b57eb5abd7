//! gRPC connections: HTTP/2, with every limit that the library offers.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio_util::sync::CancellationToken;

use crate::calls::{CallService, answer};
use crate::door::Door;
use crate::frames::ControlFrames;
use crate::guarded::Guarded;
use crate::listener::Listener;
use crate::listening;
use crate::socket::Socket;
use crate::visit::Visit;

/// Largest size of a call's headers, in bytes.
const HEADER_BYTES_MAX: u32 = 16 * 1024;

/// Time after which a silent connection is pinged.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(30);

/// Time in which a client has to answer a ping; else its connection is closed.
const KEEPALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// Bytes of one call that may be in flight or unread.
const STREAM_WINDOW: u32 = 128 * 1024;

/// Bytes of all calls of one connection that may be in flight or unread.
const CONNECTION_WINDOW: u32 = 256 * 1024;

/// Bytes of an answer that the library buffers.
const SEND_BUFFER: usize = 64 * 1024;

/// Streams of one connection that this server may reset as invalid, or refuse as too many, before it closes the
/// connection. A proxy may send many calls on a new connection before it learns the limit.
const OWN_RESETS_MAX: usize = 4_096;

/// Serves gRPC until `stop`, then finishes the calls in progress.
pub async fn serve<S>(
    listener: impl Into<Listener>,
    door: Arc<Door>,
    services: Arc<S>,
    stop: CancellationToken,
) where
    S: CallService<Incoming>,
{
    let serve = move |socket, visit, stop| converse(socket, visit, Arc::clone(&services), stop);
    listening::serve(listener, door, stop, serve).await;
}

async fn converse<S>(
    socket: Socket,
    visit: Visit,
    services: Arc<S>,
    stop: CancellationToken,
) -> Result<(), hyper::Error>
where
    S: CallService<Incoming>,
{
    let Visit { door, connection } = &visit;
    let limits = door.limits();
    let calls_max = limits.streams_per_connection.small();
    // Resets of calls that the library has not handed over yet. A lower limit would close connections whose callers
    // timed out while this server stalled.
    let pending_resets_max =
        usize::try_from(ControlFrames::resets_at_once(calls_max)).unwrap_or(usize::MAX);
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(calls_max)
        .max_header_list_size(HEADER_BYTES_MAX)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_send_buf_size(SEND_BUFFER)
        .max_pending_accept_reset_streams(pending_resets_max)
        .max_local_error_reset_streams(OWN_RESETS_MAX)
        .keep_alive_interval(KEEPALIVE_INTERVAL)
        .keep_alive_timeout(KEEPALIVE_TIMEOUT)
        .auto_date_header(false);
    let control = ControlFrames::new(limits.control_frames.small(), calls_max);
    let io = Guarded::new(socket, visit.clone(), Some(control));
    // In a box, so that a stream of answers has no room for the work before them.
    let calls = |request| Box::pin(answer(Arc::clone(&services), visit.clone(), request));
    let calls = service_fn(calls);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(io), calls));
    let served = tokio::select! {
        served = serving.as_mut() => served,
        () = stop.cancelled() => {
            let is_unheard = !connection.is_proven() && !connection.is_busy();
            if is_unheard && connection.midway.has_lasted(Duration::ZERO, door.now()) {
                // Its preface is not complete, or its first frame.
                return Ok(());
            }
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if served.as_ref().is_err_and(is_flood) {
        door.refuse(&door.limits().control_frames);
    }
    served
}

/// Returns whether the HTTP library closed the connection because of too many resets or headers.
fn is_flood(error: &hyper::Error) -> bool {
    std::error::Error::source(error)
        .and_then(|source| source.downcast_ref::<h2::Error>())
        .and_then(h2::Error::reason)
        .is_some_and(|reason| reason == h2::Reason::ENHANCE_YOUR_CALM)
}
