//! The shell around the pure half: sockets, timers, tasks.

pub(crate) mod addresses;
pub(crate) mod book;
pub(crate) mod connection;
pub mod convert;
pub(crate) mod fake_answers;
#[cfg(feature = "otel")]
mod otel;
pub(crate) mod pushback;
mod stream;
pub(crate) mod task;
