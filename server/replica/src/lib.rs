//! One server of a node, without I/O: a node composed with its sessions.
//!
//! ```text
//! requests of clients and children ─┐                 ┌─▶ answers, pushes, ends of streams
//! events of the parent's connection ─┤                ├─▶ commands to the parent's connection
//! keys and answers of etcd ──────────┼─▶  Replica  ───┼─▶ requests to etcd
//! time, wall clock ──────────────────┘   node          ├─▶ events for the log
//!                                        sessions      └─▶ the next timeout
//! ```
//!
//! The node ([`doorward_engine`]) decides who gets what. The sessions ([`doorward_session`]) decide which server to
//! ask, which stream counts, and who is the master. They do not know each other. [`Replica`] passes what one of them
//! says to the others, and is the only place that does so. The server and the simulator drive it, and keep only the
//! transports: sockets and etcd in the server, a virtual network and a virtual etcd in the simulator.
//!
//! The file `replica.rs` states the contract of a driver.

mod calls;
mod chance;
mod children;
mod config;
mod election;
mod output;
mod parent;
mod replica;

pub use children::ChildMessage;
pub use config::{ParentConfig, ReplicaConfig};
pub use election::templates_in_force;
pub use output::{CallNumber, Output, StreamEnd, ToChild, ToEtcd, ToParent};
pub use parent::{FromParent, ParentStatus};
pub use replica::{ClientAnswer, Replica};
