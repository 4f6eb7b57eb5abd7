//! Candidates that meet in an etcd of a few lines, at virtual times: what each does in each state
//! (`transitions`, `stories`, `templates`), and that never two of them believe to be the master, whatever goes wrong (`never_two`).

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test"
)]

mod chance;
mod mishaps;
mod never_two;
mod played;
mod store;
mod stories;
mod templates;
mod transitions;
mod world;
