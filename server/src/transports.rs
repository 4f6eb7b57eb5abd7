//! The connections of the replica to other servers: its [parent], and etcd for the [election] of its node's master.
//!
//! Child servers come in by [`rpc`](crate::rpc).

pub mod election;
pub mod parent;
