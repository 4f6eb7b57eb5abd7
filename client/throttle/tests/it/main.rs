//! Tests of the throttler: its parts, and what it promises.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may panic"
)]

mod criticality;
mod decisions;
mod estimates;
mod facts;
mod laws;
mod service;
