//! The engine from outside: stories, vectors of the oracle, random invariants, and its limits.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test fails by panicking, helpers included"
)]
#![allow(unreachable_pub, reason = "helpers of modules beside them")]

mod asking;
mod behaviours;
mod bounded_holders;
mod budgets;
mod child_servers;
mod client_streams;
mod invariants;
mod lies;
mod limits_of_children;
mod limits_of_clients;
mod looks;
mod parents;
mod parts;
mod plans;
mod priorities;
mod reasons;
mod recorded;
mod reload;
mod repeats;
mod safe_capacity;
mod sent_demand;
mod stories;
mod story;
mod tree_accuracy;
mod tree_invariants;
mod vectors;
mod whole;
