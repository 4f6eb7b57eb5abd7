//! Doorward end to end: real processes on loopback, a real etcd, and the rules of the house.
//!
//! Most of these tests wait for leases to end or for elections, so they wait at the same time.

mod chaos;
mod etcd;
mod outside;
mod processes;
mod supply_chain;
mod tidy;
