//! Candidates in an election, with a model of etcd and virtual time: what each does in each state
//! (`state_table`, `election_stories`, `templates`), and that never two of them believe to be the master, whatever goes wrong (`never_two`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test"
)]

mod driven_candidate;
mod election_chance;
mod election_stories;
mod election_world;
mod etcd_model;
mod mishaps;
mod never_two;
mod state_table;
mod templates;
