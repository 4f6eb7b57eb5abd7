//! Doorward's client: lease capacity of a shared resource, and throttle yourself to it.
//!
//! ```no_run
//! use doorward_client::limiter::rate::Burst;
//! use doorward_client::{Client, Mode};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! // One client per program. Its id must be unique among those that share a resource.
//! let client = Client::builder("frontend-7").address("127.0.0.1:6970").connect().await?;
//!
//! // One handle per resource: say what you could use…
//! let database = client.resource("example/fair").wants(50.0).mode(Mode::Safe).open()?;
//!
//! // …and let the limiter hold you to what you get, as it changes.
//! let limiter = database.rate_limiter(Burst::default());
//! for _query in 0..1000 {
//!     limiter.acquire(1.0).await?;
//!     // Do one thing that costs 1.
//! }
//!
//! // Give back what you hold, for others to use at once.
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! While a lease is valid the client obeys it. When it cannot be renewed, the resource's [`Mode`]
//! says what to use: nothing (pessimistic), what it wants (optimistic), or what it wants up to the safe
//! capacity that came with the last lease (safe). [`Holding`] says what there is, why it is no more, and for how long.
//!
//! `docs/clients.md` in the repository begins in an empty folder; [`fake`] is for tests.
//!
//! # Finding servers
//!
//! An address is that of a server, `host:port`; any server of the node will do, since it says who
//! the master is, and several are tried in turn. With the feature `etcd`, it may also be that of a node
//! whose servers are registered in etcd:
//!
//! ```text
//! etcd://HOST:PORT[,HOST:PORT…]/NODE[?KEY=VALUE[&KEY=VALUE…]]
//! etcd://etcd-0:2379,etcd-1:2379/eu
//! etcd://etcd-0:2379/eu?ca=/etc/etcd/ca.pem&user=reader&password_file=/etc/etcd/password
//! ```
//!
//! The keys are `prefix` (what the keys of all nodes begin with, `/doorward/nodes` if absent), `ca`,
//! `cert` and `key` (PEM files; with `ca`, etcd is reached by TLS), `user` and `password_file`. What
//! is no plain letter in the name or in a value is percent-encoded. `etcd:///NODE` leaves all that
//! to [`ClientBuilder::etcd`]. Nothing is read from the environment.
//!
//! etcd is asked when the client connects, and again when it has to find a server anew: when a call
//! failed, or when none of the servers it knows has a master. The master that etcd names is tried
//! first, then the node's other servers, then other addresses that were given. The client keeps no
//! connection to etcd, waits for it two seconds at most (and at most half the time a call has), and
//! asks it no more often than its backoff lets it try; while etcd is away, the servers that were
//! known last count.
//!
//! While the servers of a node elect a master, the client asks about every second; see the
//! [`state`] for what else it does when something fails.
//!
//! # The two halves
//!
//! [`state`] and [`limiter`] are pure: no clock, no network, no chance but what they are handed.
//! They compile without the feature `transport` and are what the simulator runs. The rest is a
//! tokio and tonic shell around them.

pub mod capacity;
pub mod limiter;
pub mod state;
pub mod time;

#[cfg(feature = "transport")]
mod client;
#[cfg(feature = "transport")]
mod clock;
#[cfg(feature = "transport")]
mod concurrency_limiter;
#[cfg(feature = "transport")]
mod error;
#[cfg(feature = "etcd")]
pub mod etcd;
#[cfg(feature = "transport")]
pub mod fake;
#[cfg(feature = "transport")]
mod gate;
#[cfg(feature = "transport")]
mod holding;
#[cfg(feature = "transport")]
mod hooks;
#[cfg(feature = "transport")]
mod measured;
#[cfg(feature = "transport")]
mod queue;
#[cfg(feature = "transport")]
mod rate_limiter;
#[cfg(feature = "transport")]
mod resource;
#[cfg(feature = "transport")]
mod slot;
#[cfg(feature = "transport")]
mod transport;

pub use capacity::{Capacity, Source};
pub use state::{LimitedBy, Mode};

#[cfg(feature = "transport")]
pub use client::{Client, ClientBuilder, ResourceBuilder};
#[cfg(feature = "transport")]
pub use concurrency_limiter::{ConcurrencyLimiter, Permit};
#[cfg(feature = "transport")]
pub use error::{AcquireError, ConnectError, ResourceError};
#[cfg(feature = "transport")]
pub use holding::Holding;
#[cfg(feature = "transport")]
pub use hooks::{Hooks, NoHooks};
#[cfg(feature = "transport")]
pub use rate_limiter::RateLimiter;
#[cfg(feature = "transport")]
pub use resource::Resource;
/// What is read off the wire, for who tests that: no part of the library's interface.
#[cfg(feature = "transport")]
#[doc(hidden)]
pub use transport::convert as wire;

/// The same mistake is made at a shell: for the command line, and no part of the library's interface.
#[cfg(feature = "transport")]
#[doc(hidden)]
pub use transport::http_port;

/// The programs in the guide compile.
#[cfg(all(doctest, feature = "transport"))]
#[doc = include_str!("../../docs/clients.md")]
struct Guide;
