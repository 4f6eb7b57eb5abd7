//! Candidates that meet in an etcd of a few lines, at virtual times: what each does in each state
//! (`transitions`), and that never two of them believe to be the master, whatever goes wrong (`never_two`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test"
)]

mod chance;
mod never_two;
mod store;
mod transitions;
mod world;
