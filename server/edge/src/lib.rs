//! Limits for programs that have no client library: Envoy, plain HTTP and Redis clients.
//!
//! Each identity is a holder of leases in the node of this process, as a client of it would be. So their shares are fair,
//! and the capacity is never exceeded. The callers of an identity share its leases.
//!
//! - [`holder`] connects an identity to the node, without a network; [`node`] is what it asks of it.
//! - [`asker`] is the name of a caller; [`room`] bounds the memory of all; [`records`] outlasts the process.
//! - [`caller`] has the leases of one identity; [`edge`] decides requests by the rules, with these leases.
//! - [`rls`] and [`rlqs`] serve Envoy, [`http`] serves programs with plain HTTP, and [`resp`] clients of Redis.
//! - [`clock`] is the only file that reads a clock or draws random numbers.

pub mod asker;
pub mod caller;
pub mod clock;
mod crowd;
pub mod edge;
pub mod holder;
pub mod http;
pub mod ids;
pub mod node;
pub mod records;
pub mod resp;
pub mod rlqs;
pub mod rls;
pub mod room;
mod work;
