//! The client library from outside: its limiters, fake clients, and real connections to scripted servers.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, helpers included"
)]
#![allow(unreachable_pub, reason = "helpers of modules beside them")]

mod after_a_freeze;
#[cfg(feature = "transport")]
mod fake;
#[cfg(feature = "transport")]
mod keyed;
#[cfg(feature = "transport")]
mod limiters_shared;
#[cfg(feature = "transport")]
mod transport;
