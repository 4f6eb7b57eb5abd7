//! Doorward's server: everything around the engine that touches the world.
//!
//! The engine ([`doorward_engine`]) decides; this crate gives it a clock, a lock, a network and
//! operators. [`app::Server`] is a running server, started and shut down by the binary, by the
//! demonstration of the command line and by tests alike. What knows what:
//!
//! - [`node_handle`] holds the node behind a lock that is taken for pure calls only;
//! - [`rpc`] serves gRPC, and [`rpc::convert`] alone knows both wire and engine types;
//! - [`upstream`] asks the parent, below the root;
//! - [`election`] says who the master of the node is;
//! - [`status`] is what a server says of itself, which [`web`], [`metrics`] and the admin
//!   service render;
//! - [`unhurried`] is how whoever looks lets others go first;
//! - [`templates`] has them read again whenever they change, in a file or in etcd;
//! - [`rules`] keeps rule documents, and knows the services that run them;
//! - [`clock`] alone reads clocks and draws entropy.

pub mod app;
pub mod clock;
pub mod door;
pub mod election;
pub mod files;
pub mod flags;
pub mod limits;
pub mod logs;
pub mod memory;
pub mod metrics;
pub mod node_handle;
pub mod rpc;
pub mod rules;
pub mod status;
pub mod templates;
pub mod unhurried;
pub mod upstream;
pub mod web;
