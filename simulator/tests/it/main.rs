//! Tests of the simulator from outside: whole runs, and the command line.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, helpers included"
)]
#![allow(unreachable_pub, reason = "helpers of modules beside them")]

mod command_line;
mod runs;
