//! Doorward's server: everything around the engine that touches the world.
//!
//! The engine ([`doorward_engine`]) decides. This crate gives it a clock, a lock, a network and operators.
//! [`app::Server`] is a running server. The binary, the demonstration of the command line, and tests start it and shut
//! it down. The modules:
//!
//! - [`replica_handle`] holds the replica behind a lock, which is held only for pure calls;
//! - [`caller`] returns whom a call is attributed to;
//! - [`rpc`] serves gRPC, and only [`rpc::convert`] knows both wire and engine types;
//! - [`admin`] serves operators and tools by gRPC;
//! - [`transports`] connect the replica to its parent and to etcd;
//! - [`status`] collects the state of a server; [`web`], [`metrics`] and the admin service render it;
//! - [`yielding`] lets pages and metrics yield to other threads;
//! - [`templates`] reads the templates again whenever they change, in a file or in etcd;
//! - [`edge`] serves programs without a client library, by these rules;
//! - [`rules`] keeps rule documents, and knows the services that run them; [`stored_place`] is where operators change
//!   documents;
//! - [`otel`] makes spans, and [`otlp`] sends them and the metrics to a collector, in builds with that feature;
//! - [`signals`] stop a program, or make it read its files again; [`program`] has its exit codes;
//! - [`clock`] is the only module that reads clocks and draws entropy.

pub mod admin;
pub mod app;
pub mod caller;
pub mod clock;
pub mod edge;
pub mod files;
pub mod flags;
pub mod limits;
pub mod logs;
pub mod memory;
pub mod methods;
pub mod metrics;
#[cfg_attr(not(feature = "otel"), path = "otel/off.rs")]
pub mod otel;
#[cfg_attr(not(feature = "otel"), path = "otlp/off.rs")]
pub mod otlp;
pub mod program;
pub mod replica_handle;
pub mod rpc;
pub mod rules;
pub mod security;
pub mod signals;
pub mod state_directory;
pub mod status;
pub mod stored_place;
pub mod templates;
pub mod transports;
mod unary;
pub mod web;
pub mod yielding;
