//! Local limits against exact references, vectors, and threads.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a test fails by panicking, helpers included"
)]
#![allow(unreachable_pub, reason = "helpers of modules beside them")]

mod atomic_bucket;
mod atomic_fed;
mod clock_steps;
mod debts;
mod keyed;
mod laws;
mod pictures;
mod reference;
mod rule;
mod several;
mod threads;
mod vectors;
