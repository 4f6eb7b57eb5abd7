//! Candidates in an election: the reaction in each state. The simulator plays elections in which clocks, connections
//! and etcd fail, and checks that two masters never decide.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]

mod driven_candidate;
mod election_stories;
mod lease_span;
mod marks;
mod state_table;
mod templates;
