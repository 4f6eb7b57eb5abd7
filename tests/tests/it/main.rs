//! Doorward end to end: real processes on loopback, a real etcd, and the rules of the house.
//!
//! Most tests of processes wait for leases to end or for elections. `tests/run` finds them by the name of their module,
//! and runs them beside tests that compute.

mod package_scripts;
mod processes;
mod supply_chain;
mod tidy;
