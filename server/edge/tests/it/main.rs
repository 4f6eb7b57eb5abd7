//! Doors of the edge, from outside.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "clippy takes only functions with #[test] as tests"
)]

mod crowded;
mod decisions;
mod granting_node;
mod http;
mod quotas;
mod redis_door;
mod shares;
