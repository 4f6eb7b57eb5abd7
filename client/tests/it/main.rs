//! The client library from outside: its limiters, fake clients, and real connections to scripted servers.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, helpers included"
)]
#![allow(unreachable_pub, reason = "helpers of modules beside them")]

mod after_a_freeze;
#[cfg(feature = "leases")]
mod fake;
#[cfg(feature = "leases")]
mod keyed;
#[cfg(feature = "leases")]
mod limiters_shared;
#[cfg(feature = "leases")]
mod several;
#[cfg(feature = "leases")]
mod transport;
