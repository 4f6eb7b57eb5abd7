//! The module `otlp`, for builds without the feature `otel`: only `lib.rs` knows which one is there.

use crate::app::{Server, ServerError};
use crate::flags::LogFlags;
use crate::signals::Signals;

/// Runs a server until a signal stops it.
///
/// # Errors
///
/// If a part of the server stops by itself.
pub async fn run(_: &LogFlags, _: &str, stop: Signals, server: Server) -> Result<(), ServerError> {
    stop.run(server).await
}
