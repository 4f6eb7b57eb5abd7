//! Entry of a server: accepts connections, and limits what one caller can cause.
//!
//! - [`registry`] holds the connections, and picks the one to close at a limit.
//! - [`guarded`] observes the bytes of each connection.
//! - [`calls`] receives a message in full before work on it starts ([`request_body`]), and counts an answer until the
//!   client reads it ([`response_body`]).
//! - [`accepting`] accepts connections; [`grpc`] and [`http`] serve them, and [`raw`] those of other protocols.
//! - [`bounded`] and [`meter`] are layers around the services; [`overload`] has the refusals of all.
//!
//! Nothing here depends on the service behind it: it hands in the [paths](paths::Paths) of methods, and the
//! [limits](door_limits::DoorLimits) with their texts.
//!
//! Every limit holds for each [caller](caller_id), and for all callers together.
//! [`access`] has TLS and identities, if the server wants them.

mod accepting;
pub mod access;
pub mod bounded;
pub mod caller_id;
pub mod calls;
pub mod charge;
pub mod connection;
mod density;
pub mod door;
pub mod door_limits;
pub mod frames;
pub mod grpc;
pub mod guarded;
pub mod health;
pub mod http;
pub mod limit;
pub mod listener;
pub mod listening;
pub mod meter;
pub mod overload;
pub mod paths;
mod proofs;
mod rate;
pub mod raw;
pub mod refusals;
mod registry;
pub mod request_body;
pub mod response_body;
pub mod socket;
pub mod tasks;
pub mod visit;

pub use crate::door::Door;
