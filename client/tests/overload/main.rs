//! Tests of the throttler: its parts, and what it promises.

#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may panic, and use a part of what the experiments use"
)]

mod criticality;
mod decisions;
mod estimates;
mod facts;
mod laws;
mod references;
mod service;
mod shapes;
mod traffic;
mod ways_out;
