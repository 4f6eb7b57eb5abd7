//! Limits for programs that have no client library: Envoy, plain HTTP and Redis clients.
//!
//! Each caller is a holder of leases in the node of this process, as a client of it would be. So their shares are fair,
//! and the capacity is never exceeded.
//!
//! - [`holder`] connects a caller to the node, without a network; [`node`] is what it asks of it.
//! - [`caller`] has the leases of one caller; [`edge`] decides requests by the rules, with these leases.
//! - [`rls`] and [`rlqs`] serve Envoy, [`http`] serves programs with plain HTTP, and [`resp`] clients of Redis.
//! - [`clock`] is the only file that reads a clock or draws random numbers.

pub mod caller;
pub mod clock;
pub mod edge;
pub mod holder;
pub mod http;
pub mod ids;
pub mod node;
pub mod resp;
pub mod rlqs;
pub mod rls;
