//! The module `otel`, for builds without the feature: only `lib.rs` knows which one is there.

use std::convert::Infallible;

/// There are no spans.
pub(crate) type Span = Infallible;

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
