//! Limits of a service: rules for its callers, leases of what it shares with other programs, and overload control.
//!
//! | module | feature | purpose |
//! | --- | --- | --- |
//! | this one | `leases` (default) | [`Client`] leases capacity of a shared resource from a server, and throttles the program to it |
//! | `rules` | `rules` | a limit for each caller of a service, by rules; `rules::source` keeps them up to date |
//! | `overload` | `overload` | the most critical requests that a service can serve in time |
//! | `layer` | `tower` | all of them around the services of axum (feature `axum`), hyper and tonic (feature `tonic`) |
//!
//! The features `tls`, `etcd` and `otel` extend `leases`. Without `leases`, the library needs no server and brings
//! neither tonic nor the protocol. Local limits without rules are a crate of their own, `doorward-limits`.
//!
//! # Leases
//!
//! ```no_run
//! use doorward::limiter::rate::Burst;
//! use doorward::Client;
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! // One client per program.
//! let client = Client::connect("127.0.0.1:6970").await?;
//!
//! // One handle per resource, whose demand is measured…
//! let database = client.resource("example/fair").open()?;
//!
//! // …and a limiter that holds the program to its lease, as it changes.
//! let limiter = database.rate_limiter(Burst::default());
//! for _query in 0..1000 {
//!     limiter.acquire(1).await?;
//!     // Do one thing that costs 1.
//! }
//!
//! // Release the leases, so that other clients can use them at once.
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! While a lease is valid, the client obeys it. When the client cannot refresh it, the resource's [`Mode`] decides: a
//! pessimistic client uses nothing, an optimistic client uses what it wants, and a client in safe mode uses what it
//! wants up to the safe capacity of its last lease. [`Holding`] says how much a program may use, for how long, and why
//! it is not more.
//!
//! The tutorial `docs/clients.md` in the repository starts from an empty folder. For tests there is [`fake`].
//!
//! # Finding servers
//!
//! An address is that of a server, `host:port`. Any server of the node will do, because every server names the master.
//! The client tries several addresses in turn. With the feature `etcd`, an address may also be that of a node whose
//! servers are registered in etcd:
//!
//! ```text
//! etcd://HOST:PORT[,HOST:PORT…]/NODE[?KEY=VALUE[&KEY=VALUE…]]
//! etcd://etcd-0:2379,etcd-1:2379/eu
//! etcd://etcd-0:2379/eu?ca=/etc/etcd/ca.pem&user=reader&password_file=/etc/etcd/password
//! ```
//!
//! The keys are `prefix` (the prefix of the keys of all nodes, `/doorward/nodes` if absent), `ca`, `cert` and `key`
//! (PEM files; with `ca`, the client uses TLS for etcd), `user` and `password_file`. Percent-encode special characters
//! in names and values. `etcd:///NODE` leaves the rest to [`ClientBuilder::etcd`]. The library reads nothing from the
//! environment.
//!
//! The client reads etcd when it connects, and again when it has to find a server: after a failed call, or when no
//! known server has a master. It tries the master that etcd names first, then the node's other servers, then the other
//! given addresses. It keeps no connection to etcd. It waits for etcd at most two seconds, and at most half the time of
//! a call, and reads it no more often than its backoff allows. While etcd is unreachable, the last known servers count.
//!
//! While the servers of a node elect a master, the client asks about every second. [`state`] describes its behaviour
//! after other failures.
//!
//! # The two halves
//!
//! [`state`] and [`limiter`] are pure: time and random numbers are arguments, and they use no network. They compile
//! with the feature `state` alone, and the simulator runs them. The rest is a tokio and tonic shell around them.

#![warn(missing_debug_implementations)]

/// Implements `Debug` for types whose content is locks, tasks and functions: by their names alone.
#[cfg(any(feature = "leases", feature = "rules"))]
macro_rules! debug_by_name {
    ($($(@$generic:ident)* $type:ty),+) => {$(
        impl <$($generic),*> std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.debug_struct(stringify!($type)).finish_non_exhaustive()
            }
        }
    )+};
}

/// Implements `Debug` for errors by their texts, because a `main` that fails with one prints that.
macro_rules! debug_by_text {
    ($($type:ty),+) => {$(
        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    )+};
}

#[cfg(feature = "state")]
pub mod capacity;
#[cfg(feature = "engine")]
pub mod in_process;
#[cfg(feature = "tower")]
pub mod layer;
#[cfg(feature = "state")]
pub mod limiter;
#[cfg(any(feature = "state", feature = "rules"))]
mod lock;
#[cfg(feature = "overload")]
pub mod overload;
mod refusal;
#[cfg(feature = "rules")]
pub mod rules;
#[cfg(feature = "state")]
pub mod state;
#[cfg(feature = "state")]
pub mod time;

#[cfg(feature = "leases")]
mod acquire;
#[cfg(feature = "leases")]
pub mod blocking;
#[cfg(feature = "leases")]
mod budget;
#[cfg(feature = "leases")]
mod client;
#[cfg(feature = "leases")]
mod clock;
#[cfg(feature = "leases")]
mod concurrency_limiter;
#[cfg(feature = "leases")]
mod error;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(feature = "leases")]
pub mod fake;
#[cfg(feature = "leases")]
mod gate;
#[cfg(feature = "leases")]
mod handle;
#[cfg(feature = "leases")]
mod holding;
#[cfg(feature = "leases")]
mod hooks;
#[cfg(feature = "leases")]
mod keyed;
#[cfg(feature = "leases")]
mod measured;
#[cfg(feature = "leases")]
mod queue;
#[cfg(feature = "leases")]
mod rate_limiter;
#[cfg(feature = "leases")]
mod rate_permit;
#[cfg(feature = "leases")]
mod resource;
#[cfg(feature = "leases")]
mod slot;
#[cfg(feature = "tls")]
pub mod tls;
#[cfg(feature = "leases")]
mod transport;

#[cfg(feature = "state")]
pub use capacity::{Capacity, Source};
#[cfg(feature = "state")]
pub use state::{LimitedBy, Mode};

/// The type of all costs. A whole number is one; [`Units::at_least`] makes one of a measured number.
pub use doorward_limits::Units;
pub use refusal::{Refusal, Why};

#[cfg(feature = "leases")]
pub use self::{
    acquire::{Acquire, And, Refund},
    budget::BudgetLimiter,
    client::{Client, ClientBuilder, ResourceBuilder},
    concurrency_limiter::{ConcurrencyLimiter, Permit},
    error::{ConnectError, ResourceError},
    holding::Holding,
    hooks::{Hooks, NoHooks},
    keyed::{Keyed, KeyedBuilder, OnFailure},
    rate_limiter::RateLimiter,
    rate_permit::{RatePermit, Receipt},
    resource::Resource,
};

/// Conversion of wire messages.
#[cfg(feature = "wire")]
pub use transport::convert as wire;

/// The guide, whose programs compile as tests.
#[cfg(all(doctest, feature = "leases"))]
#[doc = include_str!("../../docs/clients.md")]
struct Guide;
