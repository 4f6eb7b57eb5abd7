//! A candidate's part in an election in etcd.

pub mod store;
