//! The module `otel`, for builds without the feature: only `lib.rs` knows which one is there.

use std::convert::Infallible;

use crate::app::{Server, ServerError};
use crate::signals::Signals;

/// There are no spans.
pub(crate) type Span = Infallible;

/// No flags.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct OtlpFlags {}

impl OtlpFlags {
    /// Runs a server until a signal stops it.
    ///
    /// # Errors
    ///
    /// If a part of the server stops by itself.
    pub async fn run(self, _: &str, stop: Signals, server: Server) -> Result<(), ServerError> {
        stop.run(server).await
    }
}

/// The services, without spans.
pub(crate) fn traced<S>(services: S) -> S {
    services
}

pub(crate) const fn current() -> Option<String> {
    None
}

pub(crate) const fn asks(_: Option<&str>) -> Option<(Span, String)> {
    None
}

pub(crate) const fn answers(_: Option<&str>) -> Option<Span> {
    None
}
