//! The layers from outside: an axum router behind rules, and clients before them.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, helpers included"
)]
#![allow(unreachable_pub, reason = "helpers of modules beside them")]

mod client_side;
mod examples;
mod grpc;
mod http;
mod overload;
mod shared;
mod stand;
