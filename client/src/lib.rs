//! Doorward's client: leases capacity of a shared resource, and throttles the program to it.
//!
//! ```no_run
//! use doorward_client::limiter::rate::Burst;
//! use doorward_client::{Client, Mode};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! // One client per program. Its id must be unique among the clients of a resource.
//! let client = Client::builder("frontend-7").address("127.0.0.1:6970").connect().await?;
//!
//! // One handle per resource: say how much you could use…
//! let database = client.resource("example/fair").wants(50.0).mode(Mode::Safe).open()?;
//!
//! // …and let the limiter hold you to your lease, as it changes.
//! let limiter = database.rate_limiter(Burst::default());
//! for _query in 0..1000 {
//!     limiter.acquire(1.0).await?;
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
//! without the feature `transport`, and the simulator runs them. The rest is a tokio and tonic shell around them.

pub mod capacity;
#[cfg(feature = "engine")]
pub mod in_process;
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
mod handle;
#[cfg(feature = "transport")]
mod holding;
#[cfg(feature = "transport")]
mod hooks;
#[cfg(feature = "transport")]
mod keyed;
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
#[cfg(feature = "tls")]
pub mod tls;
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
pub use keyed::{Keyed, KeyedBuilder, OnFailure};
#[cfg(feature = "transport")]
pub use rate_limiter::RateLimiter;
#[cfg(feature = "transport")]
pub use resource::Resource;
/// Conversion of wire messages, for tests of it. Not part of the library's interface.
#[cfg(feature = "transport")]
#[doc(hidden)]
pub use transport::convert as wire;

/// Detection of an HTTP port, for the command line. Not part of the library's interface.
#[cfg(feature = "transport")]
#[doc(hidden)]
pub use transport::http_port;

/// The guide, whose programs compile as tests.
#[cfg(all(doctest, feature = "transport"))]
#[doc = include_str!("../../docs/clients.md")]
struct Guide;
